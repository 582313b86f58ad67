import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { GraphQLError } from 'graphql';
import { until } from '../support/until.ts';
import { head, openSocket, query, receivedUntil, send } from './support/requests.ts';
import { startTestServer, type TestServer, TOKEN } from './support/test-server.ts';

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer();
});
afterEach(async () => {
  await server.stop();
});

const JSON_TYPE = { 'content-type': 'application/json' };
const hello = JSON.stringify({ query: '{ hello }' });

describe('who calls', () => {
  test('is in the context for a valid credential', async () => {
    expect((await query(server, { query: '{ subject }' })).json).toEqual({ data: { subject: 'user-alice' } });
  });

  test('is nobody without a credential, which the schema has to deal with', async () => {
    expect((await query(server, { query: '{ subject }' }, {})).json).toEqual({ data: { subject: null } });
  });

  test('is never guessed from a credential that is not valid: 401, and no context', async () => {
    const answer = await query(server, { query: '{ hello }' }, { authorization: 'Bearer stolen-token' });
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe(
      'Bearer error="invalid_token", error_description="The credential is not valid."',
    );
    expect(answer.json).toEqual({
      errors: [
        {
          message: 'The credential is not valid.',
          extensions: { code: 'UNAUTHENTICATED', requestId: answer.headers['x-request-id'] },
        },
      ],
    });
    expect(server.contexts).toEqual([]);
    expect(JSON.stringify(server.log)).not.toContain('stolen-token');
  });

  test('cannot be told during an outage of the issuer: 503, and no context', async () => {
    const answer = await query(server, { query: '{ hello }' }, { authorization: 'Bearer outage' });
    expect(answer.status).toBe(503);
    expect(answer.text).not.toContain('connection refused');
    expect(server.contexts).toEqual([]);
  });
});

test('the context has the request id, and an address that no Host header can change', async () => {
  const answer = await query(server, { query: '{ hello }' }, { host: 'evil.example' });
  expect(server.contexts[0]).toMatchObject({
    requestId: answer.headers['x-request-id'],
    publicUrl: server.url,
  });
});

test('the configured public address is the one links are built on', async () => {
  const published = await startTestServer({ publicUrl: 'https://archives.example.com' });
  await query(published, { query: '{ hello }' });
  expect(published.contexts[0]?.publicUrl).toBe('https://archives.example.com');
  await published.stop();
});

test('the signal aborts when the client goes away, and not when it is answered', async () => {
  await query(server, { query: '{ hello }' });
  const body = JSON.stringify({ query: '{ untilGone }' });
  const socket = await openSocket(server);
  socket.write(head('POST', '/graphql', { ...JSON_TYPE, 'content-length': String(body.length) }) + body);
  await until(() => server.contexts.length === 2);
  expect(server.contexts[1]?.signal.aborted).toBe(false);
  socket.destroy();
  await until(() => server.contexts[1]?.signal.aborted === true);
  expect(server.contexts[0]?.signal.aborted).toBe(false);
});

describe('media types', () => {
  test.each([
    ['text/plain'],
    ['application/x-www-form-urlencoded'],
    ['multipart/mixed; boundary=x'],
    ['multipart/form-data-json; boundary=x'],
    ['application/json; charset=utf-16'],
    ['application/jsonx'],
    ['text/plain; a=application/json'],
    ['application/json, text/plain'],
    ['nonsense'],
  ])('%s is refused with 415', async (type) => {
    const answer = await send(
      server,
      'POST',
      '/graphql',
      { authorization: TOKEN, 'content-type': type },
      hello,
    );
    expect(answer.status).toBe(415);
    expect(answer.json.errors[0].extensions.code).toBe('UNSUPPORTED_MEDIA_TYPE');
    expect(server.contexts).toEqual([]);
  });

  test('none at all is refused with 415, with a body or without', async () => {
    expect((await send(server, 'POST', '/graphql', {}, hello)).status).toBe(415);
    expect((await send(server, 'POST', '/graphql')).status).toBe(415);
  });

  test('application/json is accepted in every spelling of UTF-8', async () => {
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'Application/JSON;charset="UTF-8"',
    ]) {
      expect((await send(server, 'POST', '/graphql', { 'content-type': type }, hello)).status).toBe(200);
    }
  });
});

