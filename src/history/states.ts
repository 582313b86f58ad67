import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import { mayAddressState, type Principal } from '../auth/principal.ts';
import { microsecondTime } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import { type StateNamespace, storedName } from './namespace.ts';

/** A verified principal and the namespace its labels are looked up in. */
export interface Caller {
  readonly principal: Principal;
  readonly namespace: StateNamespace;
}

/** One row of `states`, seen from the caller's namespace. */
export interface StateRecord {
  readonly id: string;
  /** The label: the stored name without the namespace's prefix. */
  readonly label: string;
  /** `states.name` as stored. */
  readonly name: string;
  readonly workspace: string;
  readonly environment: string;
  readonly lineage: string | null;
  readonly lifecycleStatus: 'active' | 'suspended' | 'archived';
  readonly createdAt: string;
  readonly updatedAt: string;
  /** Null for a shell: a row that a lock created and no version was ever written to (data model 5). */
  readonly currentVersionId: string | null;
  readonly exclusiveLocks: boolean;
  readonly coexistenceMode: 'warn' | 'strict';
}

/**
 * The active states among `labels` that the caller may see, by label. The tenant, the environment's prefix, the
 * lifecycle and the principal's state patterns are all checked here, on the row; what is not visible is absent.
 */
export async function findStatesByLabel(
  db: Kysely<Database>,
  caller: Caller,
  labels: readonly string[],
): Promise<Map<string, StateRecord>> {
  const visible = labels.filter((label) => isStorable(label) && mayAddressState(caller.principal, label));
  if (visible.length === 0) return new Map();
  const names = visible.map((label) => storedName(caller.namespace, label));
  const records = await readVisible(db, caller, (query) => query.where('states.name', 'in', names));
  return new Map(records.map((record) => [record.label, record]));
}

/** The active states among `ids` that the caller may see, by id; see {@link findStatesByLabel}. */
export async function findStatesById(
  db: Kysely<Database>,
  caller: Caller,
  ids: readonly string[],
): Promise<Map<string, StateRecord>> {
  const wellFormed = ids.filter((id) => UUID.test(id));
  if (wellFormed.length === 0) return new Map();
  const records = await readVisible(db, caller, (query) => query.where('states.id', 'in', wellFormed));
  return new Map(records.map((record) => [record.id, record]));
}

/**
 * The active states the caller may see in ascending order of their stored names (bytewise), at most `limit`, after
 * the label `after`, with labels that start with `labelPrefix`.
 */
export async function listStates(
  db: Kysely<Database>,
  caller: Caller,
  page: { readonly labelPrefix: string; readonly after: string | null; readonly limit: number },
): Promise<StateRecord[]> {
  const { namespace, principal } = caller;
  const { after } = page;
  if (!isStorable(page.labelPrefix) || !isStorable(after ?? '')) return [];
  const patterns = principal.statePatterns?.filter(isStorable) ?? null;
  return readVisible(db, caller, (query) => {
    let narrowed = query
      .where(sql<boolean>`starts_with(states.name, ${storedName(namespace, page.labelPrefix)})`)
      .orderBy(sql`states.name collate "C"`)
      .limit(page.limit);
    if (after !== null) {
      narrowed = narrowed.where(sql<boolean>`states.name collate "C" > ${storedName(namespace, after)}`);
    }
    if (patterns !== null) {
      narrowed = narrowed.where((where) =>
        where.or(
          patterns.map((pattern) =>
            pattern.endsWith('*')
              ? sql<boolean>`starts_with(states.name, ${storedName(namespace, pattern.slice(0, -1))})`
              : where('states.name', '=', storedName(namespace, pattern)),
          ),
        ),
      );
    }
    return narrowed;
  });
}

/** Whether PostgreSQL can hold a text; what it cannot hold is nobody's name, and must not become another's on the way. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

type StatesQuery = SelectQueryBuilder<Database, 'states', Record<never, never>>;

async function readVisible(
  db: Kysely<Database>,
  { namespace, principal }: Caller,
  narrow: (query: StatesQuery) => StatesQuery,
): Promise<StateRecord[]> {
  const rows = await narrow(
    db
      .selectFrom('states')
      .where('states.tenant_id', '=', namespace.tenantId)
      .where('states.lifecycle_status', '=', 'active')
      .where(sql<boolean>`starts_with(states.name, ${namespace.namePrefix})`),
  )
    .select([
      'states.id',
      'states.name',
      'states.lineage',
      'states.lifecycle_status as lifecycleStatus',
      microsecondTime('states.created_at').as('createdAt'),
      microsecondTime('states.updated_at').as('updatedAt'),
      'states.current_version_id as currentVersionId',
      'states.exclusive_locks as exclusiveLocks',
      'states.coexistence_mode as coexistenceMode',
    ])
    .execute();
  return rows
    .map((row) => ({
      ...row,
      label: row.name.slice(namespace.namePrefix.length),
      workspace: namespace.workspace,
      environment: namespace.environment,
    }))
    .filter((record) => mayAddressState(principal, record.label));
}
