import { createHash, randomBytes } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { loadSampleHistory, SAMPLE_LABEL } from '../../src/development/sample-history.ts';
import { openSocket } from '../http/support/requests.ts';
import { noFilesBelow } from '../support/files-below.ts';
import { type S3Server, startS3Server } from '../support/s3-server.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const BUCKET = 'state-archives';
const MEBIBYTE = 1024 * 1024;
const environmentBefore = { ...process.env };
let server: S3Server;
let service: TestService;
let archive: Buffer;

beforeAll(async () => {
  server = await startS3Server();
  server.createBucket(BUCKET);
  Object.assign(process.env, server.environment);
  service = await startTestService({
    ARCHIVE_STORE_URL: `s3://${BUCKET}`,
    AWS_ENDPOINT_URL_S3: server.endpoint,
    LINK_KEYS: 'k'.repeat(32),
    MAX_ARCHIVE_BYTES: String(64 * MEBIBYTE),
    MAX_UPLOADS_PER_PRINCIPAL: '3',
    MAX_UPLOAD_BYTES_PER_PRINCIPAL: String(128 * MEBIBYTE),
  });
  await loadSampleHistory(service.database);
  archive = await exportState(SAMPLE_LABEL);
});
afterAll(async () => {
  await service.stop();
  process.env = environmentBefore;
  await server.close();
});
afterEach(async () => {
  server.heal();
  await service.database.pool.query(
    `update state_archive.upload set expires_at = now() - interval '1 second'`,
  );
});

async function query(text: string, values: unknown[] = []) {
  return (await service.database.pool.query(text, values)).rows;
}

async function exportState(name: string): Promise<Buffer> {
  const answer = await service.ask<{
    exportStateArchive: { operation: { archive: { downloadUrl: string } } };
  }>(
    'mutation ($name: String!) { exportStateArchive(input: { name: $name }) { operation { archive { downloadUrl } } } }',
    { variables: { name } },
  );
  const file = await fetch(answer.data.exportStateArchive.operation.archive.downloadUrl);
  return Buffer.from(await file.arrayBuffer());
}