describe('methods', () => {
  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s is refused with 405',
    async (method) => {
      const answer = await send(server, method, '/graphql?query={hello}', { accept: 'text/html' });
      expect(answer.status).toBe(405);
      expect(answer.headers.allow).toBe('POST');
      expect(answer.headers['access-control-allow-origin']).toBeUndefined();
    },
  );

  test('GET is refused with a body and a multipart type too', async () => {
    const type = { 'content-type': 'multipart/form-data; boundary=x', 'content-length': '1' };
    expect((await send(server, 'GET', '/graphql?query={hello}', type, 'x')).status).toBe(405);
  });

  test('GET from a browser leads to the playground where there is one, and other GETs do not', async () => {
    const withPlayground = await startTestServer({ playground: true });
    const browser = await send(withPlayground, 'GET', '/graphql', { accept: 'text/html,*/*' });
    expect(browser).toMatchObject({ status: 302, headers: { location: '/playground' } });
    expect((await send(withPlayground, 'GET', '/graphql?query={hello}')).status).toBe(405);
    await withPlayground.stop();
  });
});

describe('JSON bodies', () => {
  const documentOf = (length: number) =>
    JSON.stringify({
      query: 'mutation($document: String!) { lengthOf(document: $document) }',
      variables: { document: 'x'.repeat(length) },
    });

  test('of an authenticated caller may be as large as a file', async () => {
    const body = documentOf(8 * 1024 * 1024 - 200);
    const answer = await send(server, 'POST', '/graphql', { ...JSON_TYPE, authorization: TOKEN }, body);
    expect(answer.json).toEqual({ data: { lengthOf: 8 * 1024 * 1024 - 200 } });
  });

  test.each([
    ['an authenticated caller', 8 * 1024 * 1024, { authorization: TOKEN }],
    ['anyone else', 1024 * 1024, {}],
  ])('of %s are refused with 413 beyond %d bytes, declared or not', async (_name, limit, headers) => {
    const exact = documentOf(limit).slice(0, limit - 1);
    async function* chunked(): AsyncGenerator<Buffer> {
      yield Buffer.from(exact);
      yield Buffer.from('more');
    }
    for (const body of [documentOf(limit), chunked()]) {
      const answer = await send(server, 'POST', '/graphql', { ...JSON_TYPE, ...headers }, body);
      expect(answer.status).toBe(413);
      expect(answer.json.errors[0].message).toBe(`The body is larger than the ${limit} bytes accepted.`);
    }
    expect(server.contexts).toEqual([]);
  });

  test('that declare too much are refused before they are sent', async () => {
    const socket = await openSocket(server);
    const answered = receivedUntil(socket, 'PAYLOAD_TOO_LARGE');
    socket.write(head('POST', '/graphql', { ...JSON_TYPE, 'content-length': '99999999' }));
    expect(await answered).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
  });

  test.each([
    ['is not JSON', Buffer.from('{"secret-text'), 'The body is not JSON.'],
    ['is empty', Buffer.alloc(0), 'The body is not JSON.'],
    [
      'is not UTF-8',
      Buffer.from('{"query":"{ hello(name: \\"\xff\\") }"}', 'latin1'),
      'The body is not UTF-8.',
    ],
  ])('that %s are refused with 400, and not quoted', async (_name, body, message) => {
    const answer = await send(server, 'POST', '/graphql', JSON_TYPE, body);
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0].message).toBe(message);
  });

  describe('that come with gzip', () => {
    const GZIP = { ...JSON_TYPE, 'content-encoding': 'gzip' };
    const post = (body: Uint8Array | string, headers: Record<string, string> = {}) =>
      send(server, 'POST', '/graphql', { ...GZIP, ...headers }, body);

    test.each(['gzip', 'GZIP', 'x-gzip'])('are unpacked, by the name %s', async (coding) => {
      const { json } = await post(gzipSync(hello), { 'content-encoding': coding });
      expect(json).toEqual({ data: { hello: 'hello' } });
    });

    test('are as large as the others at most, however small they are packed', async () => {
      const limit = 8 * 1024 * 1024;
      const fitting = await post(gzipSync(documentOf(limit - 200)), { authorization: TOKEN });
      expect(fitting.json).toEqual({ data: { lengthOf: limit - 200 } });
      for (const [length, headers] of [
        [limit, { authorization: TOKEN }],
        [1024 * 1024, {}],
      ] as const) {
        const answer = await post(gzipSync(documentOf(length)), { ...headers });
        expect(answer.status).toBe(413);
        expect(answer.json.errors[0].message).toBe(`The body is larger than the ${length} bytes accepted.`);
      }
    });

    test('and are cut, or are none, are refused with 400', async () => {
      for (const body of [gzipSync(hello).subarray(0, -6), Buffer.from(hello), Buffer.alloc(0)]) {
        expect((await post(body)).json.errors[0]).toMatchObject({ extensions: { code: 'BAD_REQUEST' } });
      }
    });

    test('and other codings are refused with 415, which says what is accepted', async () => {
      for (const coding of ['br', 'deflate', 'gzip, gzip', 'nonsense']) {
        const answer = await post(gzipSync(hello), { 'content-encoding': coding });
        expect([answer.status, answer.headers['accept-encoding']]).toEqual([415, 'gzip']);
      }
      expect((await post(hello, { 'content-encoding': 'identity' })).status).toBe(200);
    });
  });

  test('that hold a batch are refused', async () => {
    expect((await send(server, 'POST', '/graphql', JSON_TYPE, `[${hello}]`)).status).toBe(400);
  });
});

