import { createHash, randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { until } from '../support/until.ts';
import {
  type Answer,
  BOUNDARY,
  CLOSING,
  encodeMultipart,
  encodePart,
  head,
  MAP,
  multipartHeaders,
  openSocket,
  operationsFor,
  type Part,
  query,
  receivedUntil,
  send,
  uploadBody,
} from './support/requests.ts';
import { startTestServer, type TestServer, TOKEN } from './support/test-server.ts';

const LIMIT = 8 * 1024 * 1024;
const file = randomBytes(LIMIT);
const fileOneByteMore = Buffer.concat([file, Buffer.from('x')]);

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ maxInlineUploadBytes: LIMIT });
});
afterEach(async () => {
  await server.stop();
});

const post = (body: Parameters<typeof send>[4], headers = multipartHeaders) =>
  send(server, 'POST', '/graphql', headers, body);

async function expectServing(): Promise<void> {
  expect((await query(server, { query: '{ hello }' })).json).toEqual({ data: { hello: 'hello' } });
}

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('a whole file', () => {
  test('of exactly the limit arrives whole, with its digest and its name', async () => {
    const answer = await post(uploadBody('receive', file));
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({
      data: {
        receive: {
          sizeBytes: String(LIMIT),
          sha256: createHash('sha256').update(file).digest('hex'),
          fileName: 'state.klstate',
        },
      },
    });
  });

  test('is for one field alone: another is told, and does not take it for empty', async () => {
    const field = 'receive(file: $file) { sizeBytes }';
    const operations = {
      query: `mutation ($file: Upload!) { a: ${field} b: ${field} }`,
      variables: { file: null },
    };
    const answer = await post(
      encodeMultipart([
        { name: 'operations', body: JSON.stringify(operations) },
        { name: 'map', body: MAP },
        { name: '0', body: 'whole', fileName: 'state.klstate' },
      ]),
    );
    expect(answer.json.errors).toMatchObject([{ path: ['b'], extensions: { code: 'BAD_USER_INPUT' } }]);
  });

  test('arrives whole when it is sent chunked, in pieces that cut through boundaries', async () => {
    const answer = await post(inPieces(uploadBody('receive', file), 65_521));
    expect(answer.json.data.receive.sha256).toBe(createHash('sha256').update(file).digest('hex'));
  });

  test('arrives whole from fetch and FormData', async () => {
    const form = new FormData();
    form.set('operations', operationsFor('receive'));
    form.set('map', MAP);
    form.set('0', new Blob([file]), 'a/../b/état.klstate');
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { authorization: TOKEN, 'apollo-require-preflight': '1' },
      body: form,
    });
    const { data } = (await response.json()) as Answer['json'];
    expect(data.receive).toMatchObject({ sizeBytes: String(LIMIT), fileName: 'état.klstate' });
  });

  test('arrives whole from a slow client', async () => {
    const body = uploadBody('receive', file.subarray(0, 300_000));
    const socket = await openSocket(server);
    const answered = receivedUntil(socket, '"sizeBytes"');
    socket.write(head('POST', '/graphql', { ...multipartHeaders, 'content-length': String(body.length) }));
    for await (const piece of inPieces(body, 10_000)) {
      await new Promise((sent) => socket.write(piece, sent));
    }
    expect(await answered).toContain('"sizeBytes":"300000"');
    socket.destroy();
  });

  test('may be empty', async () => {
    const answer = await post(uploadBody('receive', Buffer.alloc(0)));
    expect(answer.json.data.receive.sizeBytes).toBe('0');
  });
});

describe('a file that is too large', () => {
  test('by one byte is refused with 413, and nothing of it is left', async () => {
    const answer = await post(uploadBody('receive', fileOneByteMore));
    expect(answer.status).toBe(413);
    expect(answer.json.errors[0]).toMatchObject({
      message: `The file is larger than the ${LIMIT} bytes accepted.`,
      extensions: { code: 'PAYLOAD_TOO_LARGE' },
    });
    await expect(server.received[0]).rejects.toMatchObject({ name: 'UploadTooLargeError', maxBytes: LIMIT });
    expect(await server.spooledFiles()).toEqual([]);
  });

  test('is refused by its declared length before any of it is sent', async () => {
    const socket = await openSocket(server);
    const answered = receivedUntil(socket, 'PAYLOAD_TOO_LARGE');
    socket.write(head('POST', '/graphql', { ...multipartHeaders, 'content-length': String(LIMIT * 2) }));
    expect(await answered).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
  });

  test('is refused while it is still being sent, when its length is not declared', async () => {
    let sent = 0;
    async function* endless(): AsyncGenerator<Buffer> {
      yield encodePart({ name: 'operations', body: operationsFor('receive') });
      yield encodePart({ name: 'map', body: MAP });
      yield encodePart({ name: '0', body: '', fileName: 'f' }).subarray(0, -2);
      while (sent < LIMIT * 50) {
        sent += file.length;
        yield file;
      }
    }
    const answer = await post(endless());
    expect(answer.status).toBe(413);
    expect(sent).toBeLessThan(LIMIT * 50);
    expect(await server.spooledFiles()).toEqual([]);
    await expectServing();
  });

  test('cannot hide behind parts that nobody reads', async () => {
    async function* body(): AsyncGenerator<Buffer> {
      yield encodePart({ name: 'operations', body: operationsFor('receive') });
      yield encodePart({ name: 'map', body: MAP });
      for (let part = 0; part < 4; part++) yield encodePart({ name: 'junk', body: file });
      yield encodePart({ name: '0', body: 'small', fileName: 'f' });
      yield CLOSING;
    }
    const answer = await post(body());
    expect(answer.status).toBe(413);
    expect(await server.spooledFiles()).toEqual([]);
  });
});

