/**
 * What a transaction is for. Its purpose decides how long it may take and wait, whether it may write, and which of the
 * pool's connections it competes for:
 *
 * - `probe`: is the database there, for `/readyz`. Answers within seconds, whatever the state of the database.
 * - `read`: a read that a request waits for. Read only.
 * - `digest`: a read that a request waits for and that keeps digests of what it read.
 * - `record`: a short write on which something depends: the record of an operation, an audit event.
 * - `housekeeping`: a write by the clock, which is tried again later.
 * - `export`: one long read of a whole history. Read only, one snapshot.
 * - `print`: one document, as PostgreSQL would print it. Read only.
 * - `restore`: one long write of a history.
 * - `queue`: the queue that carries operations, which is pg-boss's: `queue-schema.ts`.
 * - `migration`: the changes of the schema `state_archive`.
 */
export type Purpose = keyof typeof PURPOSES;

/** What runs in a transaction of its own, statement by statement. */
export type StatementPurpose = 'probe' | 'read' | 'digest' | 'record' | 'housekeeping';

/**
 * The connections of a database are kept apart by kind of work, so that one never waits for another: a write waits for a
 * locked row while reads go on, and neither waits for an export that lasts an hour. The queue is asked every two seconds,
 * whatever else goes on.
 */
export type Lane = 'reads' | 'writes' | 'streams' | 'queue';

