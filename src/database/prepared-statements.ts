import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import pg from 'pg';

/** The most statements that are kept prepared on one connection: each takes memory of the server. */
const MAX_PREPARED = 32;
/**
 * How long a plan is used. Tables grow by a million rows in one import, and PostgreSQL makes a plan anew only once it has looked
 * at them, which it may never do by itself.
 */
const MAX_AGE_MS = 60_000;

/** There is no prepared statement of that name. */
const INVALID_SQL_STATEMENT_NAME = '26000';
/** Among others: the columns of a prepared statement have changed their types. */
const FEATURE_NOT_SUPPORTED = '0A000';

interface Prepared {
  readonly name: string;
  /** By `performance.now()`. */
  readonly at: number;
}

/**
 * The statements that are prepared on the connections of a pool, so that PostgreSQL reads and plans each once a minute and not
 * each time. Nothing depends on it: a pooler in transaction mode may hand every transaction to another server, which knows
 * none of them, and they are given up when that is seen.
 *
 * A statement's name is made of its text. Whoever else has prepared one of that name on the same server has prepared the same.
 */
export class PreparedStatements {
  /** By text. */
  readonly #known = new WeakMap<pg.Connection, LRUCache<string, Prepared>>();
  #areKept = true;

  /** Has a statement prepared, in the batch of messages that is being sent. The name to bind it by; null when names are not kept. */
  prepare(connection: pg.Connection, text: string): string | null {
    if (!this.#areKept) return null;
    const known = this.#known.get(connection) ?? keptOn(connection);
    this.#known.set(connection, known);
    const now = performance.now();
    let prepared = known.get(text);
    if (prepared === undefined || now - prepared.at > MAX_AGE_MS) {
      prepared = { name: nameOf(text), at: now };
      // It may be there already, of an earlier client of the pooler's. To close one that is not there is no error.
      connection.close({ type: 'S', name: prepared.name }, true);
      connection.parse({ name: prepared.name, text, types: [] }, true);
      known.set(text, prepared);
    }
    return prepared.name;
  }

  /**
   * To be told when a batch has failed: PostgreSQL passes over what stands behind an error, and nobody can say what was
   * prepared.
   *
   * @returns whether it failed for a statement that is prepared no more, so that nothing of it has run, and is to be
   *   sent again.
   */
  forget(connection: pg.Connection, error: unknown): boolean {
    const wasUsed = this.#known.delete(connection);
    if (!wasUsed || !(error instanceof pg.DatabaseError)) return false;
    if (error.code === INVALID_SQL_STATEMENT_NAME) this.#areKept = false;
    return error.code === INVALID_SQL_STATEMENT_NAME || error.code === FEATURE_NOT_SUPPORTED;
  }
}

function keptOn(connection: pg.Connection): LRUCache<string, Prepared> {
  return new LRUCache({
    max: MAX_PREPARED,
    dispose({ name }, _text, reason) {
      if (reason === 'evict') connection.close({ type: 'S', name }, true);
    },
  });
}

function nameOf(text: string): string {
  return `state_archive_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}
