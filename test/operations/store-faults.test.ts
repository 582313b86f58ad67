import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { CreateMultipartUploadCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import { setLegalHold } from '../../src/operations/archive-retention.ts';
import { cancelOperation } from '../../src/operations/cancel-operation.ts';
import { downloadUrl, openArchive } from '../../src/operations/downloads.ts';
import { housekeep, sweepStore } from '../../src/operations/housekeeping.ts';
import { importStagedArchive } from '../../src/operations/import-state-archive.ts';
import type { OperationRecord } from '../../src/operations/operation-records.ts';
import { openUpload, stageUpload, UploadRefusedError } from '../../src/operations/uploads.ts';
import { toUserError } from '../../src/operations/user-error.ts';
import { StoreUnavailableError } from '../../src/store/object-store.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import { type S3Fault, type S3Request, type S3Server, startS3Server } from '../support/s3-server.ts';
import { until } from '../support/until.ts';
import {
  type Backend,
  createCaller,
  ended,
  openBackend,
  operationOf,
  runExport,
  runImport,
} from './support/backend.ts';
import { post } from './support/histories.ts';

const BUCKET = 'state-archives';
const MEBIBYTE = 1024 * 1024;
const [document = ''] = loadTerraformHistory().map((version) => version.document);
const environmentBefore = { ...process.env };

let server: S3Server;
let backend: Backend;
let caller: Caller;
let archive: Buffer;
beforeAll(async () => {
  server = await startS3Server();
  server.createBucket(BUCKET, { objectLock: true });
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
  // Random, so that its archive is too large for one part.
  const large = { ...JSON.parse(document), lineage: randomUUID(), resources: [] };
  large.outputs = { random: { value: randomBytes(9 * MEBIBYTE).toString('base64'), type: 'string' } };
  await post(backend.database, caller, 'large', JSON.stringify(large));
  archive = contentOf(await runExport(backend, caller, 'app'));
});
afterEach(() => server.heal());
afterAll(async () => {
  await backend.close();
  process.env = environmentBefore;
  await server.close();
});

const keysOf = (id: string) => server.keys(BUCKET).filter((key) => key.includes(id));
const contentOf = ({ archive }: OperationRecord) => server.object(BUCKET, `archives/${archive?.objectKey}`);
const request = () => ({ caller, requestId: 'request-1' });

async function announce(bytes: Buffer) {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const announced = { byteLength: BigInt(bytes.length), sha256, fileName: null };
  const { id, url } = await stageUpload(backend.services, request(), announced, 'http://x');
  return { id, token: new URL(url).searchParams.get('token') ?? '' };
}

async function beginParts(key: string): Promise<void> {
  const client = new S3Client({ forcePathStyle: true });
  await client.send(new CreateMultipartUploadCommand({ Bucket: BUCKET, Key: key }));
  client.destroy();
}

async function* piecesOf(bytes: Buffer) {
  yield Buffer.from(bytes);
}

async function send({ id, token }: { id: string; token: string }, bytes: Buffer): Promise<bigint> {
  const upload = await openUpload(backend.services, id, token);
  if (upload === null) throw new Error('The link is not good.');
  const at = await upload.receivedBytes();
  return upload.receive(at, piecesOf(bytes.subarray(Number(at))));
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
  await backend.query(`update state_archive.housekeeping set begun_at = begun_at - interval '1 hour'`);
}

const HOUR = 3_600_000;
const FOREVER = Number.POSITIVE_INFINITY;

/** A request that the service makes of the store while it does something, and what has to fail before there is any. */
type Step = [what: string, isOf: (asked: S3Request) => boolean, given?: S3Fault];
type Area = 'archives' | 'uploads';

const isIn = ({ key }: S3Request, area: Area) => key.startsWith(`${area}/`);
const isPut = (area: Area) => (asked: S3Request) =>
  asked.method === 'PUT' && isIn(asked, area) && asked.query.has('x-id', 'PutObject');
const isHead = (area: Area) => (asked: S3Request) => asked.method === 'HEAD' && isIn(asked, area);
const isGet = (area: Area) => (asked: S3Request) => asked.method === 'GET' && isIn(asked, area);
const isDelete = (area: Area) => (asked: S3Request) =>
  asked.method === 'DELETE' && isIn(asked, area) && !asked.query.has('uploadId');
const isList = ({ method, key, query }: S3Request) => method === 'GET' && key === '' && !query.has('uploads');
const isListOfBegun = ({ method, query }: S3Request) => method === 'GET' && query.has('uploads');
const isHold = ({ method, query }: S3Request) => method === 'PUT' && query.has('legal-hold');
const isBegin = ({ method, query }: S3Request) => method === 'POST' && query.has('uploads');
const isPart = ({ method, query }: S3Request) => method === 'PUT' && query.has('partNumber');
const isCompletion = ({ method, query }: S3Request) => method === 'POST' && query.has('uploadId');
const isAbort = ({ method, query }: S3Request) => method === 'DELETE' && query.has('uploadId');
/** The SDK gives up after two, and what is put is looked for then. */
const unanswered = (on: (asked: S3Request) => boolean): S3Fault => ({ on, how: 'after', times: 2 });
const failing = (on: (asked: S3Request) => boolean): S3Fault => ({ on, how: 'before', times: 2 });

/** What the SDK asks again for by itself is tried call by call in `test/store/s3-store.test.ts`. */
const FAULTS: [when: string, fault: Omit<S3Fault, 'on'>][] = [
  ['and loses its answer once', { how: 'after', times: 1 }],
  ['until it is given up, before it is done', { how: 'before', times: 3 }],
  ['until it is given up, when it was done', { how: 'after', times: 3 }],
];

/** Each step with each fault. */
const withFaults = (steps: readonly Step[]) =>
  steps.flatMap(([what, isOf, given]) => FAULTS.map(([when, fault]) => ({ what, when, isOf, fault, given })));
type Case = ReturnType<typeof withFaults>[number];

/** Has a step fail. @returns how often it has, to see that there was such a step. */
function breakStep({ isOf, fault, given }: Pick<Case, 'isOf' | 'fault' | 'given'>): () => number {
  let failed = 0;
  if (given !== undefined) server.inject(given);
  server.inject({ on: (asked) => isOf(asked) && ++failed > 0, ...fault });
  return () => failed;
}

/** Asks again whoever could not be told, as a client does. */
async function patiently<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  const answers: Answer[] = [];
  await until(async () => {
    try {
      return answers.push(await ask()) > 0;
    } catch (error) {
      expect(toUserError(error)?.code ?? error).toBe('OPERATION_INTERRUPTED');
      return false;
    }
  });
  return answers[0] as Answer;
}