interface Staged {
  readonly upload: {
    readonly id: string;
    readonly url: string;
    readonly method: string;
    readonly headers: readonly { readonly name: string; readonly value: string }[];
  } | null;
  readonly userErrors: readonly { readonly code: string; readonly path: readonly string[] | null }[];
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

async function tryToStage(input: object, token?: string): Promise<Staged> {
  const answer = await service.ask<{ stageStateArchiveUpload: Staged }>(
    `mutation ($input: StageStateArchiveUploadInput!) { stageStateArchiveUpload(input: $input) {
      upload { id url method headers { name value } expiresAt } userErrors { code path } } }`,
    { variables: { input }, ...(token !== undefined && { token }) },
  );
  return answer.data.stageStateArchiveUpload;
}

async function stage(bytes: Buffer, more: object = {}): Promise<NonNullable<Staged['upload']>> {
  const input = { byteLength: String(bytes.length), sha256: sha256(bytes), fileName: 'a/b.klstate', ...more };
  const { upload, userErrors } = await tryToStage(input);
  expect(userErrors).toEqual([]);
  if (upload === null) throw new Error('There is no upload.');
  return upload;
}

const TUS = { 'tus-resumable': '1.0.0' };

function patch(
  url: string,
  offset: number,
  body: Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) {
  const all = {
    ...TUS,
    'upload-offset': String(offset),
    'content-type': 'application/offset+octet-stream',
    ...headers,
  };
  const given = Object.entries(all).filter(([, value]) => value !== '');
  return fetch(url, { method: 'PATCH', headers: Object.fromEntries(given), body });
}

async function offsetOf(url: string): Promise<number> {
  const answer = await fetch(url, { method: 'HEAD', headers: TUS });
  expect(answer.status).toBe(200);
  return Number(answer.headers.get('upload-offset'));
}

interface Imported {
  readonly operation: { readonly status: string; readonly error: { readonly code: string } | null } | null;
  readonly userErrors: readonly { readonly code: string; readonly path: readonly string[] | null }[];
}

async function importUpload(uploadId: string, more: object = {}, token?: string): Promise<Imported> {
  const answer = await service.ask<{ importStateArchive: Imported }>(
    `mutation ($input: ImportStateArchiveInput!) { importStateArchive(input: $input) {
      operation { id status error { code } } userErrors { code path } } }`,
    {
      variables: { input: { uploadId, allowSharedLineage: true, waitSeconds: 25, ...more } },
      ...(token !== undefined && { token }),
    },
  );
  return answer.data.importStateArchive;
}

const codeOf = async (answer: Response) => ((await answer.json()) as { error: { code: string } }).error.code;
const codesOf = ({ userErrors }: Pick<Staged, 'userErrors'>) => userErrors.map(({ code }) => code);
const pieces = (id: string) => server.keys(BUCKET).filter((key) => key.startsWith(`uploads/${id}`));

/** They go when an operation is over already. */
const piecesAreGone = (id: string) => until(() => pieces(id).length === 0);

/** A request that sends to an upload. */
interface Sending {
  /** What it was answered so far: nothing, while it may send. */
  readonly answer: string;
  /** More of the bytes. */
  send(bytes: Uint8Array): void;
  /** Ends the connection. While nobody does, and nothing more is sent, it is that of a sender who went without a word. */
  cut(): void;
}

/** Begins to send by a request that has more to send than it ever does: it ends when it is cut, or answered. */
async function beginToSend(url: string, offset: number, bytes: Uint8Array): Promise<Sending> {
  const { pathname, search, port } = new URL(url);
  const socket = await openSocket({ port: Number(port) });
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  socket.on('close', () => {
    answer ||= 'the connection was ended';
  });
  socket.write(
    `PATCH ${pathname}${search} HTTP/1.1\r\nhost: x\r\ntus-resumable: 1.0.0\r\nupload-offset: ${offset}\r\n` +
      'content-type: application/offset+octet-stream\r\ntransfer-encoding: chunked\r\n\r\n',
  );
  const send = (some: Uint8Array) => {
    socket.write(`${some.length.toString(16)}\r\n`);
    socket.write(some);
    socket.write('\r\n');
  };
  send(bytes);
  return {
    get answer() {
      return answer;
    },
    send,
    cut: () => socket.destroy(),
  };
}

async function receivedBytes(id: string): Promise<number> {
  const [row] = await query('select received_bytes from state_archive.upload where id = $1', [id]);
  return Number(row.received_bytes);
}

/** Waits until so much of an upload is on record. Once it is answered, nothing more of what a request sends ever will be. */
async function isOnRecord(id: string, bytes: number, sending: Sending): Promise<void> {
  await until(async () => {
    expect(sending.answer).toBe('');
    return (await receivedBytes(id)) >= bytes;
  });
}

/** The sizes of the files in a directory and in those below it. */
async function sizesBelow(directory: string): Promise<number[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const found = entries.map(({ parentPath, name }) => stat(join(parentPath, name)).catch(() => null));
  return (await Promise.all(found)).flatMap((file) => (file?.isFile() ? [file.size] : []));
}

/** Sends bytes, and cuts the connection when so many of the upload are on record. */
async function cut({ id, url }: { id: string; url: string }, offset: number, bytes: Buffer, at: number) {
  const sending = await beginToSend(url, offset, bytes);
  await isOnRecord(id, at, sending);
  sending.cut();
}

/** What is in the store of an upload, put together. */
async function contentOf(id: string): Promise<Buffer> {
  const { rows } = await service.database.pool.query(
    'select object_key from state_archive.upload_piece where upload_id = $1 order by start_byte',
    [id],
  );
  return Buffer.concat(rows.map((row) => server.object(BUCKET, `uploads/${row.object_key}`)));
}

describe('a staged upload', () => {
  test('that is sent in one request is imported, is used up by it, and leaves nothing in the store', async () => {
    const { id, url, method, headers } = await stage(archive);
    const sent = await fetch(url, {
      method,
      headers: Object.fromEntries(headers.map(({ name, value }) => [name, value])),
      body: new Uint8Array(archive),
    });
    expect([sent.status, sent.headers.get('upload-offset')]).toEqual([204, String(archive.length)]);
    expect(await importUpload(id, { name: 'one-request' })).toMatchObject({
      operation: { status: 'SUCCEEDED' },
      userErrors: [],
    });
    await piecesAreGone(id);
    expect(codesOf(await importUpload(id, { name: 'once-more' }))).toEqual(['UPLOAD_EXPIRED']);
    expect((await fetch(url, { method: 'HEAD', headers: TUS })).status).toBe(404);
  });

  test('goes on where it was cut, wherever that was, and arrives whole', async () => {
    const bytes = randomBytes(20 * MEBIBYTE);
    const staged = await stage(bytes);
    const { id, url } = staged;
    const some = 8 * MEBIBYTE + 100_000;
    await cut(staged, 0, bytes.subarray(0, some), 8 * MEBIBYTE);
    const first = await offsetOf(url);
    expect(first).toBeGreaterThanOrEqual(8 * MEBIBYTE);
    await cut(staged, first, bytes.subarray(first, first + some), first + 8 * MEBIBYTE);
    const second = await offsetOf(url);
    expect(second).toBeGreaterThanOrEqual(first + 8 * MEBIBYTE);
    expect(codesOf(await importUpload(id, { name: 'cut' }))).toEqual(['UPLOAD_INCOMPLETE']);
    const rest = await patch(url, second, new Uint8Array(bytes.subarray(second)));
    expect(rest.status).toBe(204);
    expect((await contentOf(id)).equals(bytes)).toBe(true);
  });

  test('of several parts is imported', async () => {
    const { id, url } = await stage(archive);
    const third = Math.floor(archive.length / 3);
    await patch(url, 0, new Uint8Array(archive.subarray(0, third)));
    await patch(url, third, new Uint8Array(archive.subarray(third)));
    expect(await importUpload(id, { name: 'of-parts' })).toMatchObject({
      operation: { status: 'SUCCEEDED' },
    });
    await piecesAreGone(id);
  });

  test('keeps what came before the store, or the database, failed, however they fail', async () => {
    const bytes = randomBytes(20 * MEBIBYTE);
    const { id, url } = await stage(bytes);
    const isPiece = ({ method, key }: { method: string; key: string }) =>
      method === 'PUT' && key.startsWith('uploads/');
    let puts = 0;
    server.inject({
      on: (request) => isPiece(request) && ++puts > 1,
      how: 'before',
      times: Number.POSITIVE_INFINITY,
    });
    const failed = await patch(url, 0, new Uint8Array(bytes));
    expect([failed.status, await codeOf(failed)]).toEqual([503, 'UNAVAILABLE']);
    server.heal();
    expect(await offsetOf(url)).toBe(8 * MEBIBYTE);
    server.inject({ on: isPiece, how: 'after', times: 2 });
    const rest = await patch(url, 8 * MEBIBYTE, new Uint8Array(bytes.subarray(8 * MEBIBYTE)));
    expect(rest.status).toBe(204);
    expect((await contentOf(id)).equals(bytes)).toBe(true);
  });

  test('takes each byte once, though two requests send it at the same time', async () => {
    const { id, url } = await stage(archive);
    const answers = await Promise.all([1, 2, 3].map(() => patch(url, 0, new Uint8Array(archive))));
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 409, 409]);
    expect(await importUpload(id, { name: 'at-the-same-time' })).toMatchObject({
      operation: { status: 'SUCCEEDED' },
    });
    await piecesAreGone(id);
  });

