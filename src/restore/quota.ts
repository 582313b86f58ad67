import type { Kysely } from 'kysely';
import type { Database } from '../database/types.ts';
import { type StateNamespace, selectStates } from '../history/namespace.ts';
import { RestoreRefusedError } from './errors.ts';

/**
 * Refuses a current version with more managed resource instances than the workspace's hard limits allow, for one state
 * or for the environment (data model 2.9). A limit of 0 is none. The resources of `exceptStateId` are not counted among
 * the environment's others.
 *
 * @throws RestoreRefusedError QUOTA_EXCEEDED, with the numbers.
 */
export async function refuseOverQuota(
  db: Kysely<Database>,
  namespace: StateNamespace,
  managedInstances: number,
  exceptStateId: string,
): Promise<void> {
  const { perState, perEnvironment } = namespace.quota;
  if (perState > 0 && managedInstances > hardLimit(perState)) {
    throw exceeded('a state', perState, managedInstances);
  }
  if (perEnvironment === 0) return;
  const others = await selectStates(db, namespace)
    .innerJoin('resources', 'resources.state_id', 'states.id')
    .where('states.lifecycle_status', '=', 'active')
    .where('states.id', '<>', exceptStateId)
    .where('resources.delete_serial', 'is', null)
    .where('resources.mode', '=', 'managed')
    .select((select) => select.fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  const total = managedInstances + Number(others.count);
  if (total > hardLimit(perEnvironment)) {
    throw exceeded('the environment', perEnvironment, total);
  }
}

/** The soft limit and half of it again, rounded up. */
function hardLimit(soft: number): number {
  return soft + Math.floor((soft + 1) / 2);
}

function exceeded(what: string, soft: number, wanted: number): RestoreRefusedError {
  return new RestoreRefusedError(
    'QUOTA_EXCEEDED',
    `The workspace allows ${what} ${soft} managed resources and at most ${hardLimit(soft)}; this would make it ${wanted}.`,
  );
}