/** Exports, and has what is to be tried again tried at once. */
async function exportImpatiently(label: string, legalHold = false): Promise<OperationRecord> {
  const { id } = await runExport(backend, caller, label, { legalHold, waitSeconds: 0 });
  await until(async () => {
    await backend.query(`update state_archive_queue.job set start_after = now() where state = 'retry'`);
    backend.services.worker.nudge();
    return !['PENDING', 'RUNNING'].includes((await operationOf(backend, caller, id)).status);
  });
  await ended(backend.services, caller, id);
  return operationOf(backend, caller, id);
}

/** Lets all that was left lying become old, and the housekeeping of the store look at it. */
async function tidyUp(): Promise<void> {
  server.heal();
  await letTimePass(2 * HOUR);
  await housekeep(backend.services);
}

describe('a store that fails while', () => {
  test.each(
    withFaults([
      ['the archive is put', isPut('archives')],
      ['it looks what became of that', isHead('archives'), unanswered(isPut('archives'))],
      ['the archive is held', isHold],
      ['it looks whether the archive is held', isHead('archives')],
    ]),
  )('$what, $when, leaves an export that succeeds, and one archive, which is held', async (step) => {
    const failures = breakStep(step);
    const exported = await exportImpatiently('app', true);
    await expectOneArchive(exported, failures);
    const { archives } = backend.services.store;
    expect(await archives.remove(exported.archive?.objectKey ?? '')).toBe(false);
  });

  test.each(
    withFaults([
      ['parts are begun', isBegin],
      ['a part is put', isPart],
      ['parts are completed', isCompletion],
      ['it looks what became of the parts', isHead('archives'), unanswered(isCompletion)],
      ['parts are aborted', isAbort, failing(isPart)],
    ]),
  )('$what, $when, leaves an export that succeeds, and one archive, and no part', async (step) => {
    const failures = breakStep(step);
    await expectOneArchive(await exportImpatiently('large'), failures);
  });

  async function expectOneArchive(exported: OperationRecord, failures: () => number): Promise<void> {
    expect(failures()).toBeGreaterThan(0);
    expect(exported).toMatchObject({ status: 'SUCCEEDED', error: null });
    expect(createHash('sha256').update(contentOf(exported)).digest('hex')).toBe(exported.archive?.sha256);
    await tidyUp();
    expect(keysOf(exported.id)).toEqual([`archives/${exported.archive?.objectKey}`]);
    expect([server.openUploads, server.hidden(BUCKET)]).toEqual([0, 0]);
  }

  test.each(
    withFaults([
      ['parts are aborted', isAbort],
      ['it looks whether the archive is held', isHead('archives')],
      ['the archive is removed', isDelete('archives')],
    ]),
  )('$what, $when, leaves nothing of an export that was cancelled', async (step) => {
    server.inject({ on: isPart, how: 'held', times: 1 });
    const { id } = await runExport(backend, caller, 'large', { waitSeconds: 0 });
    await until(() => server.openUploads === 1);
    breakStep(step);
    await cancelOperation(caller, id);
    await ended(backend.services, caller, id);
    server.heal();
    await until(async () => {
      await tidyUp();
      return keysOf(id).length + server.openUploads === 0;
    });
    expect(await operationOf(backend, caller, id)).toMatchObject({ status: 'CANCELLED', error: null });
  });

  test.each(
    withFaults([
      ['it is held, or no longer', isHold],
      ['it looks whether it is', isHead('archives')],
    ]),
  )('$what, $when, leaves an archive that is held as its record says', async (step) => {
    const { archives } = backend.services.store;
    const exported = await runExport(backend, caller, 'app');
    for (const legalHold of [true, false]) {
      const failures = breakStep(step);
      await patiently(() => setLegalHold(backend.services, request(), exported.id, legalHold));
      expect(failures()).toBeGreaterThan(0);
      server.heal();
      expect((await operationOf(backend, caller, exported.id)).retention.legalHold).toBe(legalHold);
      expect(await archives.remove(exported.archive?.objectKey ?? '')).toBe(!legalHold);
    }
  });

  test.each(
    withFaults([
      ['it looks for the archive', isHead('archives')],
      ['it reads the archive', isGet('archives')],
    ]),
  )('$what, $when, leaves a download that comes when it is asked for again', async (step) => {
    const exported = await runExport(backend, caller, 'app');
    const url = await downloadUrl(backend.services, exported, caller, 'http://x');
    const link = new URL(url ?? '').searchParams.get('token') ?? '';
    const failures = breakStep(step);
    const bytes = await patiently(async () => {
      const opened = await openArchive(backend.services, exported.id, link, 'request-1');
      if (opened === null) throw new Error('The link is not good.');
      return buffer(await opened.read());
    });
    expect(failures()).toBeGreaterThan(0);
    expect(bytes.equals(contentOf(exported))).toBe(true);
  });

  test.each(
    withFaults([
      ['a piece is put', isPut('uploads')],
      ['it looks what became of that', isHead('uploads'), unanswered(isPut('uploads'))],
      ['pieces are read', isGet('uploads')],
      ['pieces are looked for', isList],
      ['it looks whether a piece is held', isHead('uploads')],
      ['a piece is removed', isDelete('uploads')],
    ]),
  )('$what, $when, leaves an import that succeeds once, and no piece', async (step) => {
    const upload = await announce(archive);
    const failures = breakStep(step);
    await patiently(() => send(upload, archive));
    const imported = await patiently(() => importUpload(upload.id, `of ${upload.id}`));
    expect(imported).toMatchObject({ status: 'SUCCEEDED', error: null });
    await until(async () => {
      await tidyUp();
      return failures() > 0 && keysOf(upload.id).length === 0;
    });
    expect(await backend.query('select id from state_archive.upload where id = $1', [upload.id])).toEqual([]);
  });

  test.each(
    withFaults([
      ['it looks whether the piece is held', isHead('uploads')],
      ['the piece is removed', isDelete('uploads')],
    ]),
  )('$what, $when, leaves nothing of a piece that came too late', async (step) => {
    const upload = await announce(archive);
    const late = await openUpload(backend.services, upload.id, upload.token);
    await send(upload, archive);
    const failures = breakStep(step);
    const refusal = await late?.receive(0n, piecesOf(archive)).catch((error: unknown) => error);
    expect(failures()).toBeGreaterThan(0);
    const isTold = refusal instanceof UploadRefusedError && refusal.reason === 'moved';
    expect(isTold || refusal instanceof StoreUnavailableError).toBe(true);
    server.heal();
    expect(await importUpload(upload.id, `of ${upload.id}`)).toMatchObject({ status: 'SUCCEEDED' });
    await until(() => keysOf(upload.id).length === 0);
  });

  test.each(
    withFaults([
      ['the file is put', isPut('uploads')],
      ['it looks what became of that', isHead('uploads'), unanswered(isPut('uploads'))],
    ]),
  )('$what, $when, leaves an import of a file that came with its request, and no piece', async (step) => {
    const path = backend.services.scratch.path();
    await writeFile(path, archive, { mode: 0o600 });
    const before = server.keys(BUCKET).filter((key) => key.startsWith('uploads/'));
    const failures = breakStep(step);
    const label = `with-request-${randomUUID()}`;
    const imported = await patiently(() =>
      runImport(backend, caller, path, { label, allowSharedLineage: true }),
    );
    expect(failures()).toBeGreaterThan(0);
    expect(imported).toMatchObject({ status: 'SUCCEEDED', error: null });
    await backend.query('update state_archive.upload set expires_at = now()');
    await until(async () => {
      await tidyUp();
      return server.keys(BUCKET).filter((key) => key.startsWith('uploads/')).length === before.length;
    });
  });

  test.each(
    withFaults([
      ['looks for archives', isList],
      ['looks for what was begun', isListOfBegun],
      ['aborts what was begun', isAbort],
      ['looks whether an archive is held', isHead('archives')],
      ['lifts a hold that is nobody’s', isHold],
      ['removes an archive', isDelete('archives')],
      ['looks whether a piece is held', isHead('uploads')],
      ['removes a piece', isDelete('uploads')],
    ]),
  )('the housekeeping $what, $when, leaves it to the next', async (step) => {
    const [exported, held] = [
      await runExport(backend, caller, 'app'),
      await runExport(backend, caller, 'app'),
    ];
    await backend.services.store.archives.retention?.hold(held.archive?.objectKey ?? '', true);
    const upload = await announce(Buffer.from('some bytes'));
    await send(upload, Buffer.from('some bytes'));
    await backend.query('update state_archive.operation set expires_at = now() where id = any($1)', [
      [exported.id, held.id],
    ]);
    await backend.query('update state_archive.upload set expires_at = now() where id = $1', [upload.id]);
    for (const area of ['archives', 'uploads']) await beginParts(`${area}/begun`);
    await letTimePass(2 * HOUR);
    const failures = breakStep(step);
    await housekeep(backend.services);
    expect(failures()).toBeGreaterThan(0);
    await tidyUp();
    expect([exported, held, upload].flatMap(({ id }) => keysOf(id))).toEqual([]);
    expect([server.openUploads, server.hidden(BUCKET)]).toEqual([0, 0]);
  });
});

