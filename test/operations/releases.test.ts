import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import { cancelOperation } from '../../src/operations/cancel-operation.ts';
import { until } from '../support/until.ts';
import {
  archiveOfOthers,
  type Backend,
  createCaller,
  ended,
  openBackend,
  operationOf,
  runExport,
  runImport,
} from './support/backend.ts';
import { postFirstDocument } from './support/histories.ts';

/**
 * @file What releases that work side by side on one database tell each other, in the forms of the release that first shared the
 * work. The real thing is `npm run chaos -- --beside COMMIT`.
 */

let backend: Backend;
let caller: Caller;
let archive: string;

beforeAll(async () => {
  backend = await openBackend();
  archive = await archiveOfOthers(backend, 'app', postFirstDocument);
});
beforeEach(async () => {
  caller = await createCaller(backend);
  await postFirstDocument(backend.database, caller, 'app');
});
afterAll(() => backend.close());

/** What is recorded of a request of {@link caller}'s, whatever is asked for. */
function recorded(order: object): object {
  const { workspace, environment } = caller.namespace;
  const { subject, actor, scopes } = caller.principal;
  return {
    environment: { workspace, environment },
    principal: { subject, actor, scopes: [...scopes], workspace, environment, statePatterns: null },
    order,
  };
}

const exportOrder = () => ({ kind: 'EXPORT' });
const importOrder = (upload: object) => ({
  kind: 'IMPORT',
  upload,
  label: 'restored',
  onConflict: { kind: 'REFUSE' },
  allowSharedLineage: true,
  dryRun: false,
});

/** Asks for an operation that nobody is given yet. */
const startExport = () => runExport(backend, caller, 'app', { waitSeconds: 0 });
const startImport = () =>
  runImport(backend, caller, archive, { label: 'restored', allowSharedLineage: true, waitSeconds: 0 });

const requestOf = async (id: string) =>
  JSON.parse(
    (await backend.query('select request from state_archive.operation where id = $1', [id]))[0].request,
  );

const jobsOf = (id: string) =>
  backend.query('select data::text as data from state_archive_queue.job where id = $1', [id]);

describe('an operation', () => {
  test('that another release recorded is done, and what this one records that one can read', async () => {
    const release = backend.holdQueue();
    const [exported, imported] = [await startExport(), await startImport()];
    expect(await requestOf(exported.id)).toEqual(recorded(exportOrder()));
    const { upload } = (await requestOf(imported.id)).order;
    const { key, sha256, fileName, inputField } = upload;
    expect(await requestOf(imported.id)).toEqual(
      recorded(importOrder({ key, sha256, fileName, inputField })),
    );
    const job = JSON.parse((await jobsOf(exported.id))[0].data);
    const { workspace, environment } = caller.namespace;
    expect(job).toEqual({ environment: { workspace, environment } });
    release();
    for (const { id } of [exported, imported]) {
      await ended(backend.services, caller, id);
      expect(await operationOf(backend, caller, id)).toMatchObject({ status: 'SUCCEEDED', error: null });
    }
  });

  test('of which a later release put a job in that this one cannot read is left to it, and keeps nobody from others', async () => {
    const release = backend.holdQueue();
    const [later, own] = [await startExport(), await startImport()];
    await backend.query(`update state_archive_queue.job set data = '{"place": 1}' where id = $1`, [later.id]);
    release();
    await ended(backend.services, caller, own.id);
    expect((await operationOf(backend, caller, own.id)).status).toBe('SUCCEEDED');
    const isPutBack = async () =>
      (
        await backend.query(`select from state_archive_queue.job where id = $1 and state = 'retry'`, [
          later.id,
        ])
      ).length === 1;
    await until(isPutBack);
    expect(
      await backend.query('select status, attempt from state_archive.operation where id = $1', [later.id]),
    ).toEqual([{ status: 'PENDING', attempt: 0 }]);
    await backend.query(`delete from state_archive_queue.job where id = $1`, [later.id]);
  });

  test('that another release asks for in a way of its own can be cancelled', async () => {
    const release = backend.holdQueue();
    const { id } = await startExport();
    await backend.query(
      `update state_archive.operation set request = jsonb_set(request, '{order,kind}', '"VERIFY"') where id = $1`,
      [id],
    );
    await cancelOperation(caller, id);
    release();
    await until(async () => (await jobsOf(id)).length === 0);
    expect((await operationOf(backend, caller, id)).status).toBe('CANCELLED');
  });
});

/** Of the release that first shared the work. */
const COLUMNS: Readonly<Record<string, string>> = {
  operation: `id kind status tenant_id workspace_id environment_id state_name state_label state_id actor
    subject request_id idempotency_key request_fingerprint versions_done versions_total
    bytes_done bytes_total created_at started_at finished_at expires_at lease_until
    archive_sha256 archive_size_bytes archive_history_digest archive_file_name
    archive_object_key report replaced_operation_id support_reason error_code error_message
    error_path attempt worker heartbeat_at request`,
  snapshot_import: `tenant_id subject idempotency_key request_fingerprint state_id serial created_at`,
  upload: `id tenant_id workspace_id environment_id subject file_name sha256 byte_length
    received_bytes pieces operation_id created_at expires_at`,
  upload_piece: `upload_id start_byte byte_length object_key`,
  version_digest: `state_version_id sha256 byte_length`,
  version_mapping: `operation_id serial source_version_id state_version_id`,
};

test('a release that knows nothing of later columns can record what it always did: they may all be left out', async () => {
  const columns = await backend.query(
    `select table_name as table, column_name as column, is_nullable = 'YES' or column_default is not null as "mayBeLeftOut"
     from information_schema.columns where table_schema = 'state_archive' and table_name = any($1)`,
    [Object.keys(COLUMNS)],
  );
  const found = columns.map(({ table, column }) => `${table}.${column}`);
  const known = Object.entries(COLUMNS).flatMap(([table, names]) =>
    names.split(/\s+/).map((column) => `${table}.${column}`),
  );
  expect(found).toEqual(expect.arrayContaining(known));
  const later = columns.filter(({ table, column }) => !known.includes(`${table}.${column}`));
  expect(later.filter(({ mayBeLeftOut }) => !mayBeLeftOut)).toEqual([]);
});
