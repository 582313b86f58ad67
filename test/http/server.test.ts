import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, test } from '@jest/globals';
import { until } from '../support/until.ts';
import { head, openSocket, query, receivedUntil, send } from './support/requests.ts';
import { startTestServer, type TestServer, TOKEN } from './support/test-server.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let server: TestServer;
afterEach(async () => {
  await server.stop();
});

test.each([
  ['ends in the middle of a body', 'content-length: 1000', ''],
  ['goes on with what is no chunk', 'transfer-encoding: chunked', 'zz\r\n'],
])('a request that is refused and then %s has one answer', async (_name, length, rest) => {
  server = await startTestServer();
  const socket = await openSocket(server);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  const answered = receivedUntil(socket, 'UNSUPPORTED_MEDIA_TYPE');
  socket.write(`POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/mixed\r\n${length}\r\n\r\n`);
  await answered;
  socket.end(rest);
  await once(socket, 'close');
  expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
});

describe('health', () => {
  test('livez answers without a credential', async () => {
    server = await startTestServer({ isReady: async () => false });
    expect(await send(server, 'GET', '/livez')).toMatchObject({ status: 200, json: { status: 'ok' } });
  });

  test('readyz is 200 when the service can work', async () => {
    server = await startTestServer();
    expect(await send(server, 'GET', '/readyz')).toMatchObject({ status: 200, json: { status: 'ok' } });
    expect(await send(server, 'HEAD', '/readyz')).toMatchObject({ status: 200, text: '' });
  });

  test.each([
    ['the service is not ready', async () => false],
    [
      'the check fails',
      async () => Promise.reject(new Error('no route to postgres://app:hunter2@db/kilolock')),
    ],
  ])('readyz is 503 when %s, and says no more', async (_name, isReady) => {
    server = await startTestServer({ isReady });
    const answer = await send(server, 'GET', '/readyz');
    expect(answer).toMatchObject({ status: 503, json: { error: { code: 'NOT_READY' } } });
    expect(answer.text).not.toContain('hunter2');
    expect(JSON.stringify(server.log)).not.toContain('hunter2');
  });

  test('readyz looks once for however many ask at the same time, since it asks nobody who they are', async () => {
    const begun = Promise.withResolvers<void>();
    const ready = Promise.withResolvers<boolean>();
    let checks = 0;
    server = await startTestServer({
      isReady() {
        checks += 1;
        begun.resolve();
        return ready.promise;
      },
    });
    const socket = await openSocket(server);
    const answered = () => server.log.filter(({ route }) => route === '/readyz').length;
    // Three in one piece: they are at work together.
    socket.write(head('GET', '/readyz', {}).repeat(3));
    await begun.promise;
    await send(server, 'GET', '/livez');
    ready.resolve(true);
    await until(() => answered() === 3);
    expect(checks).toBe(1);
    expect(await send(server, 'GET', '/readyz')).toMatchObject({ status: 200 });
    expect(checks).toBe(2);
    socket.destroy();
  });

  test('readyz is 503 while draining, and requests are still served', async () => {
    server = await startTestServer();
    server.server.startDraining();
    expect(await send(server, 'GET', '/readyz')).toMatchObject({ status: 503 });
    expect(await query(server, { query: '{ hello }' })).toMatchObject({ status: 200 });
  });
});

describe('closing', () => {
  test('accepts no more connections and lets the request at work finish', async () => {
    const begun = Promise.withResolvers<void>();
    const ready = Promise.withResolvers<boolean>();
    server = await startTestServer({
      isReady() {
        begun.resolve();
        return ready.promise;
      },
    });
    const socket = await openSocket(server);
    const answered = receivedUntil(socket, '"status":"ok"');
    const ended = new Promise((resolve) => socket.once('close', resolve));
    socket.write(head('GET', '/readyz', {}));
    await begun.promise;

    const closed = server.server.close();
    await expect(openSocket(server)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    ready.resolve(true);

    expect(await answered).toMatch(/^HTTP\/1.1 200 [^\0]*^connection: close\r$/m);
    await closed;
    await ended;
  });

  test('lets a download under way finish, and does not wait for its connection after that', async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024);
    server = await startTestServer({
      openDownload: async () => ({
        fileName: 'f.klstate',
        sizeBytes: BigInt(bytes.length),
        sha256: '0'.repeat(64),
        begin: async () => async () => {},
        address: null,
        read: async () => Readable.from([bytes]),
      }),
    });
    const socket = await openSocket(server);
    socket.write(head('GET', '/archives/1?token=t', {}));
    let received = (await once(socket, 'data'))[0].length;
    socket.pause();

    const closed = server.server.close();
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    socket.resume();
    await closed;
    await once(socket, 'close');
    expect(received).toBeGreaterThan(bytes.length);
  });

  test('does not wait for idle connections', async () => {
    server = await startTestServer();
    const socket = await openSocket(server);
    const answered = receivedUntil(socket, '"status":"ok"');
    socket.write(head('GET', '/livez', {}));
    await answered;
    const ended = new Promise((resolve) => socket.once('close', resolve));
    await server.server.close();
    await ended;
  });
});

