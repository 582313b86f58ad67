import type { KilolockDatabase } from '../../src/database/connection.ts';

/** One row as PostgreSQL prints it: every column as text, NULL as null. */
export type TextRow = Readonly<Record<string, string | null>>;

/** The rows of one state, by table. */
export type StateRows = Readonly<Record<string, readonly TextRow[]>>;

/**
 * Every row of every table in `public` that belongs to a state, every column as text, so that nothing is rounded. What
 * tells one copy of a history from another is taken out: the rows' own ids are left out, the id of a version reads
 * `version <serial>` and the state's own `state`, in columns and in payloads, and the state's tenant reads `own`. Rows are
 * sorted by what is left.
 */
export async function readStateRows(
  { pool }: Pick<KilolockDatabase, 'pool'>,
  stateId: string,
): Promise<StateRows> {
  const { rows: columns } = await pool.query<{ table: string; column: string }>(
    `select class.relname as table, attribute.attname as column
     from pg_class class
     join pg_attribute attribute on attribute.attrelid = class.oid and attnum > 0 and not attisdropped
     where class.relnamespace = 'public'::regnamespace and class.relkind = 'r'
     order by class.relname, attribute.attnum`,
  );
  const { rows: states } = await pool.query<{ tenantId: string }>(
    'select tenant_id as "tenantId" from states where id = $1',
    [stateId],
  );
  const { rows: versions } = await pool.query<{ id: string; serial: string }>(
    'select id, serial from state_versions where state_id = $1',
    [stateId],
  );
  const names = new Map<string, string>([
    [stateId, 'state'],
    ...versions.map(({ id, serial }) => [id, `version ${serial}`] as const),
  ]);
  const tenantId = states[0]?.tenantId;
  const result: Record<string, TextRow[]> = {};
  for (const [table, ofTable] of Map.groupBy(columns, (column) => column.table)) {
    const columnNames = ofTable.map(({ column }) => column);
    const condition = conditionOn(table, columnNames);
    if (condition === null) continue;
    const selected = columnNames.map((column) => `row."${column}"::text`).join(', ');
    const { rows } = await pool.query<TextRow>(
      `select ${selected} from public."${table}" row where ${condition}`,
      [stateId],
    );
    result[table] = rows.map((row) => withoutIdentity(row, names, tenantId)).sort(byText);
  }
  return result;
}

function conditionOn(table: string, columns: readonly string[]): string | null {
  if (table === 'states') return 'row.id = $1';
  if (columns.includes('state_id')) return 'row.state_id = $1';
  if (columns.includes('state_version_id')) {
    return 'row.state_version_id in (select id from state_versions where state_id = $1)';
  }
  return null;
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

function withoutIdentity(
  row: TextRow,
  names: ReadonlyMap<string, string>,
  tenantId: string | undefined,
): TextRow {
  const entries = Object.entries(row)
    .filter(([column]) => column !== 'id')
    .map(([column, text]) => {
      if (column === 'tenant_id' && text === tenantId) return [column, 'own'];
      return [column, text?.replace(UUID, (id) => names.get(id) ?? id) ?? null];
    });
  return Object.fromEntries(entries);
}

function byText(a: TextRow, b: TextRow): number {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The rows of a table that are not the record of an operation that failed or was cancelled: the only row that writes. */
export function butFailures(table: string): string {
  return table === 'public.events'
    ? `(select * from public.events where coalesce(payload ->> 'outcome', '') not in ('failed', 'cancelled'))`
    : table;
}

/** How many rows each table of the schemas has, as `schema.table`, the record of failures left aside. */
export async function countRows(
  { pool }: KilolockDatabase,
  schemas: readonly string[] = ['public', 'state_archive'],
): Promise<Record<string, number>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', relnamespace::regnamespace, relname) as name from pg_class
     where relkind = 'r' and relnamespace::regnamespace::text = any($1) order by 1`,
    [schemas],
  );
  const counts = tables.map(
    ({ name }) => `select '${name}' as name, count(*)::int as count from ${butFailures(name)} t`,
  );
  const { rows } = await pool.query<{ name: string; count: number }>(counts.join(' union all '));
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}
