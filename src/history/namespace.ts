import { type Expression, type InferResult, type Kysely, type RawBuilder, sql } from 'kysely';
import { CallerError } from '../base/caller-error.ts';
import type { Database } from '../database/types.ts';

/**
 * Where the labels of one environment live: the tenant every row carries, and the names Kilolock stores labels under
 * (data model 1.13). All of it comes from the control database, never from an environment's own.
 */
export interface StateNamespace {
  /** `tenants.id`; set on every row that is written. */
  readonly tenantId: string;
  /** The tenant's public id, `ws_…`. */
  readonly workspace: string;
  readonly tenantSlug: string;
  readonly tenantName: string;
  /** The environment's public id, `env_…`. */
  readonly environment: string;
  /** What stands before every label in `states.name`: `{workspace}/{environment}/`, or nothing when self-hosted. */
  readonly namePrefix: string;
  /**
   * Whether the environment keeps its states in a database of its own. All states there are the environment's, whatever
   * tenant their rows name, and a label may be stored with the prefix or without it.
   */
  readonly hasOwnDatabase: boolean;
  /** The lock mode new states of the environment start with (data model 5). */
  readonly lockDefault: 'auto' | 'vanilla' | 'kilolock';
  /** The workspace's soft limits of managed resources; 0 is none (data model 2.9). */
  readonly quota: { readonly perState: number; readonly perEnvironment: number };
}

/** A workspace and an environment by their public ids; null stands for the self-hosted tenant. */
export type NamespaceSelector = { readonly workspace: string; readonly environment: string } | null;

/** The self-hosted tenant: the default of every `tenant_id` (data model 0.4). */
export const SELF_HOSTED_TENANT_ID = '00000000-0000-0000-0000-000000000000';
const SELF_HOSTED_ENVIRONMENT = 'env_000000000000';

/** A label is stored more than once in an environment's own database, and nobody can tell which is meant. */
export class StateAmbiguousError extends CallerError {
  override readonly name = 'StateAmbiguousError';
  override readonly code = 'STATE_AMBIGUOUS';

  constructor(label: string) {
    super(
      `The state ${JSON.stringify(label)} is stored more than once in this environment's database: with its prefix and without it, or for two tenants. Rename all but one in Kilolock first.`,
    );
  }
}

/**
 * Finds the namespace, or null when the workspace or the environment does not exist, is not active or not ready, or the
 * two do not belong together: callers cannot tell these apart.
 *
 * @param db the control database.
 */
export async function findNamespace(
  db: Kysely<Database>,
  selector: NamespaceSelector,
): Promise<StateNamespace | null> {
  const row = await selectNamespace(db, selector).executeTakeFirst();
  return row === undefined ? null : namespaceOf(row, selector);
}

/** The row of an environment that is active and ready, for {@link namespaceOf}. */
export function selectNamespace(db: Kysely<Database>, selector: EnvironmentKey) {
  return selectEnvironment(db, selector).select([
    'tenants.id as tenantId',
    'tenants.workspace_id as workspace',
    'tenants.slug as tenantSlug',
    'tenants.name as tenantName',
    'tenants.max_state_resources as perState',
    'tenants.max_environment_resources as perEnvironment',
    'environments.env_public_id as environment',
    'environments.state_lock_default_mode as lockDefault',
    hasOwnDatabase.as('hasOwnDatabase'),
  ]);
}

/** The namespace that a selector has found. */
export function namespaceOf(
  row: InferResult<ReturnType<typeof selectNamespace>>[number],
  selector: NamespaceSelector,
): StateNamespace {
  return {
    tenantId: row.tenantId,
    workspace: row.workspace,
    tenantSlug: row.tenantSlug,
    tenantName: row.tenantName,
    environment: row.environment,
    namePrefix: namePrefixOf(selector),
    hasOwnDatabase: row.hasOwnDatabase,
    // A self-hosted principal names no environment, and Kilolock then decides by the writer alone (data model 5).
    lockDefault: selector === null ? 'auto' : row.lockDefault,
    quota: { perState: row.perState, perEnvironment: row.perEnvironment },
  };
}

