import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { buildASTSchema, parse, validate } from 'graphql';
import { readJobs } from '../../src/http/playground-page.ts';
import { send } from './support/requests.ts';
import { startTestServer, type TestServer } from './support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ playground: true });
});
afterAll(async () => {
  await server.stop();
});

test('everything the page loads, and all that this loads in turn, is on the same server', async () => {
  const { text, status, headers } = await send(server, 'GET', '/playground');
  expect(status).toBe(200);
  expect(headers['content-type']).toBe('text/html; charset=utf-8');
  expect(text).not.toMatch(/https?:\/\//);
  const base = /<base href="([^"]+)"/.exec(text)?.[1] ?? '';
  const seen = new Set<string>();
  const load = async (address: string): Promise<void> => {
    const { pathname, origin } = new URL(address);
    if (seen.has(pathname)) return;
    seen.add(pathname);
    expect(origin).toBe(server.url);
    const file = await send(server, 'GET', pathname);
    expect([pathname, file.status]).toEqual([pathname, 200]);
    expect(file.headers['content-type']).toMatch(/^text\/(javascript|css); charset=utf-8$/);
    expect(file.headers['x-content-type-options']).toBe('nosniff');
    const imports = file.text.matchAll(/(?:^|;|\})\s*import\b[^"'()]{0,5000}["'](\.[^"']+)["']/gm);
    await Promise.all([...imports].map(([, imported = '']) => load(new URL(imported, address).href)));
  };
  const addresses = [...text.matchAll(/<(?:script|link)[^>]*?(?:src|href)="([^"]+)"/g)]
    .map(([, address = '']) => address)
    .filter((address) => !address.startsWith('data:'));
  await Promise.all(addresses.map((address) => load(new URL(address, server.url + base).href)));
  for (const file of ['session.js', 'static/main.js', 'start.js', 'memory/build/esm/fakeIndexedDB.js'])
    expect(seen).toContain(`/playground/${file}`);
});

test('the page runs no script but files of this server, is framed by nobody, and reaches nobody else', async () => {
  const { headers } = await send(server, 'GET', '/playground');
  const policy = String(headers['content-security-policy']);
  expect(policy).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self' 'nonce-[A-Za-z0-9+/]{22}=='; connect-src 'self';/,
  );
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain('unsafe');
  expect(headers).toMatchObject({ 'x-frame-options': 'DENY', 'referrer-policy': 'no-referrer' });
});

test('no two answers carry the same nonce, and the page carries the one of its answer', async () => {
  const answers = await Promise.all([1, 2].map(() => send(server, 'GET', '/playground')));
  const nonces = answers.map(({ headers, text }) => {
    const nonce = /'nonce-([^']+)'/.exec(String(headers['content-security-policy']))?.[1];
    expect(text).toContain(`data-nonce="${nonce}"`);
    return nonce;
  });
  expect(new Set(nonces).size).toBe(2);
});

describe('the jobs of support', () => {
  const schema = buildASTSchema(
    parse(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8')),
    {
      assumeValidSDL: true,
    },
  );

  test('are told to the page in order', async () => {
    const { json } = await send(server, 'GET', '/playground/jobs.json');
    expect(json.map(({ name }: { name: string }) => name)).toEqual([
      '1 Find a state',
      '2 Preview history',
      '3 Export, download',
      '4 Dry-run import',
      '5 Import as',
      '6 Watch operations',
      '7 Who did what',
    ]);
  });

  test.each(readJobs())('$name: its document fits the schema', ({ query }) => {
    expect(validate(schema, parse(query)).map(({ message }) => message)).toEqual([]);
  });
});

test('a file is sent once: the next request for it is 304', async () => {
  const first = await send(server, 'GET', '/playground/static/styles.css');
  const again = await send(server, 'GET', '/playground/static/styles.css', {
    'if-none-match': String(first.headers.etag),
  });
  expect(again).toMatchObject({ status: 304, text: '' });
});

test.each([
  '/playground/static/nothing.js',
  '/playground/static/../../package.json',
  '/playground/static/%2e%2e/index.js',
  '/playground/static/index.html',
  '/playground/static/iframe-sandbox/index.html',
  '/playground/memory/package.json',
  '/playground/jobs/1-find.graphql',
])('%s is 404 in JSON', async (path) => {
  const answer = await send(server, 'GET', path);
  expect(answer.status).toBe(404);
  expect(answer.json.error.code).toBe('NOT_FOUND');
});
