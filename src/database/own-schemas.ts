import { type Kysely, sql } from 'kysely';
import type { Database } from './types.ts';

/** Whether a schema has a table of that name. To read one that is not there would end a transaction. */
export async function hasTable(db: Kysely<Database>, schema: string, name: string): Promise<boolean> {
  const { rows } = await sql<{ exists: boolean }>`
    select exists (
      select from pg_catalog.pg_class class join pg_catalog.pg_namespace namespace on namespace.oid = class.relnamespace
      where namespace.nspname = ${schema} and class.relname = ${name}
    ) as exists`.execute(db);
  return rows[0]?.exists ?? false;
}

/** Whether this role may make tables in a schema, or the schema itself where there is none. */
export async function mayChangeSchema(db: Kysely<Database>, schema: string): Promise<boolean> {
  const { rows } = await sql<{ may: boolean }>`
    select case when to_regnamespace(${schema}) is null
      then has_database_privilege(current_database(), 'create')
      else has_schema_privilege(${schema}, 'create') end as may`.execute(db);
  return rows[0]?.may ?? false;
}
