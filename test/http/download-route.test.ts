import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { OpenArchive } from '../../src/operations/downloads.ts';
import { until } from '../support/until.ts';
import { head, openSocket, send } from './support/requests.ts';
import { startTestServer, type TestServer } from './support/test-server.ts';

const archive = randomBytes(5 * 1024 * 1024 + 7);
const sha256 = createHash('sha256').update(archive).digest('hex');
const ETAG = `"${sha256}"`;
const LINK = '/archives/op-1?token=good-link';

let directory: string;
let server: TestServer;
let served: bigint[];
let isWhole: boolean | undefined;
let download: OpenArchive;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'download-test-'));
  const path = join(directory, 'archive');
  await writeFile(path, archive);
  served = [];
  download = {
    fileName: 'prod-network.klstate',
    sizeBytes: BigInt(archive.length),
    sha256,
    address: null,
    read: async (range) => createReadStream(path, range),
    begin: async () => async (end) => {
      served.push(end.bytes);
      isWhole = end.isWhole;
    },
  };
  server = await startTestServer({
    openDownload: async (operationId, token) =>
      operationId === 'op-1' && token === 'good-link' ? download : null,
  });
});
afterEach(async () => {
  await server.stop();
  await rm(directory, { recursive: true, force: true });
});

async function fetchBytes(headers: Record<string, string> = {}) {
  const response = await fetch(server.url + LINK, { headers });
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

test('a good link gives the file, byte for byte, with headers that keep it private', async () => {
  const { response, bytes } = await fetchBytes();
  expect(response.status).toBe(200);
  expect(bytes.equals(archive)).toBe(true);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'application/vnd.kilolock.state-archive',
    'content-length': String(archive.length),
    'content-disposition': 'attachment; filename="prod-network.klstate"',
    etag: ETAG,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  });
  await until(() => served.length === 1);
  expect([served, isWhole]).toEqual([[BigInt(archive.length)], true]);
});

test('HEAD has the headers of GET and no body, and nothing was served', async () => {
  const answer = await send(server, 'HEAD', LINK);
  expect(answer).toMatchObject({
    status: 200,
    text: '',
    headers: { 'content-length': String(archive.length), etag: ETAG, 'accept-ranges': 'bytes' },
  });
  await until(() => server.log.some((line) => line.method === 'HEAD'));
  expect(served).toEqual([]);
});

