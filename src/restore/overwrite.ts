import { type Kysely, sql } from 'kysely';
import type { Database } from '../database/types.ts';
import { digestHistory, isDigested, readHistories } from '../history/history.ts';
import { HistoryInconsistentError } from '../history/inconsistent.ts';
import { possibleNames, StateAmbiguousError, selectStates } from '../history/namespace.ts';
import type { Destination } from './destination.ts';
import { notActive, RestoreRefusedError, refusedState } from './errors.ts';

/** The state whose history an overwrite replaces. */
export type ReplacedState = Awaited<ReturnType<typeof findReplaced>>;

/** What the caller says the destination is. */
export interface OverwriteConfirmation {
  readonly confirmName: string;
  /** Null: the caller expects a state without a version. */
  readonly expectedCurrentSerial: bigint | null;
}

/**
 * Finds the state to overwrite, when it is just what the caller confirmed and nothing is at work on it.
 *
 * @param options.lock locks the row until the end of the transaction. FOR UPDATE, since a run or a reservation is begun
 *   beside the row, and only its foreign key waits for the lock: what is not at work when the lock is had cannot begin.
 * @throws RestoreRefusedError CONFIRMATION_MISMATCH, STATE_NOT_FOUND, STATE_NOT_ACTIVE, STALE_DESTINATION or STATE_LOCKED.
 */
export async function findReplaced(
  db: Kysely<Database>,
  destination: Destination,
  confirmation: OverwriteConfirmation,
  options: { readonly lock: boolean } = { lock: false },
) {
  const { namespace, label } = destination;
  if (confirmation.confirmName !== label) {
    throw new RestoreRefusedError(
      'CONFIRMATION_MISMATCH',
      `confirmName is not the name of the state to overwrite, ${JSON.stringify(label)}. Nothing was touched.`,
      'confirmName',
    );
  }
  const [state, twin] = await selectStates(db, namespace)
    .where('name', 'in', possibleNames(namespace, label))
    .select([
      'id',
      'lifecycle_status as lifecycleStatus',
      'current_version_id as currentVersionId',
      'exclusive_locks as exclusiveLocks',
      'coexistence_mode as coexistenceMode',
    ])
    .$if(options.lock, (query) => query.forUpdate())
    .execute();
  if (twin !== undefined) throw new StateAmbiguousError(label);
  if (state === undefined) {
    throw new RestoreRefusedError(
      'STATE_NOT_FOUND',
      `There is no state ${JSON.stringify(label)} to overwrite; restore it without OVERWRITE.`,
      'name',
    );
  }
  if (state.lifecycleStatus !== 'active') {
    throw notActive(label, state.lifecycleStatus);
  }
  const current = await readCurrent(db, state);
  if ((current?.serial ?? null) !== confirmation.expectedCurrentSerial) {
    const found = current === null ? 'no version' : `serial ${current.serial}`;
    throw staleDestination(destination, `stands at ${found}, not where you expected it`);
  }
  await refuseBusy(db, state.id, label);
  const { id, exclusiveLocks, coexistenceMode } = state;
  // The lock policy stays as it is: it belongs to how the state is used, not to its history.
  return { id, lockPolicy: { exclusiveLocks, coexistenceMode }, current };
}

/** The refusal of a state that is not as it was looked at; `how` completes "The state …". */
export function staleDestination({ label }: Destination, how: string): RestoreRefusedError {
  const whole = `${how}. Look at it again. Nothing was touched.`;
  return refusedState('STALE_DESTINATION', label, whole, 'expectedCurrentSerial');
}

/**
 * Compares the history that is about to go, to its last version and tag, with the one that was archived.
 *
 * @param archivedDigest the history digest of the archive.
 * @throws RestoreRefusedError STALE_DESTINATION.
 */
export async function refuseChangedHistory(
  db: Kysely<Database>,
  destination: Destination,
  stateId: string,
  archivedDigest: string,
): Promise<void> {
  const history = (await readHistories(db, [stateId])).get(stateId);
  // A version without a digest on record is one that the archive does not hold.
  if (history && isDigested(history) && digestHistory(history).historyDigest === archivedDigest) return;
  throw staleDestination(destination, 'was changed since its history was archived to be replaced');
}

/**
 * Where the state's pointer stands, and how many versions it has; null when it has none.
 *
 * @throws HistoryInconsistentError when there are versions, but none the pointer stands at: they could not be exported.
 */
async function readCurrent(
  db: Kysely<Database>,
  state: { readonly id: string; readonly currentVersionId: string | null },
) {
  const { count, serial } = await db
    .selectFrom('state_versions')
    .where('state_id', '=', state.id)
    .select((select) => [
      select.fn.countAll<string>().as('count'),
      sql<string | null>`max(serial) filter (where id = ${state.currentVersionId})`.as('serial'),
    ])
    .executeTakeFirstOrThrow();
  if (state.currentVersionId !== null && serial !== null) {
    return { versionId: state.currentVersionId, serial: BigInt(serial), versions: Number(count) };
  }
  if (state.currentVersionId === null && Number(count) === 0) return null;
  throw new HistoryInconsistentError(
    "The state's current pointer does not stand at a version of the state, so that its history cannot be exported before it is replaced; mend it in Kilolock first.",
  );
}

/** Whatever would go on working on the history that is to be replaced (data model 5). */
async function refuseBusy(db: Kysely<Database>, stateId: string, label: string): Promise<void> {
  const { rows } = await sql<{ what: string }>`
    select 'it is locked by ' || coalesce(nullif(who, ''), lock_id) as what from public.state_locks where state_id = ${stateId}
    union all
    select 'an apply is running' from public.apply_runs where state_id = ${stateId} and status = 'running'
    union all
    select 'a refresh is running' from public.refresh_runs where state_id = ${stateId} and status = 'running'
    union all
    select 'resources are reserved by ' || holder from public.resource_reservations
    where state_id = ${stateId} and expires_at > now()
    limit 1
  `.execute(db);
  const [first] = rows;
  if (first === undefined) return;
  const how = `is in use: ${first.what}. Nothing was touched; try again when that is over.`;
  throw refusedState('STATE_LOCKED', label, how);
}

/**
 * Removes everything that hangs on a state but the row itself. Its audit events stay on record without a state, as
 * after Kilolock's own deletion (data model 6).
 */
export async function clearReplacedHistory(db: Kysely<Database>, stateId: string): Promise<void> {
  await db.updateTable('events').set({ state_id: null }).where('state_id', '=', stateId).execute();
  await db.updateTable('states').set({ current_version_id: null }).where('id', '=', stateId).execute();
  await db
    .deleteFrom('state_archive.version_digest')
    .where('state_version_id', 'in', (select) =>
      select.selectFrom('state_versions').where('state_id', '=', stateId).select('id'),
    )
    .execute();
  // In this order: runs and tags refer to versions and hinder their deletion (data model 1.3, 1.9).
  for (const table of [
    'resource_reservations',
    'apply_runs',
    'refresh_runs',
    'state_version_tags',
    'resources',
    'state_versions',
  ] as const) {
    await db.deleteFrom(table).where('state_id', '=', stateId).execute();
  }
}