describe('a file nobody reads', () => {
  test.each([
    ['a resolver that never reads', 'ignore', { data: { ignore: true } }],
    ['a resolver that throws at once', 'refuse', { errors: [{ extensions: { code: 'FORBIDDEN' } }] }],
  ] as const)(
    '%s is answered, and the connection serves the next request',
    async (_name, field, expected) => {
      const socket = await openSocket(server);
      const body = uploadBody(field, file);
      const answered = receivedUntil(socket, '"data"');
      socket.write(head('POST', '/graphql', { ...multipartHeaders, 'content-length': String(body.length) }));
      socket.write(body);
      const answer = await answered;
      expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toMatchObject(expected);

      const next = receivedUntil(socket, '"status":"ok"');
      socket.write(head('GET', '/livez', {}));
      await next;
      socket.destroy();
    },
  );

  test('is answered before its last byte is sent', async () => {
    const socket = await openSocket(server);
    const body = uploadBody('refuse', file);
    const answered = receivedUntil(socket, 'FORBIDDEN');
    socket.write(head('POST', '/graphql', { ...multipartHeaders, 'content-length': String(body.length) }));
    socket.write(body.subarray(0, body.length / 2));
    await answered;
    socket.destroy();
  });

  test('does not hold its connection when the client never ends the body', async () => {
    const socket = await openSocket(server);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const body = uploadBody('refuse', file);
    socket.write(head('POST', '/graphql', { ...multipartHeaders, 'content-length': String(body.length) }));
    socket.write(body.subarray(0, body.length / 2));
    await receivedUntil(socket, 'FORBIDDEN');
    socket.resume();
    await closed;
  });
});

describe('a client that goes away in the middle', () => {
  test.each([
    ['resets', 'resetAndDestroy'],
    ['ends', 'end'],
  ] as const)('and %s the connection leaves nothing behind', async (_name, leave) => {
    const body = uploadBody('receive', file);
    const socket = await openSocket(server);
    socket.on('error', () => {});
    socket.write(head('POST', '/graphql', { ...multipartHeaders, 'content-length': String(body.length) }));
    socket.write(body.subarray(0, body.length / 2));
    await until(async () => (await server.spooledFiles()).length === 1);

    socket[leave]();

    await expect(server.received[0]).rejects.toMatchObject({ name: 'UploadInterruptedError' });
    await until(async () => (await server.spooledFiles()).length === 0);
    expect(server.contexts[0]?.signal.aborted).toBe(true);
    await until(() => server.log.some((line) => line.aborted === true));
    await expectServing();
  });
});

describe('a body that is not whole', () => {
  const start = Buffer.concat([
    encodePart({ name: 'operations', body: operationsFor('receive') }),
    encodePart({ name: 'map', body: MAP }),
    encodePart({ name: '0', body: file.subarray(0, 5_000_000), fileName: 'f' }),
  ]);

  test.each([
    ['has no closing boundary', start],
    ['ends inside the file', start.subarray(0, 4_000_000)],
    [
      'has a malformed part after the file',
      Buffer.concat([start, Buffer.from(`--test-boundary-3f1a\r\n: x\r\n\r\n`), CLOSING]),
    ],
    [
      'has a second file after the file',
      Buffer.concat([start, encodePart({ name: '1', body: 'second', fileName: 'g' }), CLOSING]),
    ],
  ])('is refused though the file before it was complete: it %s', async (_name, body) => {
    const answer = await post(body);
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0].extensions.code).toBe('UPLOAD_INTERRUPTED');
    expect(await server.spooledFiles()).toEqual([]);
    await expectServing();
  });

  test('is refused when it names a file and holds none', async () => {
    const answer = await post(
      encodeMultipart([
        { name: 'operations', body: operationsFor('receive') },
        { name: 'map', body: MAP },
      ]),
    );
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0].message).toBe(
      'The upload did not arrive whole: the multipart request cannot be used: file missing in the request.',
    );
  });

  test('with a malformed first part is refused, and the process lives on', async () => {
    const answer = await post(Buffer.from(`--test-boundary-3f1a\r\n: broken\r\n\r\n`));
    expect(answer.status).toBe(400);
    await expectServing();
  });
});

