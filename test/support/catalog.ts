import { readFileSync } from 'node:fs';
import type { KilolockDatabase } from '../../src/database/connection.ts';

/** What PostgreSQL's catalogue says of a table or a view. */
export interface Relation {
  readonly kind: 'table' | 'view';
  readonly columns: ReadonlyArray<{ name: string; type: string; default: string | null; nullable: boolean }>;
  readonly constraints: ReadonlyArray<{ name: string; type: string; definition: string }> | null;
  readonly unique_indexes: readonly string[];
}

/** By name, as read from a real, fully migrated Kilolock database. */
export const kilolockCatalog: Readonly<Record<string, Relation>> = JSON.parse(
  readFileSync(new URL('../fixtures/kilolock-catalog.json', import.meta.url), 'utf8'),
);

/** Reads the same of a table or a view of a database, such as `public.states`. */
export async function readRelation({ pool }: KilolockDatabase, name: string): Promise<Relation> {
  const query = async <Row extends object>(text: string) =>
    (await pool.query<Row>(text, [name])).rows.map((row) => ({ ...row }));
  const [kind] = await query<{ kind: 'table' | 'view' }>(
    "select case relkind when 'r' then 'table' when 'v' then 'view' end as kind from pg_class where oid = $1::regclass",
  );
  const columns = await query<Relation['columns'][number]>(`
    select attname as name, format_type(atttypid, atttypmod) as type,
      pg_get_expr(adbin, adrelid) as default, not attnotnull as nullable
    from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attrelid = $1::regclass and attnum > 0 and not attisdropped
    order by attnum`);
  // From PostgreSQL 18 on NOT NULL has rows here ('n'); it is compared by column.
  const constraints = await query<{ name: string; type: string; definition: string }>(`
    select conname as name, contype as type, pg_get_constraintdef(oid) as definition
    from pg_constraint where conrelid = $1::regclass and contype in ('p', 'u', 'f', 'c', 'x')
    order by conname collate "C"`);
  const uniqueIndexes = await query<{ name: string }>(`
    select relname as name from pg_index join pg_class on oid = indexrelid
    where indrelid = $1::regclass and indisunique and not exists (select from pg_constraint where conindid = indexrelid)
    order by relname collate "C"`);
  if (kind === undefined) throw new Error(`${name} does not exist.`);
  return { kind: kind.kind, columns, constraints, unique_indexes: uniqueIndexes.map((index) => index.name) };
}
