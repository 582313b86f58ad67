import { randomUUID } from 'node:crypto';
import { on } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import { connectDatabase, type KilolockDatabase } from './connection.ts';

/** Tells everybody who listens on a channel, when that is committed. @param payload less than 8000 bytes. */
export async function notify(database: KilolockDatabase, channel: string, payload: string): Promise<void> {
  await sql`select pg_catalog.pg_notify(${channel}, ${payload})`.execute(database.for('record'));
}

/** A connection on which nothing arrives of what the database says. */
export class DeafConnectionError extends Error {
  override readonly name = 'DeafConnectionError';

  constructor() {
    super(
      'What is said on the database does not arrive there: a pooler is in between, or it is another database.',
    );
  }
}

/** What is listened to. */
export interface ListenerOptions {
  /** Where others say it, by whatever address. */
  readonly database: KilolockDatabase;
  /** An address of the same database that leads to the server itself. */
  readonly directAddress: string;
  readonly channel: string;
  /** Called for whatever is said, and whenever something may have been missed. */
  readonly onHeard: () => void;
  /** Called when nothing is heard any more, once until something is. */
  readonly onDeaf: (error: unknown) => void;
}

/** How long to wait before listening again on another connection, when the last one was good, */
const AGAIN_MS = 100;
/** and when it was not. */
const RETRY_MS = 5_000;
/** How long the proof that something is heard may take. */
const PROOF_MS = 5_000;

/**
 * Listens on a channel for as long as it is open, on a connection of its own, and makes a new one when that is lost. A pooler
 * in transaction mode takes a LISTEN and delivers nothing, without a word: so whether anything arrives is tried each time.
 */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #direct: KilolockDatabase;
  readonly #closing = new AbortController();
  readonly #ended: Promise<void>;
  #isDeaf = false;

  /** @throws DsnError when the address cannot be read. */
  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#direct = connectDatabase({ connectionString: options.directAddress });
    this.#ended = this.#listenWhileOpen();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#ended, this.#direct.close()]);
  }

  async #listenWhileOpen(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await this.#listen();
      } catch (error) {
        if (!this.#isDeaf && !signal.aborted) this.#options.onDeaf(error);
        this.#isDeaf = true;
      }
      const milliseconds = this.#isDeaf ? RETRY_MS : AGAIN_MS;
      await pause(milliseconds, undefined, { signal, ref: false }).catch(() => {});
    }
  }

  /** Listens until the connection is lost. */
  async #listen(): Promise<void> {
    const { database, channel, onHeard } = this.#options;
    const client = await this.#direct.pools.queue.connect();
    const proof = randomUUID();
    let isProven = false;
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    try {
      const signal = AbortSignal.any([this.#closing.signal, late.signal]);
      const said = on(client, 'notification', { signal, close: ['end'] });
      await client.query(`listen ${pg.escapeIdentifier(channel)}`);
      // What was said while nobody listened.
      onHeard();
      await notify(database, channel, proof);
      timer = setTimeout(() => late.abort(), PROOF_MS).unref();
      for await (const [{ payload }] of said) {
        if (payload === proof) {
          isProven = true;
          clearTimeout(timer);
          this.#isDeaf = false;
        } else onHeard();
      }
      if (!isProven) throw new DeafConnectionError();
    } catch (error) {
      throw late.signal.aborted ? new DeafConnectionError() : error;
    } finally {
      clearTimeout(timer);
      client.release(true);
    }
  }
}
