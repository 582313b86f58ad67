import pg from 'pg';
import { administer, onDatabase, startTestServer } from '../test/support/test-server.ts';

/** The PostgreSQL server of one run: an embedded one, or the one that `TEST_DATABASE_URL` names. */
export interface BenchServer {
  /** PostgreSQL's version, as in `18.4`. */
  readonly version: string;
  /** Whether values can be compressed with lz4. */
  readonly knowsLz4: boolean;
  /** Creates a database of that name with Kilolock's tables, empty or as a copy of another; replaces one that was there. */
  createDatabase(name: string, options?: { readonly copyOf?: BenchDatabase }): Promise<BenchDatabase>;
  /** Drops the databases that are left, and stops the server if it is ours. */
  stop(): Promise<void>;
}

/** One database of the server. */
export interface BenchDatabase {
  readonly connectionString: string;
  /** Lends a connection. */
  connected<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result>;
  /** Runs one statement. */
  query<Row extends pg.QueryResultRow>(statement: string): Promise<Row[]>;
  drop(): Promise<void>;
}

export async function startBenchServer(): Promise<BenchServer> {
  const { address, stop } = await startTestServer();
  const { administration, template } = address;
  const created = new Map<string, BenchDatabase>();
  const createDatabase: BenchServer['createDatabase'] = async (label, { copyOf } = {}) => {
    const name = `state_archive_bench_${process.pid}_${label}`;
    const original = copyOf === undefined ? template : new URL(copyOf.connectionString).pathname.slice(1);
    await created.get(name)?.drop();
    await administer(
      administration,
      `create database ${pg.escapeIdentifier(name)} template ${pg.escapeIdentifier(original)}`,
    );
    const connectionString = onDatabase(administration, name);
    const database: BenchDatabase = {
      connectionString,
      connected: (work) => connected(connectionString, work),
      query: (statement) => query(connectionString, statement),
      async drop() {
        created.delete(name);
        await administer(administration, `drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
      },
    };
    created.set(name, database);
    return database;
  };
  const [facts] = await query<{ version: string; lz4: boolean }>(
    administration,
    `select current_setting('server_version') as version,
       exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)) as lz4`,
  );
  return {
    version: facts?.version ?? '',
    knowsLz4: facts?.lz4 ?? false,
    createDatabase,
    async stop() {
      for (const database of [...created.values()]) await database.drop();
      await stop();
    },
  };
}

async function query<Row extends pg.QueryResultRow>(connectionString: string, text: string): Promise<Row[]> {
  return connected(connectionString, async (client) => (await client.query<Row>(text)).rows);
}

async function connected<Result>(
  connectionString: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
