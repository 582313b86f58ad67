import { type Kysely, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { OperatorError } from '../base/operator-error.ts';
import { inTransaction, type KilolockDatabase } from './connection.ts';
import { DatabaseUnusableError } from './errors.ts';
import { type RequiredColumn, requiredColumns } from './kilolock-schema.ts';
import { MIGRATION_LOCK } from './migration-lock.ts';
import { migrations } from './migrations.ts';
import { hasTable, mayChangeSchema } from './own-schemas.ts';
import { hasQueue, prepareQueue } from './queue-schema.ts';
import type { Database } from './types.ts';

const SCHEMA = 'state_archive';

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
 * Prepares the control database: what every database has, and the queue beside it.
 *
 * @throws as {@link prepareDatabase} and {@link prepareQueue} do.
 */
export async function prepareControlDatabase(database: KilolockDatabase): Promise<void> {
  await prepareDatabase(database);
  await prepareQueue(database);
}

/**
 * Brings the schema `state_archive` up to date. Safely run by many replicas at once, and again on a prepared database, also
 * on one that a later release has prepared: nothing is written there, so that it needs no right to create anything. Nothing
 * is created in `public`.
 *
 * @throws NotKilolockDatabaseError before anything of ours is created, when Kilolock's tables are missing or outdated.
 * @throws DatabaseUnusableError when the schema has to be changed by somebody who may not.
 */
export async function prepareDatabase(database: KilolockDatabase): Promise<void> {
  const present = await kilolockColumns(database.for('read'));
  const missing = requiredColumns.filter(({ table, column }) => !present.has(`${table}.${column}`));
  if (missing.length > 0) throw new NotKilolockDatabaseError(missing);
  if (await hasEveryMigration(database.for('read'))) return;
  try {
    await inTransaction(database, 'migration', async ({ db }) => {
      await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`.execute(db);
      // Another replica, of a later release perhaps, was here first.
      if (await hasEveryMigration(db)) return;
      // The migrator would go on after the refusal, and tell only of the transaction that this had ended.
      if (!(await mayChangeSchema(db, SCHEMA)))
        throw new DatabaseUnusableError('it lacks the right to create there');
      const migrator = new Migrator({
        db: db.withoutPlugins(),
        provider: { getMigrations: async () => ({ ...migrations }) },
        migrationTableSchema: SCHEMA,
      });
      const { error } = await migrator.migrateToLatest();
      if (error) throw error;
    });
  } catch (error) {
    if (!(error instanceof DatabaseUnusableError)) throw error;
    throw new DatabaseUnusableError(
      `The schema ${SCHEMA} is not up to date, and this role may not change it. Run "npm run migrate" as its owner first. (${error.message})`,
      { cause: error },
    );
  }
}

/**
 * Whether every migration of `state_archive` that this release knows has been applied, and the queue is there: whether it is
 * a control database to work with.
 *
 * @throws DatabaseUnavailableError when the database cannot be reached, and soon: see the purpose `probe`.
 */
export async function isPrepared(database: KilolockDatabase): Promise<boolean> {
  return (await hasEveryMigration(database.for('probe'))) && hasQueue(database, 'probe');
}

/** Migrations that are applied and unknown are those of a later release, which only adds what an earlier one can bear. */
async function hasEveryMigration(db: Kysely<Database>): Promise<boolean> {
  if (!(await hasTable(db, SCHEMA, 'kysely_migration'))) return false;
  const { rows } = await sql<{ name: string }>`
    select name from ${sql.table(`${SCHEMA}.kysely_migration`)}`.execute(db);
  const applied = new Set(rows.map((row) => row.name));
  return Object.keys(migrations).every((name) => applied.has(name));
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