describe('a range', () => {
  test.each([
    ['bytes=0-99', 0, 99],
    ['bytes=100-', 100, archive.length - 1],
    ['bytes=-7', archive.length - 7, archive.length - 1],
    [`bytes=4000000-${archive.length + 50}`, 4_000_000, archive.length - 1],
  ])('%s is served alone', async (range, start, end) => {
    const { response, bytes } = await fetchBytes({ range });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes ${start}-${end}/${archive.length}`);
    expect(bytes.equals(archive.subarray(start, end + 1))).toBe(true);
    await until(() => served.length === 1);
    expect(served).toEqual([BigInt(end - start + 1)]);
  });

  test('beyond the end is 416 and names the size', async () => {
    const { response, bytes } = await fetchBytes({ range: `bytes=${archive.length}-` });
    expect(response.status).toBe(416);
    expect(response.headers.get('content-range')).toBe(`bytes */${archive.length}`);
    expect(response.headers.get('content-disposition')).toBeNull();
    expect(JSON.parse(bytes.toString()).error.code).toBe('RANGE_NOT_SATISFIABLE');
    expect(served).toEqual([]);
  });

  test.each(['bytes=0-1,4-5', 'lines=0-1', 'bytes=5-1', 'bytes=x-', 'bytes=-'])(
    'of the form %s is ignored and the whole is sent',
    async (range) => {
      const { response, bytes } = await fetchBytes({ range });
      expect(response.status).toBe(200);
      expect(bytes).toHaveLength(archive.length);
    },
  );

  test('with If-Range is served only while the file is the same', async () => {
    expect((await fetchBytes({ range: 'bytes=0-9', 'if-range': ETAG })).response.status).toBe(206);
    for (const other of ['"other"', `W/${ETAG}`, 'Wed, 21 Oct 2015 07:28:00 GMT']) {
      expect((await fetchBytes({ range: 'bytes=0-9', 'if-range': other })).response.status).toBe(200);
    }
  });
});

test('If-None-Match with the file’s tag is 304 without a body', async () => {
  for (const tag of [ETAG, `W/${ETAG}`, `"other", ${ETAG}`, '*']) {
    const answer = await send(server, 'GET', LINK, { 'if-none-match': tag });
    expect(answer).toMatchObject({ status: 304, text: '', headers: { etag: ETAG } });
  }
  expect((await send(server, 'HEAD', LINK, { 'if-none-match': '"other"' })).status).toBe(200);
  expect(served).toEqual([]);
});

test('If-Match with another tag is 412, so that a download is resumed from the same file or not at all', async () => {
  for (const method of ['GET', 'HEAD']) {
    for (const tag of [ETAG, `"other", ${ETAG}`, '*']) {
      expect((await send(server, method, LINK, { 'if-match': tag })).status).toBe(200);
    }
    for (const tag of ['"other"', `W/${ETAG}`, '']) {
      const answer = await send(server, method, LINK, { 'if-match': tag, range: 'bytes=0-9' });
      expect([answer.status, answer.headers['content-disposition']]).toEqual([412, undefined]);
    }
  }
});

test('every link that does not lead to a file gets the same answer', async () => {
  const answers = await Promise.all(
    [
      '/archives/op-1?token=forged',
      '/archives/op-2?token=good-link',
      '/archives/op-1',
      '/archives/op-1?token=',
      '/archives/op-1?token=good-link&token=good-link',
    ].map((path) => send(server, 'GET', path)),
  );
  for (const answer of answers) {
    expect(answer.status).toBe(404);
    expect(answer.json.error).toEqual({
      code: 'NOT_FOUND',
      message: 'There is nothing to download at this link, or no longer.',
      requestId: answer.headers['x-request-id'],
    });
  }
});

test('a client that goes away is reported with what was handed on, and the file is closed', async () => {
  let body: Readable | undefined;
  const { read } = download;
  download = {
    ...download,
    async read(range) {
      const opened = await read(range);
      body = opened;
      return opened;
    },
  };
  const socket = await openSocket(server);
  socket.write(head('GET', LINK, {}));
  await new Promise((received) => socket.once('data', received));
  socket.destroy();
  await until(() => served.length === 1 && body?.destroyed === true);
  expect(served[0]).toBeGreaterThan(0n);
  expect(isWhole).toBe(false);
});

test('a client that goes away before anything is sent is reported too', async () => {
  const { promise: begun, resolve: tellBegun } = Promise.withResolvers<void>();
  const { promise: gone, resolve: tellGone } = Promise.withResolvers<void>();
  const { begin } = download;
  download = {
    ...download,
    async begin() {
      tellBegun();
      await gone;
      return begin();
    },
  };
  const socket = await openSocket(server);
  socket.write(head('GET', LINK, {}));
  await begun;
  socket.destroy();
  await until(() => server.log.some((line) => line.aborted === true));
  tellGone();
  await until(() => served.length === 1);
  expect([served[0], isWhole]).toEqual([0n, false]);
});

test('a file that cannot be opened is a 503 in JSON, with nothing of the file in its headers, and nothing on record as given out', async () => {
  download = { ...download, read: () => Promise.reject(new Error(`no store at ${directory}`)) };
  const answer = await send(server, 'GET', LINK);
  expect(answer.status).toBe(503);
  expect(answer.json.error.code).toBe('NOT_READY');
  expect([served, isWhole]).toEqual([[0n], false]);
  for (const name of ['content-disposition', 'etag', 'accept-ranges'])
    expect(answer.headers[name]).toBeUndefined();
  expect(answer.text).not.toContain(directory);
});

test('a file shorter than recorded ends in a broken connection, never in what looks like the whole', async () => {
  download = { ...download, sizeBytes: BigInt(archive.length + 1) };
  await expect(send(server, 'GET', LINK)).rejects.toThrow();
  await until(() => server.log.some((line) => line.msg === 'the archive is shorter or longer than recorded'));
});

test('what cannot be put on record is not given out: 503, and not a byte of the file', async () => {
  let isOpened = false;
  download = {
    ...download,
    begin: () => Promise.reject(new Error('database is down')),
    read() {
      isOpened = true;
      throw new Error('unreachable');
    },
  };
  const answer = await send(server, 'GET', LINK);
  expect([answer.status, answer.json.error.code, isOpened]).toEqual([503, 'NOT_READY', false]);
  expect(answer.headers['content-disposition']).toBeUndefined();
  expect(server.log.some((line) => line.msg === 'recording the download failed')).toBe(true);
});

test('a failure to record how a download ended is logged, and the download stands', async () => {
  download = { ...download, begin: async () => () => Promise.reject(new Error('database is down')) };
  expect((await fetchBytes()).bytes).toHaveLength(archive.length);
  await until(() => server.log.some((line) => line.msg === 'recording the end of the download failed'));
});