  test('that is not the file announced is refused before anything looks into it', async () => {
    const { id, url } = await stage(archive, { sha256: '0'.repeat(64) });
    expect((await patch(url, 0, new Uint8Array(archive))).status).toBe(204);
    expect(await importUpload(id, { name: 'other' })).toMatchObject({
      operation: { status: 'FAILED', error: { code: 'ARCHIVE_DIGEST_MISMATCH' } },
    });
    await piecesAreGone(id);
  });

  test('stays to be used when an import is refused, and an import asked for again by its key is the same', async () => {
    const { id, url } = await stage(archive);
    await patch(url, 0, new Uint8Array(archive));
    expect(codesOf(await importUpload(id, { name: SAMPLE_LABEL }))).toEqual(['STATE_ALREADY_EXISTS']);
    expect(codesOf(await importUpload(id, { name: 'x', expectedSha256: '0'.repeat(64) }))).toEqual([
      'ARCHIVE_DIGEST_MISMATCH',
    ]);
    const options = { name: 'by-key', idempotencyKey: 'the key' };
    const first = await importUpload(id, options);
    expect(first).toMatchObject({ operation: { status: 'SUCCEEDED' } });
    expect(await importUpload(id, options)).toEqual(first);
  });

  test('is imported once, though it is asked for twice at the same time', async () => {
    const { id, url } = await stage(archive);
    await patch(url, 0, new Uint8Array(archive));
    const outcomes = await Promise.all(['twice-1', 'twice-2'].map((name) => importUpload(id, { name })));
    expect(outcomes.flatMap(codesOf)).toEqual(['UPLOAD_EXPIRED']);
    expect(outcomes.map(({ operation }) => operation?.status ?? 'none').sort()).toEqual([
      'SUCCEEDED',
      'none',
    ]);
  });