interface PurposeSettings {
  readonly lane: Lane;
  readonly isolation: 'read committed' | 'repeatable read';
  readonly readOnly: boolean;
  /** How long PostgreSQL works on one statement; null: as long as it takes. */
  readonly statementMs: number | null;
  /** How long a statement waits for a lock, of a row or of a table. */
  readonly lockMs: number;
  /** How long PostgreSQL lets an open transaction stand without a statement: a process that froze must let go. */
  readonly idleMs: number;
  /** How long we wait for a connection. */
  readonly connectionMs: number;
  /**
   * How long we wait for a sign of PostgreSQL before the connection is given up: it may be frozen, or gone without a word.
   * Longer than `statementMs`, so that PostgreSQL is the one to say that a statement took too long.
   */
  readonly patienceMs: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** What a purpose has unless it says otherwise. */
const USUAL = {
  isolation: 'read committed',
  readOnly: false,
  idleMs: 30 * SECOND,
  connectionMs: 10 * SECOND,
} as const;

export const PURPOSES = {
  probe: {
    ...USUAL,
    lane: 'reads',
    readOnly: true,
    statementMs: 2 * SECOND,
    lockMs: 1 * SECOND,
    idleMs: 10 * SECOND,
    connectionMs: 3 * SECOND,
    patienceMs: 3 * SECOND,
  },
  read: {
    ...USUAL,
    lane: 'reads',
    isolation: 'repeatable read',
    readOnly: true,
    statementMs: 15 * SECOND,
    lockMs: 5 * SECOND,
    patienceMs: 18 * SECOND,
  },
  digest: {
    ...USUAL,
    lane: 'reads',
    statementMs: 60 * SECOND,
    lockMs: 5 * SECOND,
    patienceMs: 65 * SECOND,
  },
  record: {
    ...USUAL,
    lane: 'writes',
    statementMs: 10 * SECOND,
    // A row can be waited for twice over, behind who waits for it already and then for its holder: less than a statement has.
    lockMs: 4 * SECOND,
    patienceMs: 13 * SECOND,
  },
  housekeeping: {
    ...USUAL,
    lane: 'writes',
    statementMs: 30 * SECOND,
    lockMs: 2 * SECOND,
    patienceMs: 33 * SECOND,
  },
  export: {
    ...USUAL,
    lane: 'streams',
    isolation: 'repeatable read',
    readOnly: true,
    statementMs: null,
    lockMs: 10 * SECOND,
    idleMs: 10 * MINUTE,
    patienceMs: 5 * MINUTE,
  },
  print: {
    ...USUAL,
    lane: 'streams',
    readOnly: true,
    statementMs: 2 * MINUTE,
    lockMs: 1 * SECOND,
    patienceMs: 3 * MINUTE,
  },
  restore: {
    ...USUAL,
    lane: 'streams',
    statementMs: null,
    lockMs: 10 * SECOND,
    idleMs: 10 * MINUTE,
    patienceMs: 10 * MINUTE,
  },
  queue: {
    ...USUAL,
    lane: 'queue',
    statementMs: 10 * SECOND,
    lockMs: 4 * SECOND,
    patienceMs: 13 * SECOND,
  },
  migration: {
    ...USUAL,
    lane: 'streams',
    statementMs: null,
    lockMs: 1 * MINUTE,
    idleMs: 10 * MINUTE,
    patienceMs: 10 * MINUTE,
  },
} as const satisfies Record<string, PurposeSettings>;

/**
 * What else a transaction depends on, and what a role, a database, a connection string or a pooler's last client may have
 * set to something else. The list is pg_dump's (src/bin/pg_dump, setup_connection) as far as it touches what we do, and
 * what our own statements rely on besides. An empty `search_path` finds nothing but what is named with its schema, and
 * PostgreSQL's own; without `row_security` PostgreSQL refuses where a policy would hide rows.
 */
const PINNED: Readonly<Record<string, string>> = {
  search_path: '',
  row_security: 'off',
  TimeZone: 'UTC',
  DateStyle: 'ISO, YMD',
  IntervalStyle: 'postgres',
  extra_float_digits: '3',
  bytea_output: 'hex',
  client_encoding: 'UTF8',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
};

/**
 * What a request waits for finds its rows by keys, and has to find them beside whatever else the tables hold: where one state has
 * most of the rows that PostgreSQL has counted, it reads whole tables instead, and with them all that imports are writing
 * there. A statement that no index serves would seem so dear then that it is compiled first: hence `jit`.
 */
const PINNED_FOR_READS: Readonly<Record<string, string>> = {
  enable_seqscan: 'off',
  jit: 'off',
};

/** What is younger than the oldest PostgreSQL that Kilolock runs on (14), and is pinned where it exists. */
const NO_TRANSACTION_TIMEOUT = `case when pg_catalog.current_setting('transaction_timeout', true) is not null then ${setConfig('transaction_timeout', '0')} end`;

/**
 * How often PostgreSQL looks, while it works on a statement, whether the client is still there: the locks of a process that
 * died would keep whoever takes its work up waiting until the statement has ended. A server on Windows cannot look.
 */
const CLIENT_CHECK = `case when pg_catalog.version() !~* 'mingw|visual c' then ${setConfig('client_connection_check_interval', '2000')} end`;

function makePins({ lane, isolation, readOnly, statementMs, lockMs, idleMs }: PurposeSettings): string[] {
  const settings = {
    ...PINNED,
    ...(lane === 'reads' && PINNED_FOR_READS),
    statement_timeout: `${statementMs ?? 0}`,
    lock_timeout: `${lockMs}`,
    idle_in_transaction_session_timeout: `${idleMs}`,
    // Never off: an administrator who sets default_transaction_read_only means the database to stand still.
    ...(readOnly && { transaction_read_only: 'on' }),
  };
  const made = Object.entries(settings).map(([name, value]) => setConfig(name, value));
  made.push(NO_TRANSACTION_TIMEOUT, CLIENT_CHECK);
  // The isolation level first, and by SET: it cannot be changed once a SELECT has taken a snapshot.
  return [`set transaction_isolation = '${isolation}'`, `select ${made.join(', ')}`];
}

function setConfig(name: string, value: string): string {
  return `pg_catalog.set_config('${name}', '${value}', true)`;
}

/**
 * The statements that make a transaction ours, to be sent in front of its own within the same round trip. They hold until
 * the end of the transaction: what is set for a session does not survive a pooler, and would meet its other clients.
 */
export const PINS = Object.fromEntries(
  Object.entries(PURPOSES).map(([purpose, settings]) => [purpose, makePins(settings)]),
) as Record<Purpose, string[]>;
