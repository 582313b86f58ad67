import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { startEmbeddedServer } from '../../src/development/embedded-server.ts';
import { administer, onDatabase } from '../support/test-server.ts';

/** A server on which databases can be created; all of them, and the roles, go when it is stopped. */
export class Postgres {
  readonly #administration: string;
  readonly #stopServer: () => Promise<void>;
  readonly #databases = new Map<string, Database>();
  readonly #roles: string[] = [];
  /** Parts the names of this run from those of others on the same server. */
  readonly suffix = randomBytes(4).toString('hex');

  private constructor(administration: string, stopServer: () => Promise<void>) {
    this.#administration = administration;
    this.#stopServer = stopServer;
  }

  /** The server of `connectionString`, or the project's embedded one under `directory`. */
  static async start(connectionString: string | undefined, directory: string): Promise<Postgres> {
    if (connectionString !== undefined) return new Postgres(connectionString, async () => {});
    const server = await startEmbeddedServer({ dataDirectory: join(directory, 'postgres'), durable: false });
    return new Postgres(server.connectionString('postgres'), () => server.stop());
  }

  /** Of a database from which others can be created. */
  get administration(): string {
    return withoutTls(this.#administration);
  }

  /** Creates an empty database; `name` is completed to one of this run's own. */
  async create(name: string): Promise<Database> {
    const fullName = `interop_${name}_${this.suffix}`;
    await administer(this.#administration, `create database ${pg.escapeIdentifier(fullName)}`);
    return this.adopt(fullName);
  }

  /** A database that another program has created on this server. */
  adopt(fullName: string): Database {
    const database = new Database(fullName, withoutTls(onDatabase(this.#administration, fullName)));
    this.#databases.set(fullName, database);
    return database;
  }

  /** Creates a role that may log in and nothing else. `name` is completed to one of this run's own. */
  async createRole(name: string): Promise<{ readonly name: string; readonly password: string }> {
    const role = { name: `interop_${name}_${this.suffix}`, password: randomBytes(16).toString('hex') };
    const { name: identifier, password } = role;
    await administer(
      this.#administration,
      `create role ${pg.escapeIdentifier(identifier)} login password ${pg.escapeLiteral(password)}`,
    );
    this.#roles.push(identifier);
    return role;
  }

  async stop(): Promise<void> {
    for (const [name, database] of this.#databases) {
      // Before its connections are closed, which would wait for what they are at.
      await administer(
        this.#administration,
        `drop database if exists ${pg.escapeIdentifier(name)} with (force)`,
      );
      await database.close();
    }
    for (const role of this.#roles) {
      await administer(this.#administration, `drop role if exists ${pg.escapeIdentifier(role)}`);
    }
    await this.#stopServer();
  }
}

/** One database, asked by plain SQL. */
export class Database {
  readonly name: string;
  readonly connectionString: string;
  readonly pool: pg.Pool;

  constructor(name: string, connectionString: string) {
    this.name = name;
    this.connectionString = connectionString;
    this.pool = new pg.Pool({ connectionString, max: 2, options: '-c TimeZone=UTC' });
    // A connection that is cut while it is idle is replaced at the next query.
    this.pool.on('error', () => {});
  }

  /** The rows as the driver gives them: bigint as text. */
  async rows<Row>(statement: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.pool.query(statement, [...values])).rows as Row[];
  }

  /** The first column of the first row, as text; null when there is no row. */
  async value(statement: string, values: readonly unknown[] = []): Promise<string | null> {
    const [row] = await this.rows<Record<string, unknown>>(statement, values);
    const value = row === undefined ? null : Object.values(row)[0];
    return value === null || value === undefined ? null : String(value);
  }

  /** Several statements without values. */
  async script(statements: string): Promise<void> {
    await this.pool.query(statements);
  }

  /** The id of the state stored under a name. */
  async stateId(storedName: string): Promise<string> {
    const [row, another] = await this.rows<{ id: string }>('select id from states where name = $1', [
      storedName,
    ]);
    if (row === undefined || another !== undefined) {
      throw new Error(`There ${another ? 'are several states' : 'is no state'} stored as ${storedName}.`);
    }
    return row.id;
  }

  /** The highest serial of a state. */
  async lastSerial(storedName: string): Promise<number> {
    return Number(
      await this.value(
        'select max(serial) from state_versions v join states s on s.id = v.state_id where s.name = $1',
        [storedName],
      ),
    );
  }

  /** The same database for another role. */
  connectionStringFor({ name, password }: { readonly name: string; readonly password: string }): string {
    const url = new URL(this.connectionString);
    url.username = name;
    url.password = password;
    return url.href;
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}

/** pgx, which Kilolock uses, asks for TLS where the address says nothing; a server on loopback has none. */
function withoutTls(connectionString: string): string {
  const url = new URL(connectionString);
  if (!url.searchParams.has('sslmode')) url.searchParams.set('sslmode', 'disable');
  return url.href;
}
