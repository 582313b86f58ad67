import { fail } from 'node:assert/strict';
import { readStateRows, type StateRows, type TextRow } from '../support/state-rows.ts';
import type { Database } from './postgres.ts';

/** The tables that a restore writes, and the columns that are the destination's or of the moment. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  states: ['name', 'updated_at'],
  state_versions: [],
  state_version_tags: [],
  resources: [],
  outputs: [],
  events: [],
};

/**
 * Kilolock's views that show a state, what it is found by, and what they repeat of its whereabouts. Ids are given one by one:
 * for a subselect PostgreSQL would work out the whole view first, of all states.
 */
const VIEWS: Readonly<
  Record<string, { readonly by: readonly [column: string, ids: keyof Ids]; readonly left: readonly string[] }>
> = {
  current_resources: { by: ['state_id', 'states'], left: ['state_id', 'state_name', 'tenant_slug'] },
  resource_dependencies: { by: ['state_version_id', 'versions'], left: [] },
  current_resource_dependencies: { by: ['from_resource_id', 'resources'], left: [] },
  current_resource_drift: { by: ['state_id', 'states'], left: ['state_id', 'state_name', 'refresh_run_id'] },
};

/** The ids of a state and of what belongs to it. */
interface Ids {
  readonly states: readonly string[];
  readonly versions: readonly string[];
  readonly resources: readonly string[];
}

/** Events that no archive carries, and those that this service adds. */
const LEFT_BEHIND = ['lock_acquire', 'lock_release', 'lock_force_release'];
const OURS = ['state_export', 'state_import', 'state_archive_download'];

/**
 * All that Kilolock holds of a state, in tables and in views, without what tells a faithful copy from its source: ids read
 * as what they stand for, the state's name and its last update are left out, so are the events that no archive carries.
 */
export async function rowsOf(database: Database, storedName: string): Promise<StateRows> {
  const stateId = await database.stateId(storedName);
  const tables = await readStateRows(database, stateId);
  const rows: Record<string, readonly TextRow[]> = {};
  for (const [table, left] of Object.entries(TABLES)) rows[table] = without(tables[table] ?? [], left);
  rows.events = (rows.events ?? [])
    .filter(({ kind }) => ![...LEFT_BEHIND, ...OURS].includes(kind ?? ''))
    .map((event) => ({ ...event, payload: withoutImport(event.payload ?? null) }));
  const { ids, names } = await identitiesOf(database, stateId);
  for (const [view, { by, left }] of Object.entries(VIEWS)) {
    const [column, kind] = by;
    const found = await viewRows(database, view, [column, ids[kind]]);
    rows[view] = without(found, left).map((row) => named(row, names));
  }
  return sorted(rows);
}

/**
 * Compares a state with its copy, table by table.
 *
 * @returns how many rows agree.
 * @throws AssertionError with the first row on either side that the other one does not have.
 */
export function sameRows(source: StateRows, copy: StateRows): string {
  const differences = Object.keys(source).flatMap((table) => {
    const [ours = [], theirs = []] = [source[table], copy[table]];
    const [only, onlyInCopy] = [missingIn(theirs, ours), missingIn(ours, theirs)];
    if (ours.length === theirs.length && only === undefined && onlyInCopy === undefined) return [];
    return [
      `${table}: ${ours.length} rows, ${theirs.length} in the copy`,
      `  source: ${JSON.stringify(only)}`,
      `  copy:   ${JSON.stringify(onlyInCopy)}`,
    ];
  });
  if (differences.length > 0) fail(differences.join('\n'));
  return Object.entries(source)
    .map(([table, rows]) => `${table} ${rows.length}`)
    .join(', ');
}

function missingIn(rows: readonly TextRow[], others: readonly TextRow[]): TextRow | undefined {
  const known = new Set(rows.map((row) => JSON.stringify(row)));
  return others.find((row) => !known.has(JSON.stringify(row)));
}

/** The rows without the times of what was written after the version of a serial, which are those of each backend. */
export function withoutTimesAfter(rows: StateRows, serial: number): StateRows {
  const times = ['created_at', 'updated_at', 'detected_at'];
  const isLater = (row: TextRow) => Number(row.serial ?? row.create_serial ?? serial + 1) > serial;
  const versionIsLater = ({ state_version_id: version }: TextRow) =>
    version === null || version === undefined || Number(version.replace('version ', '')) > serial;
  const drop = (table: string, ofRow: (row: TextRow) => boolean) =>
    (rows[table] ?? []).map((row) => (ofRow(row) ? (without([row], times)[0] as TextRow) : row));
  return sorted({
    ...rows,
    state_versions: drop('state_versions', isLater),
    // A tag that is moved keeps the time it was made at, and one of a name that is new has none before.
    state_version_tags: drop('state_version_tags', () => true),
    resources: drop('resources', isLater),
    current_resources: drop('current_resources', isLater),
    events: drop('events', versionIsLater),
    current_resource_drift: drop('current_resource_drift', () => true),
  });
}

/** The rows without some columns, for copies that have to differ in them. */
export function withoutColumns(
  rows: StateRows,
  columns: Readonly<Record<string, readonly string[]>>,
): StateRows {
  return sorted(
    Object.fromEntries(
      Object.entries(rows).map(([table, ofTable]) => [table, without(ofTable, columns[table] ?? [])]),
    ),
  );
}

function without(rows: readonly TextRow[], columns: readonly string[]): TextRow[] {
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).filter(([column]) => !columns.includes(column))),
  );
}

/** Restored events say which import brought them; jsonb prints members with one space after each comma. */
function withoutImport(payload: string | null): string | null {
  return payload?.replace(/"restored_by_import": "[^"]*"(, )?/, '').replace(/, \}$/, '}') ?? null;
}

/** The ids of a state and of what belongs to it, and what each stands for. */
async function identitiesOf(
  database: Database,
  stateId: string,
): Promise<{ readonly ids: Ids; readonly names: ReadonlyMap<string, string> }> {
  const rows = await database.rows<{ kind: keyof Ids | 'tenant'; id: string; name: string }>(
    `select 'versions' as kind, id, 'version ' || serial as name from state_versions where state_id = $1
     union all
     select 'resources', id, address || ' from ' || create_serial from resources where state_id = $1
     union all
     select 'tenant', tenant_id, 'own' from states where id = $1`,
    [stateId],
  );
  const idsOf = (wanted: string) => rows.filter(({ kind }) => kind === wanted).map(({ id }) => id);
  return {
    ids: { states: [stateId], versions: idsOf('versions'), resources: idsOf('resources') },
    names: new Map(rows.map(({ id, name }) => [id, name])),
  };
}

async function viewRows(
  database: Database,
  view: string,
  [column, ids]: readonly [string, readonly string[]],
): Promise<TextRow[]> {
  const columns = await database.rows<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = ('public.' || $1)::regclass and attnum > 0 and not attisdropped order by attnum`,
    [view],
  );
  const selected = columns.map(({ name }) => `row."${name}"::text`).join(', ');
  return database.rows(`select ${selected} from public.${view} row where row.${column} = any($1::uuid[])`, [
    ids,
  ]);
}

function named(row: TextRow, names: ReadonlyMap<string, string>): TextRow {
  return Object.fromEntries(
    Object.entries(row).map(([column, text]) => [column, text === null ? null : (names.get(text) ?? text)]),
  );
}

function sorted(rows: StateRows): StateRows {
  const byText = (a: TextRow, b: TextRow) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
  return Object.fromEntries(
    Object.entries(rows).map(([table, ofTable]) => [table, ofTable.toSorted(byText)]),
  );
}
