import type { KilolockDatabase } from '../../../src/database/connection.ts';
import type { Caller } from '../../../src/history/states.ts';
import { post } from '../../operations/support/histories.ts';
import { thingsDocument } from './histories.ts';

/** A state that stands where a history is to be restored, or near it. */
export interface StandingState {
  readonly id: string;
  readonly currentSerial: bigint | null;
}

export const OTHER_LINEAGE = '11111111-2222-4333-8444-555555555555';

/** Writes a state of two versions, as Kilolock's clients do. */
export async function standHistory(
  database: KilolockDatabase,
  caller: Caller,
  label: string,
  lineage = OTHER_LINEAGE,
): Promise<StandingState> {
  await post(database, caller, label, thingsDocument(1n, { old: '{"id": "o-1"}' }, lineage));
  const { stateId, serial } = await post(
    database,
    caller,
    label,
    thingsDocument(2n, { old: '{"id": "o-2"}' }, lineage),
  );
  return { id: stateId, currentSerial: serial };
}

/** Writes a state row without a version. */
export async function standRow(
  { pool }: KilolockDatabase,
  { namespace }: Caller,
  label: string,
  columns: { readonly lineage?: string | null; readonly status?: string } = {},
): Promise<StandingState> {
  const { rows } = await pool.query<{ id: string }>(
    'insert into states (tenant_id, name, lineage, lifecycle_status) values ($1, $2, $3, $4) returning id',
    [namespace.tenantId, namespace.namePrefix + label, columns.lineage ?? null, columns.status ?? 'active'],
  );
  return { id: rows[0]?.id ?? '', currentSerial: null };
}

/** Puts a state with its history into another lifecycle status. */
export async function setLifecycle(
  { pool }: KilolockDatabase,
  stateId: string,
  status: 'active' | 'suspended' | 'archived',
): Promise<void> {
  await pool.query('update states set lifecycle_status = $2 where id = $1', [stateId, status]);
}

/** What can be at work on a state, by what Kilolock keeps of it (data model 1.7 to 1.9, 5). */
export const WORK = {
  lock: `insert into state_locks (tenant_id, state_id, lock_id, who, acquired_at)
    select tenant_id, id, 'l-1', 'bob@laptop', now() from states where id = $1`,
  runningApply: `insert into apply_runs (tenant_id, state_id, from_version_id, started_at, source_serial)
    select tenant_id, id, current_version_id, now(), 2 from states where id = $1`,
  finishedApply: `insert into apply_runs
      (tenant_id, state_id, from_version_id, to_version_id, started_at, finished_at, source_serial, committed_serial, status)
    select tenant_id, id, current_version_id, current_version_id, now(), now(), 2, 2, 'committed' from states where id = $1`,
  runningRefresh: `insert into refresh_runs (tenant_id, state_id, from_version_id, started_at)
    select tenant_id, id, current_version_id, now() from states where id = $1`,
  finishedRefresh: `insert into refresh_runs
      (tenant_id, state_id, from_version_id, to_version_id, started_at, finished_at, status)
    select tenant_id, id, current_version_id, current_version_id, now(), now(), 'succeeded' from states where id = $1`,
  // Kilolock leaves the tenant of a reservation at its default (data model 1.8).
  reservation: `with run as (
      insert into apply_runs (tenant_id, state_id, from_version_id, started_at, finished_at, source_serial, status)
      select tenant_id, id, current_version_id, now(), now(), 2, 'aborted' from states where id = $1 returning id, state_id
    )
    insert into resource_reservations (state_id, apply_id, address_glob, mode, holder, acquired_at, expires_at)
    select state_id, id, 'thing.*', 'write', 'apply-7', now(), now() + interval '1 hour' from run`,
  expiredReservation: `with run as (
      insert into apply_runs (tenant_id, state_id, from_version_id, started_at, finished_at, source_serial, status)
      select tenant_id, id, current_version_id, now(), now(), 2, 'aborted' from states where id = $1 returning id, state_id
    )
    insert into resource_reservations (state_id, apply_id, address_glob, mode, holder, acquired_at, expires_at)
    select state_id, id, 'thing.*', 'write', 'apply-7', now() - interval '2 hours', now() - interval '1 hour' from run`,
} as const;

/** Sets something to work on a state. */
export async function setToWork(
  { pool }: KilolockDatabase,
  stateId: string,
  work: keyof typeof WORK,
): Promise<void> {
  await pool.query(WORK[work], [stateId]);
}
