import type { KilolockDatabase } from '../../../src/database/connection.ts';
import { butFailures } from '../../support/state-rows.ts';

/** How many rows a table has, and a digest over every column of them all. */
export interface TableContents {
  readonly rows: number;
  readonly digest: string;
}

/**
 * What every table of a schema holds, by name, the record of failures left aside: two readings are equal when not one row
 * changed in between.
 */
export async function readTableContents(
  { pool }: KilolockDatabase,
  schema: 'public' | 'state_archive' = 'public',
): Promise<Record<string, TableContents>> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', relnamespace::regnamespace, relname) as name from pg_class
     where relkind = 'r' and relnamespace = $1::regnamespace order by 1`,
    [schema],
  );
  const readings = tables.map(
    ({ name }) =>
      `select '${name}' as name, count(*)::int as rows, md5(coalesce(string_agg(t::text, chr(10) order by t::text), '')) as digest
       from ${butFailures(name)} t`,
  );
  const { rows } = await pool.query<TableContents & { name: string }>(readings.join(' union all '));
  return Object.fromEntries(rows.map(({ name, ...contents }) => [name, contents]));
}
