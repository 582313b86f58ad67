import type { Logger } from 'pino';
import { describeError } from '../base/error-log.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { type Attempt, beat } from './operation-lifecycle.ts';
import type { OperationRecord } from './operation-records.ts';

type Progress = OperationRecord['progress'];

const HEARTBEAT_MS = 1_000;

const NO_PROGRESS: Progress = {
  versionsDone: 0n,
  versionsTotal: null,
  bytesDone: 0n,
  bytesTotal: null,
};

/** An attempt that this process works on. */
interface Held extends Attempt {
  progress: Progress;
  /** Called when the record says that it is another's to work on, or nobody's. */
  readonly onLost: () => void;
}

/** One database, and the operations on its record that this process works on. */
interface Ledger {
  readonly held: Set<Held>;
  isBeating: boolean;
}

/** An attempt that is kept alive until it is disposed of. */
export interface Heartbeat extends Disposable {
  /** Notes how far it is; the next heartbeat tells it. */
  note(progress: Partial<Progress>): void;
}

/**
 * Says once a second of the operations of this process that they are worked on and how far they are, and learns by the same
 * statement which of them are not its own any more.
 *
 * Each database is served by itself: one that does not answer keeps no other waiting. In one database a heartbeat never
 * begins before the last one has ended, so that a database that stands still holds no more than one connection here.
 */
export class OperationHeartbeats {
  readonly #logger: Logger;
  readonly #ledgers = new Map<KilolockDatabase, Ledger>();
  readonly #timer: NodeJS.Timeout;

  constructor(logger: Logger) {
    this.#logger = logger;
    this.#timer = setInterval(() => {
      for (const [database, ledger] of this.#ledgers) void this.#beat(database, ledger);
    }, HEARTBEAT_MS);
    this.#timer.unref();
  }

  /**
   * Keeps an attempt alive.
   *
   * @param onLost called, perhaps more than once, when it is over by its record.
   */
  hold(database: KilolockDatabase, attempt: Attempt, onLost: () => void): Heartbeat {
    const ledger = this.#ledgers.get(database) ?? { held: new Set(), isBeating: false };
    this.#ledgers.set(database, ledger);
    const { id, attempt: number } = attempt;
    const held: Held = { id, attempt: number, progress: NO_PROGRESS, onLost };
    ledger.held.add(held);
    return {
      note(progress) {
        held.progress = { ...held.progress, ...progress };
      },
      [Symbol.dispose]: () => {
        ledger.held.delete(held);
        // Nothing is kept of a database that is at rest, so that it can be closed.
        if (ledger.held.size === 0) this.#ledgers.delete(database);
      },
    };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #beat(database: KilolockDatabase, ledger: Ledger): Promise<void> {
    if (ledger.isBeating) return;
    ledger.isBeating = true;
    try {
      const lost = await beat(database.for('record'), [...ledger.held]);
      for (const held of lost) if (ledger.held.has(held)) held.onLost();
    } catch (error) {
      this.#logger.warn(
        { error: describeError(error) },
        'the records of running operations could not be renewed',
      );
    } finally {
      ledger.isBeating = false;
    }
  }
}