describe('every refusal is JSON with the request id', () => {
  test.each([
    ['GET', '/nothing-here', 404, 'NOT_FOUND'],
    ['POST', '/nothing-here', 404, 'NOT_FOUND'],
    ['POST', '/livez', 405, 'METHOD_NOT_ALLOWED'],
    ['DELETE', '/archives/1', 405, 'METHOD_NOT_ALLOWED'],
    ['GET', '/archives/%zz', 400, 'BAD_REQUEST'],
    ['GET', '/archives/1', 404, 'NOT_FOUND'],
    ['GET', '/playground', 404, 'NOT_FOUND'],
  ])('%s %s is %d', async (method, path, status, code) => {
    server = await startTestServer();
    const answer = await send(
      server,
      method,
      path,
      { 'content-type': 'text/plain' },
      method === 'POST' ? 'x' : undefined,
    );
    expect(answer.status).toBe(status);
    expect(answer.json).toEqual({
      error: { code, message: expect.any(String), requestId: answer.headers['x-request-id'] },
    });
    expect(answer.headers['x-request-id']).toMatch(UUID);
    if (status === 405) expect(answer.headers.allow).toBe('GET, HEAD');
  });

  test.each([
    ['is not HTTP', 'no such protocol\r\n\r\n', 400, 'BAD_REQUEST'],
    ['has headers without end', `GET / HTTP/1.1\r\nx: ${'x'.repeat(20_000)}`, 431, 'HEADERS_TOO_LARGE'],
  ])('what %s is answered too', async (_name, bytes, status, code) => {
    server = await startTestServer();
    const socket = await openSocket(server);
    const answered = receivedUntil(socket, '}}');
    socket.write(bytes);
    const answer = await answered;
    expect(answer.startsWith(`HTTP/1.1 ${status} `)).toBe(true);
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ error: { code } });
    expect(answer).toMatch(/^x-request-id: /m);
  });

  test('a failure of the service says nothing of itself, and the log has it under the request id', async () => {
    server = await startTestServer({
      openDownload: () => Promise.reject(new Error('connect postgres://app:hunter2@db/kilolock failed')),
    });
    const answer = await send(server, 'GET', '/archives/1?token=link-secret');
    expect(answer.status).toBe(500);
    expect(answer.json.error).toMatchObject({
      code: 'INTERNAL',
      message: 'Internal error. Quote the request id to support.',
    });
    const logged = server.log.find((line) => line.msg === 'request failed');
    expect(logged).toMatchObject({ requestId: answer.json.error.requestId, error: { type: 'Error' } });
    expect(JSON.stringify(server.log)).not.toMatch(/hunter2|link-secret/);
  });
});

describe('the request id', () => {
  test('is made anew for every response, and a client’s own is only logged', async () => {
    server = await startTestServer();
    const answer = await send(server, 'GET', '/livez', { 'x-request-id': 'gateway-42' });
    expect(answer.headers['x-request-id']).toMatch(UUID);
    await until(() => server.log.some((line) => line.msg === 'request'));
    expect(server.log.find((line) => line.msg === 'request')).toMatchObject({
      requestId: answer.headers['x-request-id'],
      clientRequestId: 'gateway-42',
    });
  });

  test('of a client is not logged when it is long or odd', async () => {
    server = await startTestServer();
    await send(server, 'GET', '/livez', { 'x-request-id': 'a b' });
    await send(server, 'GET', '/livez', { 'x-request-id': 'x'.repeat(65) });
    await until(() => server.log.filter((line) => line.msg === 'request').length === 2);
    expect(JSON.stringify(server.log)).not.toContain('clientRequestId');
  });
});

test('one line is logged for a request: what, who and how, and no token, query string or variable', async () => {
  server = await startTestServer();
  await query(server, {
    query: 'query Greeting($name: String) { hello(name: $name) }',
    variables: { name: 'secret-variable' },
  });
  await send(server, 'GET', '/archives/op-1?token=secret-link');
  await send(server, 'GET', '/nowhere?token=secret-link');
  await until(() => server.log.filter((line) => line.msg === 'request').length === 3);

  const [graphql, download, nowhere] = server.log.filter((line) => line.msg === 'request');
  expect(graphql).toMatchObject({
    level: 30,
    method: 'POST',
    route: '/graphql',
    status: 200,
    ms: expect.any(Number),
    requestId: expect.stringMatching(UUID),
    operationName: 'Greeting',
    subject: 'user-alice',
  });
  expect(download).toMatchObject({ method: 'GET', route: '/archives/:operationId', status: 404 });
  expect(nowhere).toMatchObject({ method: 'GET', route: null, status: 404 });
  const everything = JSON.stringify(server.log);
  expect(everything).not.toContain('secret');
  expect(everything).not.toContain(TOKEN.slice('Bearer '.length));
});
