import { type Expression, Kysely, PostgresDialect, type RawBuilder, sql } from 'kysely';
import pg from 'pg';
import { commit } from './commit.ts';
import type { Database } from './types.ts';

/** A PostgreSQL database and the pool of connections to it. */
export interface KilolockDatabase {
  readonly pool: pg.Pool;
  /** Runs each query on whichever pooled connection is free. */
  readonly db: Kysely<Database>;
  /** Closes every connection, after the work running on it has ended. */
  close(): Promise<void>;
}

/** One checked-out connection. */
export interface DatabaseSession {
  /** Runs every query on exactly `client`, so that it shares `client`'s transaction and COPY streams. */
  readonly db: Kysely<Database>;
  readonly client: pg.PoolClient;
  /**
   * Closes the connection at once, because it is stuck in the middle of a message exchange. Later queries on the session
   * fail, an open transaction is rolled back by the server, and the pool replaces the connection.
   */
  discard(reason: Error): void;
  /** Whether the session was discarded. */
  readonly discarded: boolean;
}

/** Options of {@link connectDatabase}. */
export interface ConnectOptions {
  /** A PostgreSQL URI, `postgres://user:password@host:port/database`. */
  readonly connectionString: string;
  /** Most connections open at one time; 10 when absent. */
  readonly maxConnections?: number;
  /** What `pg_stat_activity` shows; `kilolock-state-archive` when absent. */
  readonly applicationName?: string;
}

/** The server answered COMMIT with a rollback: an earlier statement had failed and its error was swallowed. */
export class TransactionRolledBackError extends Error {
  override readonly name = 'TransactionRolledBackError';

  constructor() {
    super('The transaction was rolled back by PostgreSQL because one of its statements had failed.');
  }
}

const { builtins } = pg.types;
const asText = (text: string): string => text;
// text[]: the typings of pg list scalar types only.
const asTextArray = pg.types.getTypeParser(1009 as Parameters<typeof pg.types.getTypeParser>[0]);

// pg's own parsers lose data here: Date drops microseconds, and JSON.parse rounds numbers and reorders keys.
const lossless = new Map<number, (text: string) => unknown>([
  [builtins.INT8, asText],
  [builtins.TIMESTAMPTZ, asText],
  [builtins.TIMESTAMP, asText],
  [builtins.DATE, asText],
  [builtins.JSON, asText],
  [builtins.JSONB, asText],
  [1016, asTextArray], // int8[]
  [1185, asTextArray], // timestamptz[]
  [1115, asTextArray], // timestamp[]
  [1182, asTextArray], // date[]
  [199, asTextArray], // json[]
  [3807, asTextArray], // jsonb[]
]);

const types: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: string) {
    return (
      (format === 'binary' ? undefined : lossless.get(oid)) ?? pg.types.getTypeParser(oid, format as 'text')
    );
  },
};

/** How long a query waits for a connection: a server that does not answer must not hold a request for ever. */
const CONNECTION_TIMEOUT_MS = 30_000;

/**
 * Opens a pool on a database. No connection is made before the first query.
 *
 * Every session runs with `TimeZone=UTC` and `DateStyle=ISO`. Values of the types bigint, timestamptz, json and jsonb
 * (and arrays of them) come back as PostgreSQL's own text, never parsed.
 */
export function connectDatabase(options: ConnectOptions): KilolockDatabase {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: CONNECTION_TIMEOUT_MS,
    application_name: options.applicationName ?? 'kilolock-state-archive',
    types,
    // Not start-up options: connection poolers refuse those, and a connection string could override them.
    onConnect: async (client) => {
      await client.query("set time zone 'UTC'; set datestyle to 'ISO'");
    },
  });
  // A broken connection fails the query that runs on it, and the pool replaces it; without listeners the same
  // 'error' event would end the process.
  const ignoreBrokenConnection = () => {};
  pool.on('error', ignoreBrokenConnection);
  pool.on('connect', (client) => client.on('error', ignoreBrokenConnection));

  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) });
  return { pool, db, close: () => pool.end() };
}

/**
 * Checks one connection out for `work` and gives it back afterwards. A connection that broke, or that `work`
 * discarded, is dropped from the pool instead.
 */
export async function withSession<T>(
  database: KilolockDatabase,
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  const session = await openSession(database);
  try {
    return await work(session);
  } catch (error) {
    await rollBack(session);
    throw error;
  } finally {
    session.release();
  }
}

