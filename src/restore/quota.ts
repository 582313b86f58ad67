import { type Kysely, sql } from 'kysely';
import type { Database } from '../database/types.ts';
import type { StateNamespace } from '../history/namespace.ts';
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
  const tenant = await db
    .selectFrom('tenants')
    .where('id', '=', namespace.tenantId)
    .select(['max_state_resources as perState', 'max_environment_resources as perEnvironment'])
    .executeTakeFirst();
  if (tenant === undefined) return;
  if (tenant.perState > 0 && managedInstances > hardLimit(tenant.perState)) {
    throw exceeded('a state', tenant.perState, managedInstances);
  }
  if (tenant.perEnvironment === 0) return;
  const others = await db
    .selectFrom('resources')
    .innerJoin('states', 'states.id', 'resources.state_id')
    .where('states.tenant_id', '=', namespace.tenantId)
    .where('states.lifecycle_status', '=', 'active')
    .where(sql<boolean>`starts_with(states.name, ${namespace.namePrefix})`)
    .where('states.id', '<>', exceptStateId)
    .where('resources.delete_serial', 'is', null)
    .where('resources.mode', '=', 'managed')
    .select((select) => select.fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  const total = managedInstances + Number(others.count);
  if (total > hardLimit(tenant.perEnvironment)) {
    throw exceeded('the environment', tenant.perEnvironment, total);
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
