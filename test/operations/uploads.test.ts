import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import { removeAbandonedUploads, sweepStore } from '../../src/operations/housekeeping.ts';
import { importStagedArchive } from '../../src/operations/import-state-archive.ts';
import { openUpload, stageUpload } from '../../src/operations/uploads.ts';
import { RemovalRefusedError } from '../../src/store/object-store.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  ended,
  openBackend,
  operationOf,
  runExport,
  runImport,
} from './support/backend.ts';
import { postFirstDocument } from './support/histories.ts';
import { interceptQueries, loseConnection } from './support/intercept-queries.ts';

let backend: Backend;
let caller: Caller;
beforeAll(async () => {
  backend = await openBackend();
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

const stored = () => readdir(join(backend.storeDirectory, 'uploads'));

async function stage(bytes: Buffer): Promise<{ id: string; token: string }> {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const announced = { byteLength: BigInt(bytes.length), sha256, fileName: null };
  const request = { caller, requestId: 'request-1' };
  const { id, url } = await stageUpload(backend.services, request, announced, 'http://x');
  return { id, token: new URL(url).searchParams.get('token') ?? '' };
}

async function* once(bytes: Buffer) {
  yield Buffer.from(bytes);
}

async function send(
  { id, token }: { id: string; token: string },
  bytes: Buffer,
  services = backend.services,
) {
  const upload = await openUpload(services, id, token);
  if (upload === null) throw new Error('The link is not good.');
  return upload.receive(await upload.receivedBytes(), once(bytes));
}

describe('housekeeping', () => {
  test('removes uploads whose time is past, whole or not, and leaves those that may be used', async () => {
    const bytes = Buffer.from('some bytes');
    const [whole, part, kept] = [await stage(bytes), await stage(bytes), await stage(bytes)];
    for (const upload of [whole, kept]) await send(upload, bytes);
    await send(part, bytes.subarray(0, 3));
    await backend.query('update state_archive.upload set expires_at = now() where id = any($1)', [
      [whole.id, part.id],
    ]);
    await removeAbandonedUploads(backend.services);
    expect((await stored()).map((key) => key.split('.')[0])).toEqual([kept.id]);
    expect((await backend.query('select id from state_archive.upload')).map(({ id }) => id)).toEqual([
      kept.id,
    ]);
  });

  test('removes what operations that are over have left, and nothing of those at work', async () => {
    const bytes = Buffer.from('some bytes');
    const [over, atWork, forgotten] = [await stage(bytes), await stage(bytes), await stage(bytes)];
    const operationOf = new Map([
      [over.id, 'FAILED'],
      [atWork.id, 'RUNNING'],
    ]);
    for (const upload of [over, atWork, forgotten]) {
      await send(upload, bytes);
      const operationId = randomUUID();
      await backend.query('update state_archive.upload set operation_id = $2 where id = $1', [
        upload.id,
        operationId,
      ]);
      const status = operationOf.get(upload.id);
      if (status === undefined) continue;
      await backend.query(
        `insert into state_archive.operation (id, kind, status, tenant_id, workspace_id, environment_id, state_name,
           state_label, actor, subject) values ($1, 'IMPORT', $2, $3, 'w', 'e', 'x', 'x', 'ann', 'ann')`,
        [operationId, status, caller.namespace.tenantId],
      );
    }
    await removeAbandonedUploads(backend.services);
    const left = (await backend.query('select id from state_archive.upload')).map(({ id }) => id);
    expect([over.id, atWork.id, forgotten.id].filter((id) => left.includes(id))).toEqual([atWork.id]);
  });

  test('removes an upload though the store lets none of a thousand go that come before it', async () => {
    await backend.query(
      `insert into state_archive.upload
         (id, tenant_id, workspace_id, environment_id, subject, file_name, sha256, byte_length, expires_at)
       select case when n > 1000 then 'ffffffff-ffff-ffff-ffff-ffffffffffff' else gen_random_uuid() end,
         $1, 'w', 'e', 'ann', '', sha256(''), 1, now() from generate_series(1, 1001) n`,
      [caller.namespace.tenantId],
    );
    const { store } = backend.services;
    const uploads: typeof store.uploads = {
      ...store.uploads,
      async *list(begin = '') {
        if (!begin.startsWith('ffffffff-')) throw new RemovalRefusedError('AccessDenied');
        yield* store.uploads.list(begin);
      },
    };
    const left = () => backend.query("select id from state_archive.upload where subject = 'ann'");
    await removeAbandonedUploads({ ...backend.services, store: { ...store, uploads } });
    expect(await left()).toHaveLength(1000);
    await removeAbandonedUploads(backend.services);
    expect(await left()).toEqual([]);
  });

  test('removes pieces of no upload when they are old, and not before', async () => {
    const [young, old] = [`${randomUUID()}.${randomUUID()}`, `${randomUUID()}.${randomUUID()}`];
    for (const key of [young, old]) await writeFile(join(backend.storeDirectory, 'uploads', key), 'piece');
    const longAgo = new Date(Date.now() - 8 * 24 * 3_600_000);
    await utimes(join(backend.storeDirectory, 'uploads', old), longAgo, longAgo);
    await sweepStore(backend.services, 'uploads', '');
    expect(await stored()).toContain(young);
    expect(await stored()).not.toContain(old);
  });
});

describe('an upload whose record', () => {
  const bytes = Buffer.from('some bytes');
  const isAdvance = (statement: string) => statement.includes('with advanced as');

  async function sendOver(database: Caller['database'], upload: { id: string; token: string }) {
    const environments = {
      open: async () => ({ namespace: caller.namespace, database }),
      openDatabases: [database],
    } as unknown as Backend['services']['environments'];
    return send(upload, bytes, { ...backend.services, environments });
  }

  test('cannot be written is none, and can be sent again', async () => {
    const upload = await stage(bytes);
    const database = interceptQueries(backend.database, async (statement, client) => {
      if (isAdvance(statement)) await loseConnection(client);
    });
    await expect(sendOver(database, upload)).rejects.toThrow();
    expect(
      await backend.query('select received_bytes from state_archive.upload where id = $1', [upload.id]),
    ).toEqual([{ received_bytes: '0' }]);
    expect(await send(upload, bytes)).toBe(BigInt(bytes.length));
  });

  test('was written, and nobody was told, is found to be', async () => {
    const upload = await stage(bytes);
    const database = interceptQueries(
      backend.database,
      () => {},
      async (statement) => {
        if (isAdvance(statement)) throw new Error('the answer was lost');
      },
    );
    expect(await sendOver(database, upload)).toBe(BigInt(bytes.length));
  });
});

describe('a dry run of an upload that an import uses up meanwhile', () => {
  test('says that it is over, and not that it is another file', async () => {
    await postFirstDocument(backend.database, caller, 'used');
    const archive = await readFile(archivePath(backend, await runExport(backend, caller, 'used')));
    const upload = await stage(archive);
    await send(upload, archive);
    const importIt = (dryRun: boolean, label: string) =>
      importStagedArchive(backend.services, { caller, requestId: 'request-1' }, upload.id, {
        label,
        dryRun,
        onConflict: { kind: 'REFUSE' },
        allowSharedLineage: true,
        expectedSha256: null,
        waitSeconds: 0,
        idempotencyKey: null,
      });
    const release = backend.holdQueue();
    const [dryRun, real] = [await importIt(true, 'dry'), await importIt(false, 'real')];
    await backend.query("update state_archive.operation set status = 'CANCELLED' where id = $1", [real]);
    await removeAbandonedUploads(backend.services);
    release();
    await ended(backend.services, caller, dryRun);
    expect(await operationOf(backend, caller, dryRun)).toMatchObject({
      status: 'FAILED',
      error: { code: 'UPLOAD_EXPIRED' },
    });
  });
});

test('an import leaves neither an upload nor a piece of one, whether it is done or refused', async () => {
  await postFirstDocument(backend.database, caller, 'app');
  const archive = archivePath(backend, await runExport(backend, caller, 'app'));
  const before = await stored();
  const rows = await backend.query('select id from state_archive.upload');
  await runImport(backend, caller, archive, { label: 'done', allowSharedLineage: true });
  await expect(runImport(backend, caller, archive, { label: 'done' })).rejects.toMatchObject({
    code: 'STATE_ALREADY_EXISTS',
  });
  const services = { ...backend.services, maxOperationsPerPrincipal: 0 };
  await expect(
    runImport({ services }, caller, archive, { label: 'too-many', allowSharedLineage: true }),
  ).rejects.toMatchObject({ code: 'TOO_MANY_OPERATIONS' });
  expect(await stored()).toEqual(before);
  expect(await backend.query('select id from state_archive.upload')).toEqual(rows);
});
