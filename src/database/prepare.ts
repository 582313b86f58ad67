import { type Kysely, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { OperatorError } from '../base/operator-error.ts';
import type { KilolockDatabase } from './connection.ts';
import { isMissingTable } from './errors.ts';
import { type RequiredColumn, requiredColumns } from './kilolock-schema.ts';
import { migrations } from './migrations/index.ts';
import type { Database } from './types.ts';

/** The database has not Kilolock's tables, or those of an older Kilolock. */
export class NotKilolockDatabaseError extends OperatorError {
  override readonly name = 'NotKilolockDatabaseError';
  /** The columns, or tables, that are not there. */
  readonly missing: readonly RequiredColumn[];

  constructor(missing: readonly RequiredColumn[]) {
    const names = missing.map(({ table, column }) => `${table}.${column}`).join(', ');
    const verdict =
      missing.length === requiredColumns.length
        ? 'This is a database without the tables of Kilolock'
        : 'This is a Kilolock database that is not fully migrated';
    super(
      `${verdict}; missing: ${names}. Point DATABASE_URL, or the environment's own address, at a Kilolock database, and let Kilolock migrate it first.`,
    );
    this.missing = missing;
  }
}

/**
 * Brings the schema `state_archive` up to date. Safely run by many replicas at once, and again on a prepared database.
 * Nothing is created in `public`.
 *
 * @throws NotKilolockDatabaseError before anything of ours is created, when Kilolock's tables are missing or outdated.
 */
export async function prepareDatabase(database: KilolockDatabase): Promise<void> {
  const present = await kilolockColumns(database.db);
  const missing = requiredColumns.filter(({ table, column }) => !present.has(`${table}.${column}`));
  if (missing.length > 0) throw new NotKilolockDatabaseError(missing);

  const migrator = new Migrator({
    db: database.db,
    provider: { getMigrations: async () => ({ ...migrations }) },
    migrationTableSchema: 'state_archive',
  });
  const { error } = await migrator.migrateToLatest();
  if (error) throw error;
}

/**
 * Whether every migration of `state_archive` that this release knows has been applied. One statement.
 *
 * @throws the error of the driver when the database cannot be reached.
 */
export async function isPrepared(database: KilolockDatabase): Promise<boolean> {
  try {
    const { rows } = await sql<{ name: string }>`select name from state_archive.kysely_migration`.execute(
      database.db,
    );
    const applied = new Set(rows.map((row) => row.name));
    return Object.keys(migrations).every((name) => applied.has(name));
  } catch (error) {
    if (isMissingTable(error)) return false;
    throw error;
  }
}

/** The columns, as `table.column`, of those of Kilolock's tables that exist. */
async function kilolockColumns(db: Kysely<Database>): Promise<Set<string>> {
  const tables = [...new Set(requiredColumns.map(({ table }) => table))];
  const { rows } = await sql<{ name: string }>`
    select class.relname || '.' || attribute.attname as name
    from pg_class class
    join pg_attribute attribute on attribute.attrelid = class.oid and not attribute.attisdropped
    where class.relnamespace = to_regnamespace('public') and class.relname = any(${tables})`.execute(db);
  return new Set(rows.map(({ name }) => name));
}
