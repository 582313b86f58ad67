import { type Kysely, sql } from 'kysely';
import { PgBoss, type QueueOptions } from 'pg-boss';
import { type KilolockDatabase, runForLibrary } from './connection.ts';
import type { Database } from './types.ts';

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

/** Makes the queue in the control database, or brings it up to date. */
export async function makeQueue(database: KilolockDatabase): Promise<void> {
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

/** Whether the queue is there, as this release needs it or later. */
export async function hasQueue(db: Kysely<Database>): Promise<boolean> {
  const table = `${QUEUE_SCHEMA}.queue`;
  if (!(await hasTable(db, table))) return false;
  const { rows } = await sql`
    select from ${sql.table(table)} where name = ${OPERATION_QUEUE}
      and (select version from ${sql.table(`${QUEUE_SCHEMA}.version`)}) >= ${QUEUE_SCHEMA_VERSION}`.execute(
    db,
  );
  return rows.length > 0;
}

/** Whether there is a table of that name, with its schema's: to read one that is not there would be an error in the server's log. */
export async function hasTable(db: Kysely<Database>, name: string): Promise<boolean> {
  const { rows } = await sql<{ exists: boolean }>`select to_regclass(${name}) is not null as exists`.execute(
    db,
  );
  return rows[0]?.exists ?? false;
}