describe('errors', () => {
  test('of a driver are masked, and logged once with the request id, without rows and passwords', async () => {
    server.failure = Object.assign(new Error('connect to postgres://app:hunter2@db:5432/kilolock failed'), {
      code: '08006',
      detail: 'Failing row contains (secret-row).',
    });
    const answer = await query(server, { query: '{ a: fail b: fail hello }' });
    expect(answer.json.data).toEqual({ a: null, b: null, hello: 'hello' });
    expect(answer.json.errors[0]).toEqual({
      message: 'Internal error. Quote the request id to support.',
      locations: [{ line: 1, column: 3 }],
      path: ['a'],
      extensions: { code: 'INTERNAL', requestId: answer.headers['x-request-id'] },
    });
    expect(answer.text).not.toContain('hunter2');

    const logged = server.log.filter((line) => line.msg === 'GraphQL request failed');
    expect(logged).toHaveLength(1);
    expect(logged[0]).toMatchObject({
      requestId: answer.headers['x-request-id'],
      path: ['a'],
      error: { type: 'Error', code: '08006', message: 'connect to postgres://***@db:5432/kilolock failed' },
    });
    expect(JSON.stringify(server.log)).not.toMatch(/hunter2|secret-row/);
  });

  test('written for callers keep their message and their extensions', async () => {
    server.failure = new GraphQLError('Not permitted.', {
      extensions: { code: 'FORBIDDEN', requiredScopes: [['state.read']] },
    });
    const answer = await query(server, { query: '{ fail }' });
    expect(answer.json.errors[0]).toMatchObject({
      message: 'Not permitted.',
      extensions: { code: 'FORBIDDEN', requiredScopes: [['state.read']] },
    });
    expect(server.log.some((line) => line.msg === 'GraphQL request failed')).toBe(false);
  });

  test('with a code that is not known to be public are masked', async () => {
    server.failure = new GraphQLError('secret-message', { extensions: { code: 'SOMETHING_NEW' } });
    const answer = await query(server, { query: '{ fail }' });
    expect(answer.json.errors[0].extensions.code).toBe('INTERNAL');
    expect(answer.text).not.toContain('secret-message');
  });

  test('with a public code that are no GraphQLErrors are masked', async () => {
    server.failure = Object.assign(new Error('secret-message'), { extensions: { code: 'FORBIDDEN' } });
    const answer = await query(server, { query: '{ fail }' });
    expect(answer.json.errors[0].extensions.code).toBe('INTERNAL');
    expect(answer.text).not.toContain('secret-message');
  });

  test('in the context are masked', async () => {
    const broken = await startTestServer({
      createContext() {
        throw new Error('secret-message');
      },
    });
    const answer = await query(broken, { query: '{ hello }' });
    expect(answer.status).toBe(500);
    expect(answer.json.errors[0].extensions).toMatchObject({ code: 'INTERNAL' });
    expect(answer.text).not.toContain('secret-message');
    await broken.stop();
  });

  test('in a document say where it is wrong', async () => {
    const answer = await query(server, { query: '{ helo }' });
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0]).toMatchObject({
      message: 'The document does not fit the schema: "helo" (line 1, column 3).',
      locations: [{ line: 1, column: 3 }],
      extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
    });
  });

  test.each<
    [what: string, request: { query: string; variables?: unknown; operationName?: string }, code: string]
  >([
    ['a field', { query: '{ helo }' }, 'GRAPHQL_VALIDATION_FAILED'],
    ['a literal', { query: '{ hello(name: 1234567) }' }, 'GRAPHQL_VALIDATION_FAILED'],
    ['a text', { query: '{ hello(nam: "secret-value") }' }, 'GRAPHQL_VALIDATION_FAILED'],
    ['a type', { query: 'query($input: EchoInpu!) { echo(input: $input) }' }, 'GRAPHQL_VALIDATION_FAILED'],
    ['introspection', { query: '{ __schema { types { name } } }' }, 'GRAPHQL_VALIDATION_FAILED'],
    ['what is no GraphQL', { query: '{ hello(name: "secret-value" }' }, 'GRAPHQL_PARSE_FAILED'],
    ['a text that does not end', { query: '{ hello(name: "secret-value) }' }, 'GRAPHQL_PARSE_FAILED'],
    [
      'the name of an operation',
      { query: 'query a { hello } query b { hello }', operationName: 'secret-value' },
      'OPERATION_RESOLUTION_FAILURE',
    ],
    [
      'a variable',
      {
        query: 'query($input: EchoInput!) { echo(input: $input) }',
        variables: { input: { nam: 'secret-value', name: 'n', count: 1 } },
      },
      'BAD_USER_INPUT',
    ],
  ])('about %s hold no value and no name that was not asked with', async (_what, request, code) => {
    const closed = await startTestServer({ introspection: false });
    const { status, text, json } = await query(closed, request);
    await closed.stop();
    expect([status, json.errors[0].extensions.code]).toEqual([400, code]);
    expect(text).not.toMatch(/secret-value|1234567|Did you mean|EchoInput"?\?/);
  });

  test('in variables name the variable, the place and what is expected, and not the value', async () => {
    const answer = await query(server, {
      query: 'query($input: EchoInput!) { echo(input: $input) }',
      variables: { input: { name: 'n', count: 'secret-value', policy: 'secret-policy' } },
    });
    expect(answer.status).toBe(400);
    expect(answer.json.errors).toEqual([
      {
        message:
          'Variable "$input" is invalid at "input.count": expected a value of type "Int". ' +
          'Variable "$input" is invalid at "input.policy": expected one of REFUSE, OVERWRITE.',
        extensions: { code: 'BAD_USER_INPUT', requestId: answer.headers['x-request-id'] },
      },
    ]);
  });

  test.each([
    ['a literal of the wrong type', '{ echo(input: { name: "n", count: "secret-literal" }) }'],
    ['a literal of no type', '{ echo(input: "secret-literal") }'],
    ['a literal in the wrong place', '{ hello "secret-literal" }'],
    ['a block string in the wrong place', '{ hello """secret-literal""" }'],
  ])('about %s do not quote it', async (_name, document) => {
    const answer = await query(server, { query: document });
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0].locations).toHaveLength(1);
    expect(answer.text).not.toContain('secret-literal');
  });

  test('a document with too many tokens is not parsed to its end', async () => {
    const answer = await query(server, { query: `{ ${'hello '.repeat(16_000)} }` });
    expect(answer.status).toBe(400);
    expect(answer.json.errors[0].extensions.code).toBe('GRAPHQL_PARSE_FAILED');
  });
});

test('no trace is given to whoever asks for one', async () => {
  const answer = await query(server, { query: '{ hello }' }, { 'apollo-federation-include-trace': 'ftv1' });
  expect(answer.json).toEqual({ data: { hello: 'hello' } });
});

test('answers are not to be stored', async () => {
  const answer = await query(server, { query: '{ hello }' });
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(answer.headers['x-content-type-options']).toBe('nosniff');
});
