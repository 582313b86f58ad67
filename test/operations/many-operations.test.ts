import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { KilolockDatabase } from '../../src/database/connection.ts';
import type { Caller } from '../../src/history/states.ts';
import { archiveKeyOf } from '../../src/operations/archive-keys.ts';
import { findByIdempotencyKey } from '../../src/operations/idempotency.ts';
import {
  countAtWork,
  countKept,
  refuseWithoutRoom,
  takeRoom,
} from '../../src/operations/operation-admission.ts';
import {
  beat,
  claimOperation,
  expireArchives,
  findExports,
  findUnqueued,
  giveUpAbandoned,
  markCancelled,
  markQueued,
  readStatus,
  settleAttempt,
} from '../../src/operations/operation-lifecycle.ts';
import {
  findLastSuccesses,
  findOperations,
  listOperations,
  searchOperations,
} from '../../src/operations/operation-records.ts';
import { effortsOf } from '../support/explain.ts';
import { type Backend, createCaller, openBackend, recordExport, withPrincipal } from './support/backend.ts';
import { recordEnded } from './support/many-operations.ts';

/** So many operations have ended in a tenant, so many of them in each environment. */
const ENDED = 30_000;
const ENVIRONMENTS = 300;
/** A tenth of the table and less, whose indexes are three pages deep. */
const MAX_PAGES = 200;

let backend: Backend;
/** Of one of the environments. */
let caller: Caller;
let stateId: string;

beforeAll(async () => {
  backend = await openBackend();
  caller = await createCaller(backend);
  caller = withPrincipal(caller, { subject: 'subject-3' });
  const { environment, tenantId } = caller.namespace;
  await backend.database.pool.query(
    `insert into environments (tenant_id, env_public_id, slug)
     select $1, 'env_many' || n, 'env_many' || n from generate_series(2, $2::int) n`,
    [tenantId, ENVIRONMENTS],
  );
  await recordEnded(backend.database, ENDED);
  const { rows } = await backend.database.pool.query<{ id: string }>(
    'select state_id as id from state_archive.operation where environment_id = $1 limit 1',
    [environment],
  );
  stateId = rows[0]?.id ?? '';
});
afterAll(() => backend.close());

const progress = { versionsDone: 3n, versionsTotal: 10n, bytesDone: 5n, bytesTotal: null };
const page = { after: null, limit: 20 };
const everything = { kind: null, statuses: null, labelPrefix: '', actor: null, since: null };
const quota = { maxArchives: 1_000_000, maxArchiveBytesKept: 1e15 };
const failure = { code: 'INTERNAL', message: 'It failed.', path: null } as const;
const claim = (database: KilolockDatabase, id: string) =>
  claimOperation(database, id, { worker: 'a test', maxRunning: 20 });

test.each<[what: string, work: (database: KilolockDatabase, id: string) => Promise<unknown>]>([
  ['claimed', claim],
  ['kept alive', (database, id) => beat(database.for('record'), [{ id, attempt: 1, progress }])],
  ['queued', (database, id) => markQueued(database.for('record'), [id])],
  ['waited for', (database, id) => readStatus(database.for('read'), id)],
  [
    'failed',
    (database, id) =>
      settleAttempt(database.for('record'), { id, attempt: 0 }, { kind: 'failed', error: failure }),
  ],
  ['cancelled', (database, id) => markCancelled(database.for('record'), id, caller.principal)],
  ['found unqueued', (database) => findUnqueued(database.for('housekeeping'))],
  ['given up', (database) => giveUpAbandoned(database.for('housekeeping'))],
  ['expired', (database) => expireArchives(database.for('housekeeping'), 1_000)],
  [
    'looked up for the store',
    (database, id) => findExports(database.for('housekeeping'), [archiveKeyOf(id, 1)]),
  ],
  ['counted at work', (database) => countAtWork(database.for('record'), caller)],
  ['counted as kept', (database) => countKept(database.for('record'), caller)],
  [
    'admitted to the store',
    (database) => refuseWithoutRoom(database.for('record'), { ...caller, database }, quota),
  ],
  [
    'given room in the store',
    (database, id) => takeRoom({ ...caller, database }, quota, { id, attempt: 0 }, 1n),
  ],
  [
    'found by its key',
    (database) =>
      findByIdempotencyKey({ ...caller, database }, 'EXPORT', { key: 'key-0', fingerprint: Buffer.alloc(0) }),
  ],
  ['found by its id', (database, id) => findOperations(database.for('read'), caller, [id])],
  ['listed with its state', (database) => listOperations(database.for('read'), caller, [stateId], page)],
  [
    'found as the last of its state',
    (database) => findLastSuccesses(database.for('read'), caller, 'EXPORT', [stateId]),
  ],
  ['listed', (database) => searchOperations(database.for('read'), caller, everything, page)],
  [
    'searched for in vain',
    (database) =>
      searchOperations(
        database.for('read'),
        caller,
        { ...everything, labelPrefix: 'no such', statuses: ['FAILED'] },
        page,
      ),
  ],
])('an operation is %s without a look at those that have ended', async (_what, work) => {
  const id = await recordExport(backend, caller, 'recorded');
  const efforts = await effortsOf(backend.database, (database) => work(database, id));
  expect(efforts.length).toBeGreaterThan(0);
  for (const effort of efforts) {
    expect(effort.readWhole).not.toContain('operation');
    expect({ ...effort, isBounded: effort.pages < MAX_PAGES }).toMatchObject({ isBounded: true });
  }
});
