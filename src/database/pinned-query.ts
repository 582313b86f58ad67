import pg from 'pg';

declare module 'pg' {
  /** What pg calls on queries, its own and those of pg-cursor and pg-copy-streams, and its types leave out. */
  interface Query {
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
  readonly #pins: readonly string[];
  #pinsAhead: number;

  constructor(pins: readonly string[], text: string, values: readonly unknown[]) {
    super({ text, values: [...values], queryMode: 'extended' } as pg.QueryConfig);
    this.#pins = pins;
    this.#pinsAhead = pins.length;
    this.answer = new Promise((resolve, reject) => {
      this.on('end', (result) => resolve(result as pg.QueryResult));
      this.on('error', reject);
    });
  }

  /** Sends the messages of the statement, from Parse to Sync. */
  override prepare(connection: pg.Connection): void {
    for (const text of this.#pins) {
      connection.parse({ name: '', text, types: [] }, true);
      connection.bind({ portal: '', statement: '' }, true);
      connection.execute({ portal: '' }, true);
    }
    super.prepare(connection);
  }

  override handleDataRow(message: unknown): void {
    if (this.#pinsAhead === 0) super.handleDataRow(message);
  }

  override handleCommandComplete(message: unknown, connection: pg.Connection): void {
    if (this.#pinsAhead > 0) this.#pinsAhead -= 1;
    else super.handleCommandComplete(message, connection);
  }
}

/** Runs one statement in a transaction of its own that begins with the statements `pins`. */
export function queryPinned(
  client: pg.ClientBase,
  pins: readonly string[],
  text: string,
  values: readonly unknown[],
): Promise<pg.QueryResult> {
  return client.query(new PinnedQuery(pins, text, values)).answer;
}