test('a bucket that refuses to hold an archive has none locked until a time: nothing is left of its export', async () => {
  server.inject({ on: isHold, how: 'denied', times: FOREVER });
  const retainUntil = new Date(Date.now() + 48 * HOUR).toISOString();
  const refused = await runExport(backend, caller, 'app', { legalHold: true, retainUntil });
  expect(refused).toMatchObject({ status: 'FAILED', error: { code: 'RETENTION_UNSUPPORTED' } });
  expect(keysOf(refused.id)).toEqual([]);
  expect(server.hidden(BUCKET)).toBe(0);
});

describe('the housekeeping of the store', () => {
  const placeOf = (task: string) =>
    backend.query('select position from state_archive.housekeeping where task = $1', [task]);

  test('is done by one process at a time, however many there are', async () => {
    const listsOf = async (processes: number) => {
      await letTimePass(0);
      const before = server.requests.length;
      await Promise.all(Array.from({ length: processes }, () => housekeep(backend.services)));
      return server.requests.slice(before).filter((asked) => asked === 'GET ').length;
    };
    const ofOne = await listsOf(1);
    // Of archives and of uploads one each at least, and as many of what was begun and not completed.
    expect(ofOne).toBeGreaterThanOrEqual(4);
    expect(await listsOf(3)).toBe(ofOne);
  });

  test('goes on behind what it has looked at, and begins anew at the end', async () => {
    const { archives } = backend.services.store;
    for (let count = 0; count < 3; count += 1) await runExport(backend, caller, 'app');
    const keys = server
      .keys(BUCKET)
      .filter((key) => key.startsWith('archives/'))
      .map((key) => key.slice(9));
    const parts: string[][] = [];
    const list: typeof archives.list = async function* (...which) {
      const part: string[] = [];
      parts.push(part);
      for await (const object of archives.list(...which)) {
        part.push(object.key);
        yield object;
      }
    };
    const store = { ...backend.services.store, archives: { ...archives, list } };
    let after = '';
    do after = await sweepStore({ ...backend.services, store }, 'archives', after, 2);
    while (after !== '');
    expect(Math.max(...parts.map(({ length }) => length))).toBe(2);
    expect(parts.flat()).toEqual(keys);
  });

  test('keeps its place when it fails, and the next turn has it', async () => {
    await letTimePass(0);
    await backend.query(`update state_archive.housekeeping set position = '5' where task = 'archives'`);
    server.inject({ on: isList, how: 'before', times: FOREVER });
    await housekeep(backend.services);
    expect(await placeOf('archives')).toEqual([{ position: '5' }]);
    server.heal();
    await letTimePass(0);
    await housekeep(backend.services);
    expect(await placeOf('archives')).toEqual([{ position: '' }]);
  });

  test('removes what it may, though something may not be removed, and though nobody may look for what was begun', async () => {
    const exported = [await runExport(backend, caller, 'app'), await runExport(backend, caller, 'app')];
    // The one that may not be removed is come to first.
    const [held, free] = exported.sort((one, other) => (one.id < other.id ? -1 : 1)) as [
      OperationRecord,
      OperationRecord,
    ];
    await backend.services.store.archives.retention?.hold(held.archive?.objectKey ?? '', true);
    await backend.query(`update state_archive.operation set status = 'FAILED' where id = any($1)`, [
      [held.id, free.id],
    ]);
    const pieces = [Buffer.from('one'), Buffer.from('another')];
    const uploads = await Promise.all(pieces.map(announce));
    for (const [index, upload] of uploads.entries()) await send(upload, pieces[index] as Buffer);
    await backend.query('update state_archive.upload set expires_at = now()');
    await letTimePass(0);
    server.inject({ on: isDelete('uploads'), how: 'denied', times: 1 });
    for (const on of [isHold, isListOfBegun]) server.inject({ on, how: 'denied', times: FOREVER });
    await housekeep(backend.services);
    expect([held, free].map(({ id }) => keysOf(id).length)).toEqual([1, 0]);
    expect(uploads.flatMap(({ id }) => keysOf(id))).toHaveLength(1);
    expect(await placeOf('archives')).toEqual([{ position: '' }]);
    await tidyUp();
    expect([held, ...uploads].flatMap(({ id }) => keysOf(id))).toEqual([]);
  });

  test('aborts what was begun and never completed, when it is old, though one may not be aborted', async () => {
    for (const name of ['one', 'another', 'a third']) await beginParts(`archives/${name}`);
    server.inject({ on: isAbort, how: 'denied', times: 1 });
    for (const [age, left] of [
      [0, 3],
      [2 * HOUR, 1],
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
    await backend.query('update state_archive.operation set part_of = $2 where id = $1', [
      parts[index]?.id,
      rows[0].id,
    ]);
  }
  await housekeep(backend.services);
  expect(parts.map(({ id }) => keysOf(id).length)).toEqual([0, 1, 1]);
});