describe('a file that a gateway has moved', () => {
  const IN_INPUT = 'mutation M($input: Input!) { receiveIn(input: $input) { sizeBytes sha256 fileName } }';

  test.each<[place: string, query: string, variables: unknown]>([
    ['variables.input.file', IN_INPUT, { input: { file: null } }],
    ['variables.input.files.1', IN_INPUT, { input: { file: null, files: [null, null] } }],
    [
      'variables.archive',
      'mutation M($archive: Upload!) { receive(file: $archive) { sizeBytes sha256 fileName } }',
      { archive: null },
    ],
  ])('arrives from %s', async (place, query, variables) => {
    const body = encodeMultipart([
      { name: 'operations', body: JSON.stringify({ query, variables }) },
      { name: 'map', body: JSON.stringify({ x: [place] }) },
      { name: 'x', body: file, fileName: 'state.klstate' },
    ]);
    const { json } = await post(body);
    const received = {
      sizeBytes: String(LIMIT),
      sha256: createHash('sha256').update(file).digest('hex'),
      fileName: 'state.klstate',
    };
    expect(Object.values(json.data)).toEqual([received]);
  });

  test.each(['Multipart/Form-Data', 'multipart/form-data '])(
    'arrives when its media type is written %s',
    async (type) => {
      const headers = { ...multipartHeaders, 'content-type': `${type}; boundary=${BOUNDARY}` };
      const answer = await post(uploadBody('receive', Buffer.from('bytes')), headers);
      expect(answer.json.data).toMatchObject({ receive: { sizeBytes: '5' } });
    },
  );

  test('is refused with a word for it when the request is compressed', async () => {
    const body = gzipSync(uploadBody('receive', Buffer.from('bytes')));
    const answer = await post(body, { ...multipartHeaders, 'content-encoding': 'gzip' });
    expect([answer.status, answer.json.errors[0].extensions.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    await expectServing();
  });
});

describe('a request of another form', () => {
  const operations = { name: 'operations', body: operationsFor('receive') };
  const map = { name: 'map', body: MAP };
  const upload = { name: '0', body: 'bytes', fileName: 'f' };
  const mapOf = (value: unknown): Part => ({ name: 'map', body: JSON.stringify(value) });

  test.each<[string, Part[], RegExp]>([
    [
      'maps to a variable that is not there',
      [operations, mapOf({ 0: ['variables.other'] }), upload],
      /must hold null at the path/,
    ],
    [
      'maps into an input that is not there',
      [operations, mapOf({ 0: ['variables.input.file'] }), upload],
      /must hold null at the path/,
    ],
    [
      'maps to the variables',
      [operations, mapOf({ 0: ['variables'] }), upload],
      /must lead into the variables/,
    ],
    ['maps to no place', [operations, mapOf({ 0: [] }), upload], /one part and one path/],
    ['maps to a place that is no text', [operations, mapOf({ 0: [null] }), upload], /one part and one path/],
    ['maps to the query', [operations, mapOf({ 0: ['query'] }), upload], /must lead into the variables/],
    [
      'maps one file to two places',
      [operations, mapOf({ 0: ['variables.file', 'variables.x'] }), upload],
      /must name one/,
    ],
    [
      'maps two files',
      [operations, mapOf({ 0: ['variables.file'], 1: ['variables.b'] }), upload],
      /must name one part/,
    ],
    ['maps no file', [operations, mapOf({}), upload], /must name one part/],
    ['has a map that is a list', [operations, mapOf([['variables.file']]), upload], /must name one part/],
    [
      'has a map that is not JSON',
      [operations, { name: 'map', body: '{' }, upload],
      /"map" field is not JSON/,
    ],
    [
      'has operations that are not JSON',
      [{ name: 'operations', body: 'x' }, map, upload],
      /"operations" field is not JSON/,
    ],
    [
      'is a batch',
      [{ name: 'operations', body: `[${operations.body}]` }, map, upload],
      /batches are not accepted/,
    ],
    [
      'does not declare the variable',
      [{ name: 'operations', body: operationsFor('receive', {}) }, map, upload],
      /must hold null at the path/,
    ],
    [
      'has variables that are no object',
      [{ name: 'operations', body: operationsFor('receive', 'text') }, map, upload],
      /must hold null at the path/,
    ],
    ['has the map before the operations', [map, operations, upload], /must come before/],
    ['has the file before the map', [operations, upload, map], /files should follow 'map'/],
    ['has the file first of all', [upload, operations, map], /files should follow 'map'/],
    ['has no map', [operations], /Missing multipart field 'map'/i],
    ['has no operations', [{ name: 'other', body: 'x' }], /neither operations nor a file/],
  ])('is refused with 400 and a reason: it %s', async (_name, parts, reason) => {
    const answer = await post(encodeMultipart(parts));
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0].message).toMatch(reason);
    expect(answer.json.errors[0].extensions.code).toBe('BAD_REQUEST');
    expect(server.contexts).toEqual([]);
  });

  test.each([
    'variables.__proto__.x',
    'variables.constructor.x',
    'variables.hasOwnProperty.call',
    'variables.toString.polluted',
    '__proto__.polluted',
    'variables.file.__proto__',
    'variables.prototype',
    'variables.input.constructor.prototype.x',
  ])('cannot reach a built-in prototype with the path %s', async (path) => {
    const answer = await post(encodeMultipart([operations, mapOf({ 0: [path] }), upload]));
    expect(answer.status).toBe(400);
    expect(Object.keys(Object.prototype.hasOwnProperty)).toEqual([]);
    expect(Object.keys(Object.prototype.toString)).toEqual([]);
    expect('polluted' in {}).toBe(false);
    await expectServing();
  });

  test('is told of a path that cannot be walked without all of it', async () => {
    const key = 'k'.repeat(100_000);
    const strange = { name: 'operations', body: operationsFor('receive', { '': { [key]: null } }) };
    const answer = await post(encodeMultipart([strange, mapOf({ 0: [`variables..${key}`] }), upload]));
    expect(answer.status).toBe(400);
    expect(answer.text.length).toBeLessThan(1000);
    await expectServing();
  });

  test('is refused when the file part is not the one the map names', async () => {
    const answer = await post(encodeMultipart([operations, map, { ...upload, name: 'other' }]));
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0].message).toContain('not the one the "map" field names');
  });

  test('is refused with 413 when a field is larger than a mebibyte', async () => {
    const padded = { name: 'operations', body: operations.body + ' '.repeat(1024 * 1024) };
    const answer = await post(encodeMultipart([padded, map, upload]));
    expect(answer.status).toBe(413);
    expect(answer.json.errors[0].message).toContain('"operations"');
  });

  test('is refused when the content type has no boundary', async () => {
    const answer = await post(uploadBody('receive', file), {
      ...multipartHeaders,
      'content-type': 'multipart/form-data',
    });
    expect(answer.status).toBe(400);
  });
});

