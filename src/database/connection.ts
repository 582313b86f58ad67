import { type Expression, type Kysely, type RawBuilder, sql, type Transaction } from 'kysely';
import pg from 'pg';
import { CommitUndecidedError, commit } from './commit.ts';
import { readDsn } from './dsn.ts';
import { DatabaseUnavailableError, interpretError, isEndOfSession } from './errors.ts';
import { kyselyOfStatements, kyselyOfTransaction } from './kysely.ts';
import { queryPinned } from './pinned-query.ts';
import { PreparedStatements } from './prepared-statements.ts';
import { type Lane, PINS, PURPOSES, type Purpose, type StatementPurpose } from './purposes.ts';
import { RoutedPool } from './routed-pool.ts';
import type { Database } from './types.ts';

/** A PostgreSQL database and the connections to it. */
export interface KilolockDatabase {
  /**
   * Runs each statement as a transaction of its own, made ours and limited by its purpose, in one round trip. Names without
   * a schema are those of `public`; raw SQL has to name schemas itself.
   *
   * @throws from the statements: {@link DatabaseUnavailableError}, {@link DatabaseUnusableError}, and PostgreSQL's errors
   *   about what was asked as they are.
   */
  for(purpose: StatementPurpose): Kysely<Database>;
  /** The connections by the kind of work they are kept for. What runs on them directly is not pinned. */
  readonly pools: Readonly<Record<Lane, pg.Pool>>;
  /** One of `pools`, for tests and administration. */
  readonly pool: pg.Pool;
  /** Whether no connection is open: the database is at rest, and costs nothing. */
  readonly isAtRest: boolean;
  /** Closes every connection after the work running on it has ended, or by force when that takes more than some seconds. */
  close(): Promise<void>;
}

