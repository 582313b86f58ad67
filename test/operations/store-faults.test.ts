import { createHash } from 'node:crypto';
import { CreateMultipartUploadCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import { housekeep } from '../../src/operations/housekeeping.ts';
import { importStagedArchive } from '../../src/operations/import-state-archive.ts';
import type { OperationRecord } from '../../src/operations/operation-records.ts';
import { openUpload, stageUpload } from '../../src/operations/staged-uploads.ts';
import { partOf } from '../../src/operations/store-parts.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import { type S3Fault, type S3Request, type S3Server, startS3Server } from '../support/s3-server.ts';
import { type Backend, createCaller, ended, openBackend, operationOf, runExport } from './support/backend.ts';
import { post } from './support/histories.ts';

const BUCKET = 'state-archives';
const HOUR = 3_600_000;
const [document = ''] = loadTerraformHistory().map((version) => version.document);
const environmentBefore = { ...process.env };

let server: S3Server;
let backend: Backend;
let caller: Caller;
let archive: Buffer;
beforeAll(async () => {
  server = await startS3Server();
  server.createBucket(BUCKET);
  // Each try of the SDK's own that fails has it wait for longer before the next.
  Object.assign(process.env, server.environment, { AWS_MAX_ATTEMPTS: '2' });
  backend = await openBackend(undefined, undefined, {
    kind: 's3',
    bucket: BUCKET,
    prefix: '',
    hasOwnEndpoint: true,
    isAddressed: false,
  });
  caller = await createCaller(backend);
  await post(backend.database, caller, 'app', document);
  archive = contentOf(await runExport(backend, caller, 'app'));
});
afterEach(() => server.heal());
afterAll(async () => {
  await backend.close();
  process.env = environmentBefore;
  await server.close();
});

const query = async (text: string, values: unknown[] = []) =>
  (await backend.database.pool.query(text, values)).rows;
const keysOf = (id: string) => server.keys(BUCKET).filter((key) => key.includes(id));
const contentOf = ({ archive }: OperationRecord) => server.object(BUCKET, `archives/${archive?.objectKey}`);
const request = () => ({ caller, requestId: 'request-1' });

async function announce(bytes: Buffer) {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const announced = { byteLength: BigInt(bytes.length), sha256, fileName: null };
  const { id, url } = await stageUpload(backend.services, request(), announced, 'http://x');
  return { id, token: new URL(url).searchParams.get('token') ?? '' };
}

async function send({ id, token }: { id: string; token: string }, bytes: Buffer): Promise<bigint> {
  const upload = await openUpload(backend.services, id, token);
  if (upload === null) throw new Error('The link is not good.');
  const at = await upload.receivedBytes();
  return upload.receive(
    at,
    (async function* () {
      yield bytes.subarray(Number(at));
    })(),
  );
}

async function importUpload(uploadId: string, label: string): Promise<OperationRecord> {
  const id = await importStagedArchive(backend.services, request(), uploadId, {
    label,
    onConflict: { kind: 'REFUSE' },
    allowSharedLineage: true,
    dryRun: false,
    expectedSha256: null,
    waitSeconds: 0,
    idempotencyKey: null,
  });
  await ended(backend.services, caller, id);
  return operationOf(backend, caller, id);
}

/** Lets the store and the turns of its housekeeping be so much older. */
async function letTimePass(milliseconds: number) {
  server.letTimePass(milliseconds);
  await query(`update state_archive.housekeeping set begun_at = begun_at - interval '1 hour'`);
}

const on = (method: string, area: string) => (asked: S3Request) =>
  asked.method === method && asked.key.startsWith(`${area}/`);
const isList = ({ method, key, query }: S3Request) => method === 'GET' && key === '' && !query.has('uploads');
const FAULTS = ['before', 'after', 'refused'] as const;
const FOREVER = Number.POSITIVE_INFINITY;

describe.each<[when: string, fault: Omit<S3Fault, 'on'>]>([
  ...FAULTS.map((how): [string, Omit<S3Fault, 'on'>] => [`once, ${how}`, { how, times: 1 }]),
  // The SDK gives up after two. What it is refused it would wait for, for longer than a test may.
  ['until it is given up, before', { how: 'before', times: 3 }],
  ['until it is given up, after', { how: 'after', times: 3 }],
])('a call to the store that fails %s', (_when, fault) => {
  test('leaves an export that succeeds, with one archive of one attempt', async () => {
    server.inject({ on: on('PUT', 'archives'), ...fault });
    const exported = await runExport(backend, caller, 'app');
    expect(exported).toMatchObject({ status: 'SUCCEEDED', error: null });
    expect(createHash('sha256').update(contentOf(exported)).digest('hex')).toBe(exported.archive?.sha256);
    // What an attempt before has left, of which nobody could be told, is found by the housekeeping.
    await letTimePass(0);
    await housekeep(backend.services);
    expect(keysOf(exported.id)).toEqual([`archives/${exported.archive?.objectKey}`]);
  });

  test('leaves an upload that goes on, and an import that succeeds once, and no piece', async () => {
    const upload = await announce(archive);
    server.inject({ on: on('PUT', 'uploads'), ...fault });
    for (let sent = 0n; sent < archive.length; ) sent = await send(upload, archive).catch(() => 0n);
    server.inject({ on: on('GET', 'uploads'), ...fault });
    let imported: OperationRecord;
    try {
      imported = await importUpload(upload.id, `of ${upload.id}`);
    } catch {
      // What fails before there is an operation leaves the upload to be used.
      imported = await importUpload(upload.id, `of ${upload.id}`);
    }
    expect(imported).toMatchObject({ status: 'SUCCEEDED', error: null });
    await letTimePass(0);
    await housekeep(backend.services);
    expect(keysOf(upload.id)).toEqual([]);
    expect(await query('select id from state_archive.upload where id = $1', [upload.id])).toEqual([]);
  });

  test.each([
    ['looks for archives', isList],
    ['removes an archive', on('DELETE', 'archives')],
    ['removes a piece', on('DELETE', 'uploads')],
  ])('while the housekeeping %s leaves it to the next', async (_what, isHit) => {
    const exported = await runExport(backend, caller, 'app');
    const upload = await announce(Buffer.from('some bytes'));
    await send(upload, Buffer.from('some bytes'));
    await query('update state_archive.operation set expires_at = now() where id = $1', [exported.id]);
    await query('update state_archive.upload set expires_at = now() where id = $1', [upload.id]);
    await letTimePass(0);
    server.inject({ on: isHit, ...fault });
    await housekeep(backend.services);
    server.heal();
    await letTimePass(0);
    await housekeep(backend.services);
    expect([...keysOf(exported.id), ...keysOf(upload.id)]).toEqual([]);
  });
});

describe('the housekeeping of the store', () => {
  test('is done by one process at a time, however many there are', async () => {
    await letTimePass(0);
    const before = server.requests.length;
    await Promise.all([1, 2, 3].map(() => housekeep(backend.services)));
    const lists = server.requests.slice(before).filter((asked) => asked === 'GET ');
    // Of archives and of uploads one each, and as many of what was begun and not completed.
    expect(lists).toHaveLength(4);
  });

  test('goes on behind what it has looked at, and begins anew at the end', async () => {
    const { archives } = backend.services.store;
    for (let count = 0; count < 3; count += 1) await runExport(backend, caller, 'app');
    const keys = server
      .keys(BUCKET)
      .filter((key) => key.startsWith('archives/'))
      .map((key) => key.slice(9));
    const seen: string[] = [];
    let after = '';
    do {
      const part = partOf(archives.list('', after), 2);
      const found: string[] = [];
      for await (const { key } of part.objects) found.push(key);
      expect(found.length).toBeLessThanOrEqual(2);
      seen.push(...found);
      after = part.next();
    } while (after !== '');
    expect(seen).toEqual(keys);
  });

  test('keeps its place when it fails, and the next turn has it', async () => {
    await letTimePass(0);
    await query(`update state_archive.housekeeping set position = '5' where task = 'archives'`);
    server.inject({ on: isList, how: 'before', times: FOREVER });
    await housekeep(backend.services);
    const place = () => query(`select position from state_archive.housekeeping where task = 'archives'`);
    expect(await place()).toEqual([{ position: '5' }]);
    server.heal();
    await letTimePass(0);
    await housekeep(backend.services);
    expect(await place()).toEqual([{ position: '' }]);
  });

  test('aborts what was begun and never completed, when it is old', async () => {
    const client = new S3Client({ forcePathStyle: true });
    for (const area of ['archives', 'uploads']) {
      await client.send(new CreateMultipartUploadCommand({ Bucket: BUCKET, Key: `${area}/begun` }));
    }
    client.destroy();
    for (const [age, left] of [
      [0, 2],
      [2 * HOUR, 0],
    ] as const) {
      await letTimePass(age);
      await housekeep(backend.services);
      expect(server.openUploads).toBe(left);
    }
  });
});

test('the export of a history that was to be replaced goes when its import is over and has replaced nothing by it', async () => {
  const parts = await Promise.all([1, 2, 3].map(() => runExport(backend, caller, 'app')));
  const wholes = [
    ['FAILED', null],
    ['SUCCEEDED', parts[1]?.id],
    ['RUNNING', null],
  ] as const;
  for (const [index, [status, replaced]] of wholes.entries()) {
    const { rows } = await backend.database.pool.query(
      `insert into state_archive.operation (id, kind, status, tenant_id, workspace_id, environment_id, state_name,
         state_label, actor, subject, replaced_operation_id, heartbeat_at)
       values (gen_random_uuid(), 'IMPORT', $1, $2, 'w', 'e', 'x', 'x', 'ann', 'ann', $3, now()) returning id`,
      [status, caller.namespace.tenantId, replaced ?? null],
    );
    await query('update state_archive.operation set part_of = $2 where id = $1', [
      parts[index]?.id,
      rows[0].id,
    ]);
  }
  await housekeep(backend.services);
  expect(parts.map(({ id }) => keysOf(id).length)).toEqual([0, 1, 1]);
});
