import { sql } from 'kysely';
import { PgBoss, type QueueOptions } from 'pg-boss';
import { inTransaction, type KilolockDatabase, runForLibrary } from './connection.ts';
import { DatabaseUnusableError } from './errors.ts';
import { MIGRATION_LOCK } from './migration-lock.ts';
import { hasTable, mayChangeSchema } from './own-schemas.ts';

/** The schema of pg-boss's tables in the control database, beside our own `state_archive`. */
export const QUEUE_SCHEMA = 'state_archive_queue';

/** The queue that carries operations. */
export const OPERATION_QUEUE = 'operations';

/** The version of its schema that this release of pg-boss needs; it works on later ones too. */
export const QUEUE_SCHEMA_VERSION = 46;

/**
 * A job says that an operation is waiting to be worked on. How often it is tried is for the operation's record to decide, so
 * that here nothing is ever given up: a job is there until it is removed.
 */
const QUEUE_OPTIONS: QueueOptions = {
  retryLimit: 1_000_000,
  retryDelay: 1,
  retryBackoff: true,
  retryDelayMax: 8,
  // The shortest there is: after so many seconds of silence another worker is given the job.
  heartbeatSeconds: 10,
  expireInSeconds: 23 * 3600,
  retentionSeconds: 90 * 86400,
};

/**
 * pg-boss on the connections of a database. It is never started: it then has no timers and asks nothing by itself, and every
 * statement it runs is one that was called for.
 */
export function openBoss(database: KilolockDatabase): PgBoss {
  const boss = new PgBoss({
    db: { executeSql: (text, values) => runForLibrary(database, 'queue', text, values) },
    schema: QUEUE_SCHEMA,
    supervise: false,
    schedule: false,
    // Several replicas ask, and one of them looks, so often.
    monitorIntervalSeconds: 5,
    reindex: false,
    monitorVacuum: false,
    persistWarnings: false,
    persistQueueStats: false,
    registerInstance: false,
    openTelemetry: { enabled: false },
  });
  // What a call fails with it throws; an event without a listener would end the process.
  boss.on('error', () => {});
  return boss;
}

/**
 * Makes, or brings up to date, the queue in the control database. Safely run by many replicas at once, and again on a
 * database that has it, a later release's included: nothing is written there then.
 *
 * @throws DatabaseUnusableError when the schema has to be changed by somebody who may not.
 */
export async function prepareQueue(database: KilolockDatabase): Promise<void> {
  if (await hasQueue(database, 'read')) return;
  if (!(await mayChangeSchema(database.for('read'), QUEUE_SCHEMA))) {
    throw new DatabaseUnusableError(
      `The schema ${QUEUE_SCHEMA} is not up to date, and this role may not change it. Run "npm run migrate" as its owner first.`,
    );
  }
  // pg-boss has a lock of its own, and two that make the schema at once still meet.
  await inTransaction(database, 'migration', async ({ db }) => {
    await sql`select pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`.execute(db);
    if (!(await hasQueue(database, 'read'))) await makeQueue(database);
  });
}

async function makeQueue(database: KilolockDatabase): Promise<void> {
  const boss = openBoss(database);
  await boss.start();
  try {
    await boss.createQueue(OPERATION_QUEUE, QUEUE_OPTIONS);
    // Somebody may have made it before with other options.
    await boss.updateQueue(OPERATION_QUEUE, QUEUE_OPTIONS);
  } finally {
    await boss.stop({ close: false, graceful: false });
  }
}

/**
 * Whether the queue is there, as this release needs it or later.
 *
 * @throws DatabaseUnavailableError when the database cannot be reached.
 */
export async function hasQueue(database: KilolockDatabase, purpose: 'read' | 'probe'): Promise<boolean> {
  const version = await versionOf(database, purpose);
  if (version === null || version < QUEUE_SCHEMA_VERSION) return false;
  const { rows } = await sql`
    select from ${sql.table(`${QUEUE_SCHEMA}.queue`)} where name = ${OPERATION_QUEUE}
  `.execute(database.for(purpose));
  return rows.length > 0;
}

/** Null when there is none, or half of one. */
async function versionOf(database: KilolockDatabase, purpose: 'read' | 'probe'): Promise<number | null> {
  const db = database.for(purpose);
  if (!(await hasTable(db, QUEUE_SCHEMA, 'version'))) return null;
  const { rows } = await sql<{ version: number }>`
    select version from ${sql.table(`${QUEUE_SCHEMA}.version`)}`.execute(db);
  return rows[0]?.version ?? null;
}