/** One connection, in one transaction. */
export interface DatabaseSession {
  /** Runs every query on exactly `client`. Names without a schema are those of `public`. */
  readonly db: Transaction<Database>;
  readonly client: pg.PoolClient;
  /**
   * Waits for something that PostgreSQL has to send or take on `client`, a COPY stream's next chunk for one. When it gives
   * no sign for as long as the purpose's patience lasts, the session is discarded.
   *
   * @throws DatabaseUnavailableError when the connection breaks or PostgreSQL gives no sign.
   */
  answered<T>(answer: Promise<T>): Promise<T>;
  /**
   * Closes the connection at once, because it is stuck in the middle of a message exchange. Later queries on the session
   * fail, an open transaction is rolled back by the server, and the pool replaces the connection.
   */
  discard(reason: Error): void;
  /** Whether the session was discarded. */
  readonly discarded: boolean;
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

/** How long a connection takes to be made at most, whatever waits for it. */
const CONNECT_MS = 10_000;
/** After how long a silence the operating system asks whether the server's machine is still there. */
const KEEP_ALIVE_MS = 30_000;
/** One statement at a time is enough for a queue, and another that does not wait behind it. */
const QUEUE_CONNECTIONS = 2;
/** How long a closing database waits for the work on it. */
const CLOSE_GRACE_MS = 10_000;
/** How long a connection that was closed by force may take to be gone. */
const FORCED_CLOSE_MS = 1_000;

/**
 * Opens a database. No connection is made before the first query.
 *
 * @param options.connectionString the address in any form that libpq reads, see {@link readDsn}.
 * @param options.maxConnections most connections open at one time for each kind of work but the queue, see {@link Lane}.
 * @throws DsnError when the address cannot be read.
 *
 * Values of the types bigint, timestamptz, json and jsonb (and arrays of them) come back as PostgreSQL's own text, never
 * parsed. Nothing is set for a session: see `purposes.ts`.
 */
export function connectDatabase({
  connectionString,
  maxConnections = 8,
}: {
  readonly connectionString: string;
  readonly maxConnections?: number;
}): KilolockDatabase {
  const address = readDsn(connectionString);
  const { user, password, database } = address;
  const clients = new Set<pg.PoolClient>();
  const makePool = (max: number) => {
    const pool = new RoutedPool(address, {
      user,
      password,
      database,
      options: address.options,
      max,
      connectionTimeoutMillis: Math.min(CONNECT_MS, (address.connectTimeoutSeconds ?? Infinity) * 1000),
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      application_name: 'kilolock-state-archive',
      types,
    });
    // A broken connection fails the query that runs on it, and the pool replaces it; without listeners the same
    // 'error' event would end the process.
    const ignoreBrokenConnection = () => {};
    pool.on('error', ignoreBrokenConnection);
    pool.on('connect', (client) => {
      client.on('error', ignoreBrokenConnection);
      clients.add(client);
      client.once('end', () => clients.delete(client));
    });
    return pool;
  };
  const pools = {
    reads: makePool(maxConnections),
    writes: makePool(maxConnections),
    streams: makePool(maxConnections),
    queue: makePool(QUEUE_CONNECTIONS),
  };
  return databaseOn(pools, async () => {
    const ended = Promise.all(Object.values(pools).map((pool) => pool.end()));
    if (await isOver(ended, CLOSE_GRACE_MS)) return void (await ended);
    for (const client of clients) cut(client);
    await isOver(ended, FORCED_CLOSE_MS);
  });
}

/** A database on pools that are there already. */
export function databaseOn(
  pools: KilolockDatabase['pools'],
  close: KilolockDatabase['close'],
): KilolockDatabase {
  const statements = new Map<StatementPurpose, Kysely<Database>>();
  const prepared = new PreparedStatements();
  const database: KilolockDatabase = {
    pools,
    pool: pools.reads,
    for(purpose) {
      const made = statements.get(purpose);
      if (made !== undefined) return made;
      const kept = PURPOSES[purpose].readOnly ? prepared : null;
      const kysely = kyselyOfStatements((text, values) =>
        inSession(database, purpose, (session) =>
          session.answered(queryPinned(session.client, PINS[purpose], text, values, kept)),
        ),
      );
      statements.set(purpose, kysely);
      return kysely;
    },
    get isAtRest() {
      return Object.values(pools).every(({ totalCount }) => totalCount === 0);
    },
    close,
  };
  return database;
}

/** Whether work has ended, in whatever way, within so much time. */
async function isOver(work: Promise<unknown>, withinMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, withinMs, false);
  });
  try {
    const ended = () => true;
    return await Promise.race([work.then(ended, ended), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Ends a connection without a word to the server, which may be frozen. */
function cut(client: pg.PoolClient): void {
  (client as pg.PoolClient & Pick<pg.Client, 'connection'>).connection.stream.destroy();
}

/**
 * Runs what a library asks of the database that reads values by pg's own types: one statement, or a script that begins and
 * ends a transaction of its own. Either is made ours and limited by its purpose.
 *
 * @throws as the statements of {@link KilolockDatabase.for} do.
 */
export function runForLibrary(
  database: KilolockDatabase,
  purpose: Purpose,
  text: string,
  values: readonly unknown[] = [],
): Promise<pg.QueryResult> {
  return inSession(database, purpose, async (session) => {
    const pins = PINS[purpose];
    if (!isScript(text))
      return session.answered(queryPinned(session.client, pins, text, values, null, pg.types));
    try {
      // A BEGIN within a simple query takes in what stands before it in there: the pins are part of the script's transaction.
      const script = { text: [...pins, text].join('; '), types: pg.types };
      const results = await session.answered(session.client.query(script));
      return (Array.isArray(results) ? results.slice(pins.length) : results) as pg.QueryResult;
    } catch (error) {
      await rollBack(session);
      throw error;
    }
  });
}

function isScript(text: string): boolean {
  return /^\s*begin\s*;/i.test(text);
}

/**
 * Runs `work` in one transaction on one connection: committed when `work` succeeds, rolled back when it throws. What its
 * purpose means is written at {@link Purpose}.
 *
 * @param options.signal aborts the transaction wherever it stands before its COMMIT, by cutting its connection; the signal's
 *   reason is thrown.
 * @throws the error of `work`; DatabaseUnavailableError and DatabaseUnusableError in place of the driver's when the database
 *   is the cause; TransactionRolledBackError when `work` succeeded though one of its statements had failed;
 *   CommitUndecidedError when nobody can tell whether the transaction was committed. A connection
 *   that is lost during COMMIT is no failure when the transaction turns out to be committed.
 */
export async function inTransaction<T>(
  database: KilolockDatabase,
  purpose: Purpose,
  work: (session: DatabaseSession) => Promise<T>,
  options: { readonly signal?: AbortSignal } = {},
): Promise<T> {
  const { signal } = options;
  signal?.throwIfAborted();
  return inSession(database, purpose, async (session) => {
    const abort = () => session.discard(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      // The purpose is for whoever reads the server's log.
      const opening = [`begin /* ${purpose} */`, ...PINS[purpose]];
      await session.answered(session.client.query(opening.join('; ')));
      const result = await work(session);
      if (PURPOSES[purpose].readOnly) {
        // A reader has nothing to commit: it may stop in the middle of a COPY and discard the session, or lose it now.
        if (!session.discarded) {
          await session.answered(session.client.query('commit')).catch((error) => session.discard(error));
        }
        return result;
      }
      // Cutting a COMMIT short would end nothing, and leave it open what became of it.
      signal?.removeEventListener('abort', abort);
      if ((await commit(database, session)) === 'ROLLBACK') throw new TransactionRolledBackError();
      return result;
    } catch (error) {
      await rollBack(session);
      throw signal?.aborted && !(error instanceof CommitUndecidedError) ? signal.reason : error;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  });
}

/**
 * Leaves no transaction open. Also finds out, by a round trip, whether the connection outlived the error: a server that
 * ends a session says so first and closes the connection a moment later.
 */
async function rollBack(session: DatabaseSession): Promise<void> {
  if (session.discarded) return;
  await session.answered(session.client.query('rollback')).catch((failure) => session.discard(failure));
}

/** What is done on a connection in one exchange with the server. */
async function inSession<T>(
  database: KilolockDatabase,
  purpose: Purpose,
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  const session = await openSession(database, purpose);
  try {
    return await work(session);
  } catch (error) {
    if (isEndOfSession(error)) session.discard(error as Error);
    throw interpretError(error, purpose);
  } finally {
    session.release();
  }
}

interface OpenSession extends DatabaseSession {
  release(): void;
}

async function openSession(database: KilolockDatabase, purpose: Purpose): Promise<OpenSession> {
  const { lane, patienceMs } = PURPOSES[purpose];
  const client = await checkOut(database.pools[lane], purpose);
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
  const session: OpenSession = {
    client,
    db: kyselyOfTransaction(async (text, values) => {
      if (state !== 'open') throw new Error('The database session has ended.');
      return session.answered(client.query(text, [...values]));
    }),
    async answered(answer) {
      const timer = setTimeout(() => {
        const seconds = patienceMs / 1000;
        broken ??= new DatabaseUnavailableError(
          'unresponsive',
          `The database gave no sign for ${seconds} s; try again later.`,
        );
        session.discard(broken);
      }, patienceMs);
      try {
        return await answer;
      } catch (error) {
        if (broken instanceof DatabaseUnavailableError) throw broken;
        if (error instanceof pg.DatabaseError) throw error;
        throw new DatabaseUnavailableError(
          'unreachable',
          'The connection to the database broke; try again.',
          {
            cause: error,
          },
        );
      } finally {
        clearTimeout(timer);
      }
    },
    get discarded() {
      return state === 'discarded';
    },
    discard(reason) {
      if (state !== 'open') return;
      state = 'discarded';
      giveBack(reason);
      cut(client);
    },
    release() {
      if (state === 'open') giveBack(broken);
      state = 'released';
    },
  };
  return session;
}

/** Takes a connection from a pool, and gives it back at once when it comes too late. */
async function checkOut(pool: pg.Pool, purpose: Purpose): Promise<pg.PoolClient> {
  const { connectionMs } = PURPOSES[purpose];
  const connecting = pool.connect();
  if (!(await isOver(connecting, connectionMs))) {
    connecting.then(
      (client) => client.release(),
      () => {},
    );
    throw noConnectionFree(connectionMs);
  }
  try {
    return await connecting;
  } catch (error) {
    // A refused login (28) or a database that is not there (3D) will not be better later.
    if (error instanceof pg.DatabaseError && /^(28|3D)/.test(error.code ?? '')) throw error;
    // The two errors of pg-pool that are its own.
    const { message } = error as Error;
    if (message === 'timeout exceeded when trying to connect') throw noConnectionFree(CONNECT_MS, error);
    if (message.includes('after calling end on the pool')) {
      throw new DatabaseUnavailableError('unreachable', 'The service is shutting down.', { cause: error });
    }
    throw new DatabaseUnavailableError('unreachable', 'The database cannot be reached; try again later.', {
      cause: error,
    });
  }
}

function noConnectionFree(waitedMs: number, cause?: unknown): DatabaseUnavailableError {
  return new DatabaseUnavailableError(
    'busy',
    `No connection to the database was free within ${waitedMs / 1000} s; try again later.`,
    { cause },
  );
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

/**
 * The text of {@link microsecondTime} of a timestamptz within JSON that PostgreSQL has made, which takes it less time than
 * `to_char`. A time that RFC 3339 cannot say comes as it stands there.
 */
export function utcTimeOfJson(text: string): string {
  const [, seconds, fraction = ''] = JSON_TIME.exec(text) ?? [];
  return seconds === undefined ? text : `${seconds}.${fraction.padEnd(6, '0')}Z`;
}

/** Of a session whose time zone is UTC. */
const JSON_TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00:00$/;

/** Whether a timestamptz column or expression lies in the years that RFC 3339 can say, 0001 to 9999. */
export function isArchivableTime(column: string | Expression<unknown>): RawBuilder<boolean> {
  const time = typeof column === 'string' ? sql.ref(column) : column;
  return sql<boolean>`(${time} >= timestamptz '0001-01-01 00:00:00+00' and ${time} < timestamptz '10000-01-01 00:00:00+00')`;
}