/**
 * Runs `work` in one transaction: committed when `work` succeeds, rolled back when it throws, and the error of `work`
 * is the one thrown.
 *
 * - `read-only-snapshot`: REPEATABLE READ READ ONLY. Every statement sees the database as it was at the first one.
 * - `read-write`: READ COMMITTED.
 *
 * A connection that is lost during COMMIT is no failure when the transaction turns out to be committed.
 *
 * @throws TransactionRolledBackError when `work` succeeded though one of its statements had failed; CommitUndecidedError
 *   when nobody can tell whether the transaction was committed.
 */
export function inTransaction<T>(
  database: KilolockDatabase,
  mode: 'read-only-snapshot' | 'read-write',
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  return withSession(database, async (session) => {
    const { client } = session;
    await client.query(
      mode === 'read-only-snapshot'
        ? 'begin isolation level repeatable read read only'
        : 'begin isolation level read committed read write',
    );
    const result = await work(session);
    if (mode === 'read-only-snapshot') {
      // A reader has nothing to commit: it may stop in the middle of a COPY and discard the session, or lose it now.
      if (!session.discarded) await client.query('commit').catch((error) => session.discard(error));
      return result;
    }
    if ((await commit(database.pool, client)) === 'ROLLBACK') throw new TransactionRolledBackError();
    return result;
  });
}

/**
 * Leaves no transaction open. Also finds out, by a round trip, whether the connection outlived the error: a server that
 * ends a session says so first and closes the connection a moment later.
 */
async function rollBack(session: DatabaseSession): Promise<void> {
  if (session.discarded) return;
  await session.client.query('rollback').catch((failure) => session.discard(failure));
}

interface OpenSession extends DatabaseSession {
  release(): void;
}

async function openSession(database: KilolockDatabase): Promise<OpenSession> {
  const client = await database.pool.connect();
  let state: 'open' | 'discarded' | 'released' = 'open';
  let broken: Error | undefined;
  const noteBroken = (error: Error) => {
    broken ??= error;
  };
  client.on('error', noteBroken);

  const giveBack = (error: Error | undefined) => {
    client.off('error', noteBroken);
    client.release(error);
  };
  return {
    client,
    db: kyselyOn(client, () => state === 'open'),
    get discarded() {
      return state === 'discarded';
    },
    discard(reason) {
      if (state !== 'open') return;
      state = 'discarded';
      giveBack(reason);
    },
    release() {
      if (state === 'open') giveBack(broken);
      state = 'released';
    },
  };
}

function kyselyOn(client: pg.PoolClient, isOpen: () => boolean): Kysely<Database> {
  const connection = {
    query: client.query.bind(client) as pg.PoolClient['query'],
    release() {}, // The session gives the client back, not Kysely.
  };
  return new Kysely<Database>({
    dialect: new PostgresDialect({
      pool: {
        options: {},
        async connect() {
          if (!isOpen()) throw new Error('The database session has ended.');
          return connection;
        },
        async end() {},
      },
    }),
  });
}

/**
 * RFC 3339 text in UTC with exactly six fractional digits (`2026-03-02T10:00:00.000118Z`) of a timestamptz column or
 * expression. NULL stays NULL: name `string | null` for a column that may hold it. A time that RFC 3339 cannot say
 * (`infinity`, 44 BC, the year 10000) comes as PostgreSQL spells it, so that it never passes for another.
 *
 * @example
 * ```ts
 * db.selectFrom('states').select((eb) => [
 *   microsecondTime('states.created_at').as('created_at'),
 *   microsecondTime<string | null>('states.lifecycle_changed_at').as('lifecycle_changed_at'),
 *   microsecondTime(eb.ref('updated_at')).as('updated_at'),
 * ])
 * ```
 */
export function microsecondTime<Text extends string | null = string>(
  column: string | Expression<Text>,
): RawBuilder<Text> {
  const time = typeof column === 'string' ? sql.ref(column) : column;
  return sql<Text>`case when ${isArchivableTime(column)}
    then to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else ${time}::text end`;
}

/** Whether a timestamptz column or expression lies in the years that RFC 3339 can say, 0001 to 9999. */
export function isArchivableTime(column: string | Expression<unknown>): RawBuilder<boolean> {
  const time = typeof column === 'string' ? sql.ref(column) : column;
  return sql<boolean>`(${time} >= timestamptz '0001-01-01 00:00:00+00' and ${time} < timestamptz '10000-01-01 00:00:00+00')`;
}
