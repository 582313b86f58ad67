import { type Kysely, sql } from 'kysely';
import { Migrator } from 'kysely/migration';
import { OperatorError } from '../base/operator-error.ts';
import { inTransaction, type KilolockDatabase } from './connection.ts';
import { DatabaseUnusableError } from './errors.ts';
import { migrations } from './migrations.ts';
import { hasQueue, hasTable, makeQueue, QUEUE_SCHEMA } from './queue-schema.ts';
import type { Database } from './types.ts';

const SCHEMA = 'state_archive';

/**
 * The lock under which our schemas are changed: the one that Kysely's migrator takes for a session, and 0.1 with it. Here it
 * is a transaction's, because a session's would stay behind in a pooler, or after a failure.
 */
const MIGRATION_LOCK = '3853314791062309107';

/**
 * One late column of each table that this project cannot work without, which only a fully migrated Kilolock database has:
 * `schema_migrations` cannot be trusted (data model 0.3).
 */
const REQUIRED_COLUMNS = [
  'tenants.max_environment_resources',
  'environments.state_lock_default_mode',
  'states.lifecycle_status',
  'states.coexistence_mode',
  'state_versions.tenant_id',
  'state_version_tags.tenant_id',
  'resources.schema_version',
  'outputs.tenant_id',
  'events.tenant_id',
  'state_locks.source_serial',
  'apply_runs.tenant_id',
  'refresh_runs.tenant_id',
  'resource_reservations.tenant_id',
  'api_tokens.environment_id',
];

/** The database has not Kilolock's tables, or those of an older Kilolock. */
export class NotKilolockDatabaseError extends OperatorError {
  override readonly name = 'NotKilolockDatabaseError';
  /** The columns that are not there, as `table.column`. */
  readonly missing: readonly string[];

  constructor(missing: readonly string[]) {
    const verdict =
      missing.length === REQUIRED_COLUMNS.length
        ? 'This is a database without the tables of Kilolock'
        : 'This is a Kilolock database that is not fully migrated';
    super(
      `${verdict}; missing: ${missing.join(', ')}. Point DATABASE_URL, or the environment's own address, at a Kilolock database, and let Kilolock migrate it first.`,
    );
    this.missing = missing;
  }
}

/**
 * Prepares the control database: what every database has, and the queue beside it.
 *
 * @throws as {@link prepareDatabase} does.
 */
export async function prepareControlDatabase(database: KilolockDatabase): Promise<void> {
  await prepareDatabase(database);
  await bringUpToDate(database, QUEUE_SCHEMA, hasQueue, () => makeQueue(database));
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
  const missing = await missingColumns(database.for('read'));
  if (missing.length > 0) throw new NotKilolockDatabaseError(missing);
  await bringUpToDate(database, SCHEMA, hasEveryMigration, async (db) => {
    const migrator = new Migrator({
      db: db.withoutPlugins(),
      provider: { getMigrations: async () => ({ ...migrations }) },
      migrationTableSchema: SCHEMA,
    });
    const { error } = await migrator.migrateToLatest();
    if (error) throw error;
  });
}

/**
 * Whether every migration of `state_archive` that this release knows has been applied, and the queue is there: whether it is
 * a control database to work with.
 *
 * @throws DatabaseUnavailableError when the database cannot be reached, and soon: see the purpose `probe`.
 */
export async function isPrepared(database: KilolockDatabase): Promise<boolean> {
  const db = database.for('probe');
  return (await hasEveryMigration(db)) && hasQueue(db);
}

/** Makes a schema of ours what this release needs, unless it is: one process after the other. */
async function bringUpToDate(
  database: KilolockDatabase,
  schema: string,
  isUpToDate: (db: Kysely<Database>) => Promise<boolean>,
  change: (db: Kysely<Database>) => Promise<void>,
): Promise<void> {
  if (await isUpToDate(database.for('read'))) return;
  try {
    await inTransaction(database, 'migration', async ({ db }) => {
      await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`.execute(db);
      // Another replica, of a later release perhaps, was here first. Asked elsewhere, so that no lock of ours is in the way of a change.
      if (await isUpToDate(database.for('read'))) return;
      // What changes it would go on after a refusal, and tell only of the transaction that this had ended.
      if (!(await mayChange(db, schema)))
        throw new DatabaseUnusableError('it lacks the right to create there');
      await change(db);
    });
  } catch (error) {
    if (!(error instanceof DatabaseUnusableError)) throw error;
    throw new DatabaseUnusableError(
      `The schema ${schema} is not up to date, and this role may not change it. Run "npm run migrate" as its owner first. (${error.message})`,
      { cause: error },
    );
  }
}

/** Whether this role may make tables in a schema, or the schema itself where there is none. */
async function mayChange(db: Kysely<Database>, schema: string): Promise<boolean> {
  const { rows } = await sql<{ may: boolean }>`
    select case when to_regnamespace(${schema}) is null
      then has_database_privilege(current_database(), 'create')
      else has_schema_privilege(${schema}, 'create') end as may`.execute(db);
  return rows[0]?.may ?? false;
}

/** Migrations that are applied and unknown are those of a later release, which only adds what an earlier one can bear. */
async function hasEveryMigration(db: Kysely<Database>): Promise<boolean> {
  const table = `${SCHEMA}.kysely_migration`;
  if (!(await hasTable(db, table))) return false;
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(table)}`.execute(db);
  const applied = new Set(rows.map((row) => row.name));
  return Object.keys(migrations).every((name) => applied.has(name));
}

/** Which of {@link REQUIRED_COLUMNS} Kilolock's tables have not. */
async function missingColumns(db: Kysely<Database>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from unnest(${REQUIRED_COLUMNS}::text[]) with ordinality as required (name, place)
    where not exists (
      select from pg_class class
      join pg_attribute attribute on attribute.attrelid = class.oid and not attribute.attisdropped
      where class.relnamespace = to_regnamespace('public') and class.relname || '.' || attribute.attname = name
    )
    order by place`.execute(db);
  return rows.map(({ name }) => name);
}
