import type { Kysely } from 'kysely';
import type { Database } from '../database/types.ts';

/**
 * Where the labels of one environment live: the tenant every row carries, and the prefix that turns a label into
 * the name Kilolock stores (data model 1.13).
 */
export interface StateNamespace {
  /** `tenants.id`; set on every row that is written. */
  readonly tenantId: string;
  /** The tenant's public id, `ws_…`. */
  readonly workspace: string;
  /** The environment's public id, `env_…`. */
  readonly environment: string;
  /** What stands before every label in `states.name`: `{workspace}/{environment}/`, or nothing when self-hosted. */
  readonly namePrefix: string;
  /** The lock mode new states of the environment start with (data model 5). */
  readonly lockDefault: 'auto' | 'vanilla' | 'kilolock';
}

/** A workspace and an environment by their public ids; null stands for the self-hosted tenant. */
export type NamespaceSelector = { readonly workspace: string; readonly environment: string } | null;

const SELF_HOSTED_TENANT = '00000000-0000-0000-0000-000000000000';
const SELF_HOSTED_ENVIRONMENT = 'env_000000000000';

/** The environment keeps its states in a database of its own, which is not this one (data model 1.13). */
export class EnvironmentNotReachableError extends Error {
  override readonly name = 'EnvironmentNotReachableError';

  constructor(environment: string) {
    super(
      `Environment ${environment} keeps its states in a database of its own, which this service does not reach.`,
    );
  }
}

/**
 * Finds the namespace, or null when the workspace or the environment does not exist, is not active, or the two do
 * not belong together: callers cannot tell these apart.
 *
 * @throws EnvironmentNotReachableError rather than reading the shared database for an environment that has its own.
 */
export async function findNamespace(
  db: Kysely<Database>,
  selector: NamespaceSelector,
): Promise<StateNamespace | null> {
  const row = await db
    .selectFrom('environments')
    .innerJoin('tenants', 'tenants.id', 'environments.tenant_id')
    .select([
      'tenants.id as tenantId',
      'tenants.workspace_id as workspace',
      'environments.env_public_id as environment',
      'environments.database_dsn as databaseDsn',
      'environments.state_lock_default_mode as lockDefault',
    ])
    .where('tenants.lifecycle_status', '=', 'active')
    .where('environments.lifecycle_status', '=', 'active')
    .$if(selector !== null, (query) =>
      query
        .where('tenants.workspace_id', '=', selector?.workspace ?? '')
        .where('environments.env_public_id', '=', selector?.environment ?? ''),
    )
    .$if(selector === null, (query) =>
      query
        .where('tenants.id', '=', SELF_HOSTED_TENANT)
        .where('environments.env_public_id', '=', SELF_HOSTED_ENVIRONMENT),
    )
    .executeTakeFirst();
  if (row === undefined) return null;
  if (row.databaseDsn) throw new EnvironmentNotReachableError(row.environment);
  return {
    tenantId: row.tenantId,
    workspace: row.workspace,
    environment: row.environment,
    namePrefix: selector === null ? '' : `${row.workspace}/${row.environment}/`,
    // A self-hosted principal names no environment, and Kilolock then decides by the writer alone (data model 5).
    lockDefault: selector === null ? 'auto' : row.lockDefault,
  };
}

/** The name Kilolock stores for a label of this namespace. */
export function storedName(namespace: StateNamespace, label: string): string {
  return namespace.namePrefix + label;
}
