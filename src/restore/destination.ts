import { type Kysely, sql } from 'kysely';
import type { ArchivedState } from '../archive/model.ts';
import { stateLabelFault } from '../base/state-label.ts';
import type { Database } from '../database/types.ts';
import { possibleNames, type StateNamespace, selectStates, storedName } from '../history/namespace.ts';
import { RestoreRefusedError, refusedState } from './errors.ts';

/** Where a history is to be restored. */
export interface Destination {
  readonly namespace: StateNamespace;
  readonly label: string;
  /** The name Kilolock will store. */
  readonly name: string;
}

/**
 * The destination a label stands for.
 *
 * @throws RestoreRefusedError INVALID_INPUT for a label that {@link stateLabelFault} finds something in.
 */
export function destinationOf(namespace: StateNamespace, label: string): Destination {
  const problem = stateLabelFault(label);
  if (problem !== null) {
    throw new RestoreRefusedError(
      'INVALID_INPUT',
      `The state's name ${problem}. Kilolock can store such a name, but nothing addresses it reliably: give another \`name\` to restore or import under.`,
      'name',
    );
  }
  return { namespace, label, name: storedName(namespace, label) };
}

/**
 * Refuses a destination that exists, in whatever lifecycle status, the empty shells that locks leave included.
 *
 * @param ownStateId the state that goes there, if it does already. In an environment's own database another may have the name in
 *   another form, or for another tenant, and no constraint tells.
 * @throws RestoreRefusedError STATE_ALREADY_EXISTS.
 */
export async function refuseTakenName(
  db: Kysely<Database>,
  destination: Destination,
  ownStateId: string,
): Promise<void> {
  const { namespace, label } = destination;
  const taken = await selectStates(db, namespace)
    .where('name', 'in', possibleNames(namespace, label))
    .where('id', '<>', ownStateId)
    .select(['lifecycle_status as lifecycleStatus', 'current_version_id as currentVersionId'])
    .executeTakeFirst();
  if (taken === undefined) return;
  const { lifecycleStatus, currentVersionId } = taken;
  if (lifecycleStatus !== 'active') throw alreadyExists(destination, `and is ${lifecycleStatus}`);
  const isEmpty = currentVersionId === null;
  const what = isEmpty ? 'as an empty state, such as a lock leaves behind' : 'with a history of its own';
  throw alreadyExists(destination, what);
}

/** The refusal of a destination that exists; `how` completes "The state … exists already". */
export function alreadyExists(
  { label }: Destination,
  how: string,
  options?: { readonly cause: unknown },
): RestoreRefusedError {
  const advice = 'Nothing was touched; give another `name` to restore beside it.';
  return refusedState('STATE_ALREADY_EXISTS', label, `exists already ${how}. ${advice}`, 'name', options);
}

/** Whether an archived state once had this name and has this lineage, or either lineage is unknown (data model 8). */
export async function hasArchivedNamesake(
  db: Kysely<Database>,
  { namespace, label }: Destination,
  lineage: string | null,
): Promise<boolean> {
  const stems = possibleNames(namespace, label).map((name) => `${name}--archived-`);
  const namesake = await selectStates(db, namespace)
    .where('lifecycle_status', '=', 'archived')
    .where((where) => where.or(stems.map((stem) => sql<boolean>`starts_with(name, ${stem})`)))
    .$if(lineage !== null, (query) =>
      query.where((where) => where.or([where('lineage', '=', lineage), where('lineage', 'is', null)])),
    )
    .limit(1)
    .select('id')
    .executeTakeFirst();
  return namesake !== undefined;
}

/**
 * Refuses a name that an archived state of the same or an unknown lineage once had: taking it would get round the
 * hold that archiving put on it.
 *
 * @throws RestoreRefusedError STATE_ALREADY_EXISTS.
 */
export async function refuseArchivedNamesake(
  db: Kysely<Database>,
  destination: Destination,
  lineage: string | null,
): Promise<void> {
  if (await hasArchivedNamesake(db, destination, lineage)) {
    throw alreadyExists(destination, 'as an archived state with the same or an unknown lineage');
  }
}

/**
 * How Kilolock guards a state against writers at the same time (data model 5): an exclusive lock keeps others out, without one
 * they coexist and are merged.
 */
export type LockPolicy = Pick<ArchivedState, 'exclusiveLocks' | 'coexistenceMode'>;

const EXCLUSIVE: LockPolicy = { exclusiveLocks: true, coexistenceMode: 'strict' };
const OPTIMISTIC: LockPolicy = { exclusiveLocks: false, coexistenceMode: 'warn' };

/**
 * The lock policy of a state that is created in this environment: what the environment prescribes, or else `otherwise`,
 * by default what Kilolock gives a state that `kl` creates (data model 5).
 */
export function lockPolicyIn(
  { lockDefault }: StateNamespace,
  otherwise: LockPolicy = OPTIMISTIC,
): LockPolicy {
  if (lockDefault === 'auto') return otherwise;
  return lockDefault === 'vanilla' ? EXCLUSIVE : OPTIMISTIC;
}