/** What stands before every label of an environment, see {@link StateNamespace.namePrefix}. */
export function namePrefixOf(selector: NamespaceSelector): string {
  return selector === null ? '' : `${selector.workspace}/${selector.environment}/`;
}

/**
 * The connection string of an environment's own database. A secret.
 *
 * @param db the control database.
 */
export async function readOwnDatabaseDsn(
  db: Kysely<Database>,
  selector: NamespaceSelector,
): Promise<string | null> {
  const row = await selectEnvironment(db, selector)
    .select('environments.database_dsn as dsn')
    .executeTakeFirst();
  return row?.dsn || null;
}

/** Whether the environment keeps its states in a database of its own, in a statement that reads `environments`. */
export const hasOwnDatabase: RawBuilder<boolean> = sql<boolean>`coalesce(environments.database_dsn, '') <> ''`;

/** A {@link NamespaceSelector}, or what stands for its parts in a statement. */
type EnvironmentKey = {
  readonly workspace: string | Expression<string>;
  readonly environment: string | Expression<string>;
} | null;

function selectEnvironment(db: Kysely<Database>, selector: EnvironmentKey) {
  const environments = db
    .selectFrom('environments')
    .innerJoin('tenants', 'tenants.id', 'environments.tenant_id')
    .where('tenants.lifecycle_status', '=', 'active')
    .where('environments.lifecycle_status', '=', 'active')
    .where(({ or, eb, not }) => or([not(hasOwnDatabase), eb('environments.status', '=', 'ready')]));
  return selector === null
    ? environments
        .where('tenants.id', '=', SELF_HOSTED_TENANT_ID)
        .where('environments.env_public_id', '=', SELF_HOSTED_ENVIRONMENT)
    : environments
        .where('tenants.workspace_id', '=', selector.workspace)
        .where('environments.env_public_id', '=', selector.environment);
}

/** The name a new state of this label is stored under; also in an environment's own database, as Kilolock does there. */
export function storedName({ namePrefix }: StateNamespace, label: string): string {
  return namePrefix + label;
}

/** Every name a state of this label may be stored under: each is a name whose label, by {@link labelOf}, is this one. */
export function possibleNames(namespace: StateNamespace, label: string): string[] {
  const name = storedName(namespace, label);
  // A label that begins like a stored name is not that name without its prefix: that name belongs to another label.
  const mayBeBare = namespace.hasOwnDatabase && name !== label && labelOf(namespace, label) === label;
  return mayBeBare ? [name, label] : [name];
}

/** The label of a stored name. */
export function labelOf({ namePrefix }: StateNamespace, name: string): string {
  return name.startsWith(namePrefix) ? name.slice(namePrefix.length) : name;
}

/** The label of a stored name as SQL, by {@link labelOf}; labels are compared bytewise. */
export function labelSql({ namePrefix }: StateNamespace, name: string): RawBuilder<string> {
  const stored = sql.ref(name);
  return sql`case when starts_with(${stored}, ${namePrefix})
    then substr(${stored}, length(${namePrefix}) + 1) else ${stored} end collate "C"`;
}

/** The rows of `states` that belong to the namespace, in whatever lifecycle status. */
export function selectStates(db: Kysely<Database>, { hasOwnDatabase, tenantId, namePrefix }: StateNamespace) {
  const states = db.selectFrom('states');
  if (hasOwnDatabase) return states;
  return states
    .where('states.tenant_id', '=', tenantId)
    .where(sql<boolean>`starts_with(states.name, ${namePrefix})`);
}

/**
 * Makes sure that rows of the namespace's tenant can be written in an environment's own database: it has a copy of the
 * tenant's row, which Kilolock makes at need (data model 1.13).
 */
export async function ensureTenant(
  db: Kysely<Database>,
  { tenantId, tenantSlug, tenantName }: StateNamespace,
): Promise<void> {
  await db
    .insertInto('tenants')
    .values({ id: tenantId, slug: tenantSlug, name: tenantName })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