  test('serves dry runs, at the same time too, and then the one import, each reading the same bytes', async () => {
    const { id, url } = await stage(archive);
    await patch(url, 0, new Uint8Array(archive));
    const until = (await query('select expires_at from state_archive.upload where id = $1', [id]))[0];
    const dryRuns = await Promise.all(
      ['dry-1', 'dry-2'].map((name) => importUpload(id, { name, dryRun: true })),
    );
    expect(dryRuns.map(({ operation }) => operation?.status)).toEqual(['SUCCEEDED', 'SUCCEEDED']);
    expect(pieces(id)).toHaveLength(1);
    expect((await query('select expires_at from state_archive.upload where id = $1', [id]))[0]).toEqual(
      until,
    );
    const bob = await service.token({ subject: 'bob@test' });
    expect(codesOf(await importUpload(id, { name: 'bobs', dryRun: true }, bob))).toEqual(['UPLOAD_EXPIRED']);

    expect(await importUpload(id, { name: 'dry-1' })).toMatchObject({ operation: { status: 'SUCCEEDED' } });
    await piecesAreGone(id);
    for (const dryRun of [true, false]) {
      expect(codesOf(await importUpload(id, { name: 'dry-3', dryRun }))).toEqual(['UPLOAD_EXPIRED']);
    }
  });

  test('is for nobody but whoever announced it', async () => {
    const { id, url } = await stage(archive);
    await patch(url, 0, new Uint8Array(archive));
    const bob = await service.token({ subject: 'bob@test' });
    expect(codesOf(await importUpload(id, { name: 'bobs' }, bob))).toEqual(['UPLOAD_EXPIRED']);
  });

  test('is gone when it is ended, or when its time is past', async () => {
    const ended = await stage(archive);
    await patch(ended.url, 0, new Uint8Array(archive));
    expect((await fetch(ended.url, { method: 'DELETE', headers: TUS })).status).toBe(204);
    expect((await fetch(ended.url, { method: 'HEAD', headers: TUS })).status).toBe(404);
    expect(pieces(ended.id)).toEqual([]);

    const past = await stage(archive);
    await patch(past.url, 0, new Uint8Array(archive));
    await service.database.pool.query('update state_archive.upload set expires_at = now() where id = $1', [
      past.id,
    ]);
    expect((await patch(past.url, 0, new Uint8Array(archive))).status).toBe(410);
    expect(codesOf(await importUpload(past.id, { name: 'past' }))).toEqual(['UPLOAD_EXPIRED']);
  });
});

