import { type Kysely, type RawBuilder, sql } from 'kysely';
import { mayAddressState, mayIn, type Principal, type Scope } from '../auth/principal.ts';
import { isStorableText } from '../base/text.ts';
import { isUuid } from '../base/uuid.ts';
import { type KilolockDatabase, microsecondTime } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import {
  labelOf,
  labelSql,
  possibleNames,
  StateAmbiguousError,
  type StateNamespace,
  selectStates,
} from './namespace.ts';

/** A verified principal in one environment, and the database that holds the environment's states. */
export interface Caller {
  readonly principal: Principal;
  readonly namespace: StateNamespace;
  readonly database: KilolockDatabase;
  /**
   * Why support acts in an environment that is not its own; it then sees states in whatever lifecycle status. Null for
   * everybody else.
   */
  readonly supportReason: string | null;
}

/** Whether the caller's credential has a scope in the caller's environment. */
export function may({ principal, namespace }: Caller, scope: Scope): boolean {
  return mayIn(principal, scope, namespace);
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
 * The states among `labels` that the caller may see, by label. The tenant, the environment's prefix, the lifecycle and
 * the principal's state patterns are all checked here, on the row; what is not visible is absent.
 *
 * @throws StateAmbiguousError for a label that an environment's own database holds twice.
 */
export async function findStatesByLabel(
  db: Kysely<Database>,
  caller: Caller,
  labels: readonly string[],
): Promise<Map<string, StateRecord>> {
  const visible = labels.filter((label) => isStorableText(label) && mayAddressState(caller.principal, label));
  if (visible.length === 0) return new Map();
  const names = visible.flatMap((label) => possibleNames(caller.namespace, label));
  const records = await readVisible(db, caller, (query) => query.where('states.name', 'in', names));
  const byLabel = new Map<string, StateRecord>();
  for (const record of records) {
    if (byLabel.has(record.label)) throw new StateAmbiguousError(record.label);
    byLabel.set(record.label, record);
  }
  return byLabel;
}

/** The states among `ids` that the caller may see, by id; see {@link findStatesByLabel}. */
export async function findStatesById(
  db: Kysely<Database>,
  caller: Caller,
  ids: readonly string[],
): Promise<Map<string, StateRecord>> {
  const wellFormed = ids.filter(isUuid);
  if (wellFormed.length === 0) return new Map();
  const records = await readVisible(db, caller, (query) => query.where('states.id', 'in', wellFormed));
  return new Map(records.map((record) => [record.id, record]));
}

/**
 * The states the caller may see in ascending order of their labels (bytewise), at most `limit`, after the label `after`,
 * with labels that start with `labelPrefix`.
 *
 * @throws StateAmbiguousError for a label that an environment's own database holds twice: neither may be passed over,
 *   and a page that ends between the two would do so.
 */
export async function listStates(
  db: Kysely<Database>,
  caller: Caller,
  page: { readonly labelPrefix: string; readonly after: string | null; readonly limit: number },
): Promise<StateRecord[]> {
  const { labelPrefix, after, limit } = page;
  if (!isStorableText(labelPrefix) || !isStorableText(after ?? '')) return [];
  const label = labelSql(caller.namespace, 'states.name');
  const records = await readVisible(db, caller, (query) => {
    let narrowed = query
      .where(sql<boolean>`starts_with(${label}, ${labelPrefix})`)
      .where(mayAddressSql(caller.principal, label))
      .orderBy(label)
      .limit(limit);
    if (after !== null) narrowed = narrowed.where(sql<boolean>`${label} > ${after}`);
    return narrowed;
  });
  const twin = records.find((record, index) => record.label === records[index - 1]?.label);
  if (twin !== undefined) throw new StateAmbiguousError(twin.label);
  return records;
}

/** {@link mayAddressState} as SQL, so that a page is full of what the caller may see. */
export function mayAddressSql({ statePatterns }: Principal, label: RawBuilder<string>): RawBuilder<boolean> {
  if (statePatterns === null) return sql`true`;
  const covers = statePatterns
    .filter(isStorableText)
    .map((pattern) =>
      pattern.endsWith('*')
        ? sql<boolean>`starts_with(${label}, ${pattern.slice(0, -1)})`
        : sql<boolean>`${label} = ${pattern}`,
    );
  return covers.length === 0 ? sql`false` : sql`(${sql.join(covers, sql` or `)})`;
}

type StatesQuery = ReturnType<typeof selectStates>;

async function readVisible(
  db: Kysely<Database>,
  { namespace, principal, supportReason }: Caller,
  narrow: (query: StatesQuery) => StatesQuery,
): Promise<StateRecord[]> {
  const states = selectStates(db, namespace);
  const rows = await narrow(
    supportReason === null ? states.where('states.lifecycle_status', '=', 'active') : states,
  )
    .select(stateColumns())
    .execute();
  return rows
    .map((row) => stateRecordOf(row, namespace))
    .filter((record) => mayAddressState(principal, record.label));
}

/** What {@link stateRecordOf} is made of, of a statement that reads `states`. */
export function stateColumns() {
  return [
    'states.id',
    'states.name',
    'states.lineage',
    'states.lifecycle_status as lifecycleStatus',
    microsecondTime('states.created_at').as('createdAt'),
    microsecondTime('states.updated_at').as('updatedAt'),
    'states.current_version_id as currentVersionId',
    'states.exclusive_locks as exclusiveLocks',
    'states.coexistence_mode as coexistenceMode',
  ] as const;
}

/** The state of a row, as the namespace it belongs to knows it. */
export function stateRecordOf(
  row: Omit<StateRecord, 'label' | 'workspace' | 'environment'>,
  namespace: StateNamespace,
): StateRecord {
  return {
    id: row.id,
    label: labelOf(namespace, row.name),
    name: row.name,
    workspace: namespace.workspace,
    environment: namespace.environment,
    lineage: row.lineage,
    lifecycleStatus: row.lifecycleStatus,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    currentVersionId: row.currentVersionId,
    exclusiveLocks: row.exclusiveLocks,
    coexistenceMode: row.coexistenceMode,
  };
}
