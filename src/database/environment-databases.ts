import { connectDatabase, type KilolockDatabase } from './connection.ts';
import { DatabaseUnavailableError } from './errors.ts';
import { prepareDatabase } from './prepare.ts';
import { refuseUnusableDatabase } from './readiness.ts';

/** How many databases are kept open, and how many connections each may have. */
export interface EnvironmentDatabasesOptions {
  readonly maxDatabases: number;
  readonly maxConnectionsEach: number;
  /** Called once for each database that was opened and prepared. */
  readonly onOpened: (database: KilolockDatabase) => Promise<void>;
}

interface Entry {
  readonly database: KilolockDatabase;
  readonly prepared: Promise<void>;
}

/**
 * The databases of environments that have one of their own (data model 1.13), opened at first use.
 *
 * A pool closes its connections when they have been idle for a while. One without connections costs nothing, so that it
 * is simply forgotten when its place is needed; whoever still holds it can go on using it.
 */
export class EnvironmentDatabases {
  readonly #options: EnvironmentDatabasesOptions;
  /** By connection string, the least recently used first. */
  readonly #entries = new Map<string, Entry>();

  constructor(options: EnvironmentDatabasesOptions) {
    this.#options = options;
  }

  /** The databases that are open now. */
  get opened(): readonly KilolockDatabase[] {
    return [...this.#entries.values()].map(({ database }) => database);
  }

  /**
   * The database behind a connection string, with the schema `state_archive` in it.
   *
   * @throws NotKilolockDatabaseError when it has not Kilolock's tables; DsnError when the connection string
   *   cannot be read; DatabaseUnusableError when the service cannot work there; DatabaseUnavailableError when it cannot be
   *   reached, or there is no place for another.
   */
  async open(connectionString: string): Promise<KilolockDatabase> {
    const entry = this.#entries.get(connectionString) ?? this.#connect(connectionString);
    this.#entries.delete(connectionString);
    this.#entries.set(connectionString, entry);
    try {
      await entry.prepared;
    } catch (error) {
      if (this.#entries.get(connectionString) === entry) this.#entries.delete(connectionString);
      throw error;
    }
    return entry.database;
  }

  /** Closes every database, after the work running on it has ended. */
  async close(): Promise<void> {
    const databases = this.opened;
    this.#entries.clear();
    await Promise.all(databases.map((database) => database.close()));
  }

  #connect(connectionString: string): Entry {
    this.#makeRoom();
    const database = connectDatabase({
      connectionString,
      maxConnections: this.#options.maxConnectionsEach,
    });
    return { database, prepared: this.#prepare(database) };
  }

  /** Closes a database that cannot be used, once for all who wait for it. */
  async #prepare(database: KilolockDatabase): Promise<void> {
    try {
      await prepareDatabase(database);
      await refuseUnusableDatabase(database);
      await this.#options.onOpened(database);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  #makeRoom(): void {
    const { maxDatabases } = this.#options;
    if (this.#entries.size < maxDatabases) return;
    for (const [connectionString, { database }] of this.#entries) {
      if (!database.isAtRest) continue;
      this.#entries.delete(connectionString);
      return;
    }
    throw new DatabaseUnavailableError(
      'busy',
      `The databases of ${maxDatabases} environments are in use at this moment; try again later.`,
    );
  }
}