describe('before a byte of the body is read', () => {
  /** Sends the head alone, declaring a body that never comes. */
  async function answerToHead(headers: Readonly<Record<string, string>>): Promise<string> {
    const socket = await openSocket(server);
    const answered = receivedUntil(socket, '"errors"');
    socket.write(head('POST', '/graphql', { ...headers, 'content-length': '1000' }));
    const answer = await answered;
    socket.destroy();
    return answer;
  }

  test('a multipart request without a credential is refused with 401', async () => {
    const { authorization: _none, ...headers } = multipartHeaders;
    const answer = await answerToHead(headers);
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
    expect(answer).toMatch(/^www-authenticate: Bearer\r$/m);
  });

  test('a multipart request without a header that no form can send is refused with 400', async () => {
    const { 'apollo-require-preflight': _none, ...headers } = multipartHeaders;
    expect(await answerToHead(headers)).toMatch(/^HTTP\/1.1 400 .*apollo-require-preflight/s);
    expect(await answerToHead({ ...headers, 'apollo-require-preflight': '' })).toMatch(/^HTTP\/1.1 400 /);
  });

  test('an invalid credential is refused with 401', async () => {
    const answer = await answerToHead({ ...multipartHeaders, authorization: 'Bearer stolen' });
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
    expect(answer).toMatch(
      /^www-authenticate: Bearer error="invalid_token", error_description="The credential is not valid."\r$/m,
    );
  });

  test('a client that is still sending, and wants the connection closed, gets to read why it is refused', async () => {
    const body = uploadBody('receive', file);
    const socket = await openSocket(server);
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    const ended = new Promise((resolve, reject) => socket.once('close', resolve).once('error', reject));
    const headers = { ...multipartHeaders, authorization: 'Bearer stolen', connection: 'close' };
    socket.write(head('POST', '/graphql', { ...headers, 'content-length': String(body.length) }));
    await until(() => received.includes('UNAUTHENTICATED'));
    for await (const piece of inPieces(body, 1024 * 1024)) {
      await new Promise<void>((sent, failed) =>
        socket.write(piece, (error) => (error ? failed(error) : sent())),
      );
    }
    await ended;
    expect(received).toMatch(/^HTTP\/1.1 401 /);
  });
});
