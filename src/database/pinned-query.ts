import pg from 'pg';
import type { PreparedStatements } from './prepared-statements.ts';

declare module 'pg' {
  /** What pg calls on queries, its own and those of pg-cursor and pg-copy-streams, and its types leave out. */
  interface Query {
    readonly text: string;
    prepare(connection: pg.Connection): void;
    handleDataRow(message: unknown): void;
    handleCommandComplete(message: unknown, connection: pg.Connection): void;
  }
}

/**
 * One statement with those that make its transaction ours in front of it, sent together. PostgreSQL takes what stands
 * between two Sync messages of its extended protocol as one transaction (manual, "Extended Query"), so that all of it is one
 * round trip, holds behind a pooler, and does not run when what stands in front has failed.
 */
class PinnedQuery extends pg.Query {
  /** What PostgreSQL answers. */
  answer: Promise<pg.QueryResult>;
  /** The prepared statement that is bound; '' is the unnamed one. */
  name = '';
  readonly #pins: readonly string[];
  readonly #prepared: PreparedStatements | null;
  #pinsAhead: number;

  constructor(
    pins: readonly string[],
    text: string,
    values: readonly unknown[],
    prepared: PreparedStatements | null,
    types: pg.CustomTypesConfig | undefined,
  ) {
    super({ text, values: [...values], types, queryMode: 'extended' } as pg.QueryConfig);
    this.#pins = pins;
    this.#prepared = prepared;
    this.#pinsAhead = pins.length;
    this.answer = new Promise((resolve, reject) => {
      this.on('end', (result) => resolve(result as pg.QueryResult));
      this.on('error', reject);
    });
  }

  /** Sends the messages of the statement, from Parse to Sync. */
  override prepare(connection: pg.Connection): void {
    for (const text of this.#pins) {
      const statement = this.#parse(connection, text);
      connection.bind({ portal: '', statement }, true);
      connection.execute({ portal: '' }, true);
    }
    this.name = this.#parse(connection, this.text);
    super.prepare(connection);
    // pg would keep the text of every statement that has a name when PostgreSQL answers, for as long as the connection is open.
    this.name = '';
  }

  #parse(connection: pg.Connection, text: string): string {
    const name = this.#prepared?.prepare(connection, text) ?? null;
    if (name === null) connection.parse({ name: '', text, types: [] }, true);
    return name ?? '';
  }

  /** Whether pg has nothing to send before it binds the statement: it was sent in {@link prepare}. */
  hasBeenParsed(): boolean {
    return true;
  }

  override handleDataRow(message: unknown): void {
    if (this.#pinsAhead === 0) super.handleDataRow(message);
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    if (this.#pinsAhead > 0) this.#pinsAhead -= 1;
    else super.handleCommandComplete(message, connection);
  }
}

/**
 * Runs one statement in a transaction of its own that begins with the statements `pins`.
 *
 * @param prepared keeps all of them prepared; only for what reads, since it may be sent a second time.
 * @param types how the values of the answer are read; absent: as everywhere on this client.
 */
export async function queryPinned(
  client: pg.ClientBase,
  pins: readonly string[],
  text: string,
  values: readonly unknown[],
  prepared: PreparedStatements | null,
  types?: pg.CustomTypesConfig,
): Promise<pg.QueryResult> {
  try {
    return await client.query(new PinnedQuery(pins, text, values, prepared, types)).answer;
  } catch (error) {
    const { connection } = client as pg.ClientBase & Pick<pg.Client, 'connection'>;
    if (!prepared?.forget(connection, error)) throw error;
    return client.query(new PinnedQuery(pins, text, values, null, types)).answer;
  }
}