describe('a staged upload that goes on at another replica', () => {
  const PIECE = 8 * MEBIBYTE;
  const REMAINDER = 100_000;
  const bytes = randomBytes(20 * MEBIBYTE);
  let otherReplica: string;
  beforeAll(async () => {
    otherReplica = await service.startReplica();
  });

  /** An upload of which a piece is on record, by a request to the first replica that has sent more than that. */
  async function begin() {
    const { id, url } = await stage(bytes);
    const other = new URL(url);
    other.host = new URL(otherReplica).host;
    const first = await beginToSend(url, 0, bytes.subarray(0, PIECE + REMAINDER));
    await isOnRecord(id, PIECE, first);
    // A connection that is cut takes with it what nobody has read yet.
    await until(async () => (await sizesBelow(service.dataDirectory)).includes(REMAINDER));
    return { id, urls: [url, other.href] as const, first };
  }

  /** Sends what is missing as a client does, in turns to the replicas: asks where it goes on, and sends from there. */
  async function sendTheRest(urls: readonly [string, string]): Promise<void> {
    for (let turn = 0; turn < 10; turn += 1) {
      const url = urls[turn % 2] as string;
      const offset = await offsetOf(url);
      if (offset === bytes.length) return;
      const { status } = await patch(url, offset, new Uint8Array(bytes.subarray(offset)));
      expect([204, 409]).toContain(status);
    }
    throw new Error('It never became whole.');
  }

  /** Waits until a piece was removed of whoever was late. */
  const isRefused = (id: string) =>
    until(() => server.requests.some((asked) => asked.startsWith(`DELETE uploads/${id}`)));

  /** Looks whether all bytes are there once, and nothing of the upload is in the store that is not on record. */
  async function hasArrived(id: string): Promise<void> {
    expect((await contentOf(id)).equals(bytes)).toBe(true);
    const recorded = await query('select object_key from state_archive.upload_piece where upload_id = $1', [
      id,
    ]);
    await until(() => pieces(id).length === recorded.length);
  }

  test('arrives whole, though its sender is cut again and again, and asks the next before that is noticed', async () => {
    const { id, urls, first } = await begin();
    let sending = first;
    for (let turn = 1; turn <= 20; turn += 1) {
      const url = urls[turn % 2] as string;
      const offset = await offsetOf(url);
      sending.cut();
      sending = await beginToSend(url, offset, bytes.subarray(offset, offset + MEBIBYTE));
    }
    sending.cut();
    await sendTheRest(urls);
    await hasArrived(id);
  });

  test('waits for no sender who went from the first without a word, and what was held there goes', async () => {
    const { id, urls, first } = await begin();
    expect(await offsetOf(urls[1])).toBe(PIECE);
    expect((await patch(urls[1], PIECE, new Uint8Array(bytes.subarray(PIECE)))).status).toBe(204);
    expect(first.answer).toBe('');
    first.cut();
    await isRefused(id);
    await hasArrived(id);
  });

  test('waits for no store in which the first is still putting what came, nor does who asks the first wait for ever', async () => {
    const { id, urls, first } = await begin();
    const putsOf = () => server.requests.filter((asked) => asked.startsWith(`PUT uploads/${id}`)).length;
    expect(putsOf()).toBe(1);
    server.inject({ on: ({ key }) => key.startsWith(`uploads/${id}`), how: 'held', times: 1 });
    first.cut();
    await until(() => putsOf() === 2);
    expect(await offsetOf(urls[0])).toBe(PIECE);
    expect((await patch(urls[1], PIECE, new Uint8Array(bytes.subarray(PIECE)))).status).toBe(204);
    server.heal();
    await isRefused(id);
    await hasArrived(id);
  });

  test('is told so when the first puts on record what the other is sending', async () => {
    const { id, urls, first } = await begin();
    const offset = await offsetOf(urls[1]);
    const second = await beginToSend(urls[1], offset, bytes.subarray(offset, offset + MEBIBYTE));
    first.cut();
    await isOnRecord(id, PIECE + REMAINDER, second);
    second.send(bytes.subarray(offset + MEBIBYTE, offset + PIECE));
    await until(() => second.answer !== '');
    expect(second.answer).toContain('409 Conflict');
    second.cut();
    await sendTheRest(urls);
    await hasArrived(id);
  });

  test('is told so when its first sender wakes up, and sends on', async () => {
    const { id, urls, first } = await begin();
    await sendTheRest([urls[1], urls[1]]);
    first.send(bytes.subarray(PIECE + REMAINDER, 2 * PIECE));
    await until(() => first.answer !== '');
    expect(first.answer).toContain('409 Conflict');
    first.cut();
    await hasArrived(id);
  });
});

