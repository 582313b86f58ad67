import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { send } from './support/requests.ts';
import { startTestServer, type TestServer } from './support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ playground: true });
});
afterAll(async () => {
  await server.stop();
});

test('everything the page loads is on the same server', async () => {
  const { text, status, headers } = await send(server, 'GET', '/playground');
  expect(status).toBe(200);
  expect(headers['content-type']).toBe('text/html; charset=utf-8');
  const addresses = [
    ...text.matchAll(/<(?:script|link)[^>]*?(?:src|href)="([^"]+)"/g),
    ...text.matchAll(/\bimport [^"']*from ["']([^"']+)["']/g),
  ].map(([, address = '']) => address);
  const files = addresses.filter((address) => !address.startsWith('data:'));
  expect(files).toContain('/playground/static/ruru.js');
  for (const address of [
    ...files,
    ...['json', 'graphql', 'editor'].map((w) => `/playground/static/${w}Worker.js`),
  ]) {
    expect(address).toMatch(/^\/playground\/static\//);
    const file = await send(server, 'GET', address);
    expect(file.status).toBe(200);
    expect(file.headers['content-type']).toMatch(/^text\/(javascript|css)/);
    expect(file.headers['x-content-type-options']).toBe('nosniff');
  }
  expect(text).not.toMatch(/https?:\/\//);
});

test('the page runs no script but its own, is framed by nobody, and sends its address to nobody', async () => {
  const { headers } = await send(server, 'GET', '/playground');
  const policy = String(headers['content-security-policy']);
  expect(policy).toContain("default-src 'self'");
  expect(policy).toMatch(/script-src 'self'( 'sha256-[A-Za-z0-9+/]{43}=')+;/);
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain('unsafe-eval');
  expect(headers).toMatchObject({ 'x-frame-options': 'DENY', 'referrer-policy': 'no-referrer' });
});

test('the page queries this server, lets headers be given, and keeps no token', async () => {
  const { text } = await send(server, 'GET', '/playground');
  const config = /const RURU_CONFIG = (\{[^;]*?\n\});/s.exec(text)?.[1];
  expect(JSON.parse(config ?? '')).toMatchObject({
    endpoint: '/graphql',
    isHeadersEditorEnabled: true,
    showPersistHeadersSettings: false,
    maxHistoryLength: -1,
  });
});

test('a file is sent once: the next request for it is 304', async () => {
  const first = await send(server, 'GET', '/playground/static/ruru.css');
  const again = await send(server, 'GET', '/playground/static/ruru.css', {
    'if-none-match': String(first.headers.etag),
  });
  expect(again).toMatchObject({ status: 304, text: '' });
});

test.each([
  '/playground/static/nothing.js',
  '/playground/static/../../package.json',
  '/playground/static/ruru.js.map',
])('%s is 404 in JSON', async (path) => {
  const answer = await send(server, 'GET', path);
  expect(answer.status).toBe(404);
  expect(answer.json.error.code).toBe('NOT_FOUND');
});
