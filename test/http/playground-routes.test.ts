import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { buildASTSchema, parse, validate } from 'graphql';
import { readJobs } from '../../src/http/playground-routes.ts';
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
  const below = [...seen].map((path) => path.replace(/^\/playground\/[\w-]{16}\//, ''));
  expect(below).toEqual(
    expect.arrayContaining([
      'session.js',
      'upload.js',
      'hashes/sha2.js',
      'static/main.js',
      'start.js',
      'memory/build/esm/fakeIndexedDB.js',
    ]),
  );
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

  test('are in the page, in order', async () => {
    const { text } = await send(server, 'GET', '/playground');
    const jobs = /data-jobs="([^"]*)"/.exec(text)?.[1]?.replaceAll('&quot;', '"').replaceAll('&amp;', '&');
    expect(JSON.parse(jobs ?? '')).toEqual(readJobs());
    expect(readJobs().map(({ name }) => name)).toEqual([
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

describe('the files of the page', () => {
  let release: string;
  beforeAll(async () => {
    const { text } = await send(server, 'GET', '/playground');
    release = /<base href="(\/playground\/[\w-]{16}\/)static\/"/.exec(text)?.[1] ?? '';
  });

  test('are asked for once: their address changes with them, and they may be kept for ever', async () => {
    const { headers } = await send(server, 'GET', `${release}static/styles.css`);
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
    const again = { 'if-none-match': String(headers.etag) };
    expect(await send(server, 'GET', `${release}static/styles.css`, again)).toMatchObject({
      status: 304,
      text: '',
    });
  });

  test('are not kept below the name of another release', async () => {
    const { status, headers } = await send(server, 'GET', '/playground/0123456789abcdef/session.js');
    expect([status, headers['cache-control']]).toEqual([200, 'no-cache']);
  });

  test.each([
    ['gzip, deflate, br', true],
    ['br;q=1, GZIP ; q=0.5', true],
    ['gzip;q=0', false],
    ['gzip; q=0.000, identity', false],
    ['identity', false],
  ])('for accept-encoding: %s they are packed: %s', async (acceptEncoding, isPacked) => {
    const address = `${release}static/main.js`;
    const plain = await send(server, 'GET', address);
    const answer = await send(server, 'GET', address, { 'accept-encoding': acceptEncoding });
    expect(answer.headers['content-encoding']).toBe(isPacked ? 'gzip' : undefined);
    expect(answer.headers.vary).toBe('accept-encoding');
    const length = Number(answer.headers['content-length']);
    if (isPacked) expect(length).toBeLessThan(Number(plain.headers['content-length']) / 3);
    else expect(answer.text).toBe(plain.text);
    expect(answer.headers.etag === plain.headers.etag).toBe(!isPacked);
  });

  test('that are packed by themselves are sent as they are', async () => {
    const accept = { 'accept-encoding': 'gzip' };
    const { status, headers } = await send(
      server,
      'GET',
      `${release}static/assets/img/altair_logo.svg`,
      accept,
    );
    expect([status, headers['content-encoding']]).toEqual([200, 'gzip']);
    const font = readdirSync(
      new URL('../../node_modules/altair-static/build/dist/media/', import.meta.url),
    ).find((name) => name.endsWith('.woff2'));
    const packed = await send(server, 'GET', `${release}static/media/${font}`, accept);
    expect([packed.status, packed.headers['content-encoding']]).toEqual([200, undefined]);
  });
});

test.each([
  '/playground/x/static/nothing.js',
  '/playground/x/static/../../package.json',
  '/playground/x/static/%2e%2e/index.js',
  '/playground/x/static/index.html',
  '/playground/x/static/iframe-sandbox/index.html',
  '/playground/x/memory/package.json',
  '/playground/x/jobs/1-find.graphql',
  '/playground/session.js',
])('%s is 404 in JSON', async (path) => {
  const answer = await send(server, 'GET', path);
  expect(answer.status).toBe(404);
  expect(answer.json.error.code).toBe('NOT_FOUND');
});