describe('the link of an upload', () => {
  test('is looked at in every request, and is good for no other upload', async () => {
    const [one, other] = [await stage(archive), await stage(archive)];
    const moved = one.url.replace(one.id, other.id);
    for (const url of [moved, one.url.replace(/token=.*/, 'token=x'), one.url.replace(/\?.*/, '')]) {
      expect((await fetch(url, { method: 'HEAD', headers: TUS })).status).toBe(404);
      expect((await patch(url, 0, new Uint8Array(archive))).status).toBe(404);
      expect((await fetch(url, { method: 'DELETE', headers: TUS })).status).toBe(404);
    }
    expect(await offsetOf(one.url)).toBe(0);
  });

  test('is in no line of the log', async () => {
    const { url } = await stage(archive);
    await patch(url, 0, new Uint8Array(archive));
    await patch(url, 0, new Uint8Array(archive));
    const token = new URL(url).searchParams.get('token') ?? '';
    expect(service.log.join('')).not.toContain(token);
    expect(service.log.join('')).not.toContain(token.split('.')[2]);
  });
});

describe('what a request may send', () => {
  test.each([
    ['without the version of the protocol', { 'tus-resumable': '' }, 412, 'PRECONDITION_FAILED'],
    ['of another version', { 'tus-resumable': '0.2.2' }, 400, 'BAD_REQUEST'],
    ['of another media type', { 'content-type': 'text/plain' }, 400, 'BAD_REQUEST'],
    ['elsewhere than where it goes on', { 'upload-offset': '7' }, 409, 'CONFLICT'],
    ['at no number', { 'upload-offset': 'x' }, 400, 'BAD_REQUEST'],
    ['without saying where it goes on', { 'upload-offset': '' }, 400, 'BAD_REQUEST'],
  ])('%s is refused in JSON, and nothing is received', async (_what, headers, status, code) => {
    const { url } = await stage(archive);
    const refused = await patch(url, 0, new Uint8Array(archive), headers);
    expect([refused.status, await codeOf(refused)]).toEqual([status, code]);
    expect(await offsetOf(url)).toBe(0);
  });

  test('is never more than was announced', async () => {
    const { url } = await stage(archive.subarray(0, 100));
    const declared = await patch(url, 0, new Uint8Array(archive));
    expect(declared.status).toBe(413);
    const streamed = await fetch(url, {
      method: 'PATCH',
      headers: { ...TUS, 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
      body: ReadableStream.from([new Uint8Array(archive)]),
      duplex: 'half',
    } as RequestInit);
    expect(streamed.status).toBe(413);
    expect(await offsetOf(url)).toBeLessThanOrEqual(100);
  });
});

describe('what a caller may announce', () => {
  test.each([
    ['no bytes', { byteLength: '0' }, 'INVALID_INPUT'],
    ['more than an archive may have', { byteLength: String(64 * MEBIBYTE + 1) }, 'ARCHIVE_TOO_LARGE'],
  ])('%s is refused', async (_what, more, code) => {
    const refused = await tryToStage({ sha256: '0'.repeat(64), ...more });
    expect(refused).toMatchObject({ upload: null, userErrors: [{ code, path: ['input', 'byteLength'] }] });
  });

  test('is bounded in number and in bytes, and what is used or ended does not count', async () => {
    const small = { byteLength: '1', sha256: '0'.repeat(64) };
    const large = { ...small, byteLength: String(64 * MEBIBYTE) };
    const [first] = [await tryToStage(large), await tryToStage(large)];
    expect(codesOf(await tryToStage(small))).toEqual(['QUOTA_EXCEEDED']);
    expect((await fetch(first.upload?.url ?? '', { method: 'DELETE', headers: TUS })).status).toBe(204);
    for (let index = 0; index < 2; index += 1) expect(codesOf(await tryToStage(small))).toEqual([]);
    expect(codesOf(await tryToStage(small))).toEqual(['QUOTA_EXCEEDED']);
    const bob = await service.token({ subject: 'bob@test' });
    expect(codesOf(await tryToStage(small, bob))).toEqual([]);
  });

  test('needs the right to import', async () => {
    const reader = await service.token({ scopes: ['state.read'] });
    const answer = await service.ask(
      `mutation { stageStateArchiveUpload(input: { byteLength: "1", sha256: "${'0'.repeat(64)}" }) { upload { id } } }`,
      { token: reader },
    );
    expect(answer.denials).toEqual(['stageStateArchiveUpload: FORBIDDEN']);
  });
});

test('a process that works on uploads leaves nothing on its own disk', async () => {
  await noFilesBelow(join(service.dataDirectory, 'scratch'));
});
