import type { Logger } from 'pino';
import { describeError } from '../base/error-log.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { failInterrupted, renewLeases } from './operation-lifecycle.ts';
import type { OperationRecord } from './operation-records.ts';

type Progress = OperationRecord['progress'];

const HEARTBEAT_MS = 2_000;
const SWEEP_EVERY_BEATS = 15;

const NO_PROGRESS: Progress = {
  versionsDone: 0n,
  versionsTotal: null,
  bytesDone: 0n,
  bytesTotal: null,
};

/** One database, and the operations on its record that this process works on. */
interface Ledger {
  readonly progress: Map<string, Progress>;
  isRenewing: boolean;
  isSweeping: boolean;
}

/**
 * Says of the operations of this process that they are alive, and gives up those of processes that are not.
 *
 * Each database is served by itself: one that does not answer keeps no other waiting. In one database a heartbeat never
 * begins before the last one has ended, so that a database that stands still holds no more than two connections here.
 */
export class OperationLeases {
  /** The databases whose abandoned operations are swept. */
  readonly #openDatabases: () => readonly KilolockDatabase[];
  readonly #logger: Logger;
  readonly #ledgers = new Map<KilolockDatabase, Ledger>();
  readonly #timer: NodeJS.Timeout;
  #beats = 0;

  constructor(options: { openDatabases: () => readonly KilolockDatabase[]; logger: Logger }) {
    this.#openDatabases = options.openDatabases;
    this.#logger = options.logger;
    this.#timer = setInterval(() => this.#beat(), HEARTBEAT_MS);
    this.#timer.unref();
  }

  /** Keeps an operation alive until {@link drop}. */
  hold(database: KilolockDatabase, operationId: string): void {
    this.#ledgerOf(database).progress.set(operationId, NO_PROGRESS);
  }

  /** Notes how far an operation is; the next heartbeat tells it. What is no longer kept alive stays so. */
  note(database: KilolockDatabase, operationId: string, progress: Partial<Progress>): void {
    const held = this.#ledgerOf(database).progress;
    const known = held.get(operationId);
    if (known !== undefined) held.set(operationId, { ...known, ...progress });
  }

  drop(database: KilolockDatabase, operationId: string): void {
    this.#ledgerOf(database).progress.delete(operationId);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #ledgerOf(database: KilolockDatabase): Ledger {
    const ledger = this.#ledgers.get(database) ?? {
      progress: new Map(),
      isRenewing: false,
      isSweeping: false,
    };
    this.#ledgers.set(database, ledger);
    return ledger;
  }

  #beat(): void {
    this.#beats += 1;
    for (const database of this.#ledgers.keys()) void this.#renew(database);
    if (this.#beats % SWEEP_EVERY_BEATS !== 1) return;
    // A database without a connection is at rest, and would be kept from closing by being asked.
    const open = this.#openDatabases().filter((database) => !database.isAtRest);
    for (const database of new Set([...this.#ledgers.keys(), ...open])) void this.#sweep(database);
  }

  async #renew(database: KilolockDatabase): Promise<void> {
    const ledger = this.#ledgerOf(database);
    if (ledger.isRenewing) return;
    if (ledger.progress.size === 0) {
      // Nothing is kept of a database that is at rest, so that it can be closed.
      if (!ledger.isSweeping) this.#ledgers.delete(database);
      return;
    }
    ledger.isRenewing = true;
    try {
      await renewLeases(database.for('record'), ledger.progress);
    } catch (error) {
      this.#warn(error, 'the records of running operations could not be renewed');
    } finally {
      ledger.isRenewing = false;
    }
  }

  async #sweep(database: KilolockDatabase): Promise<void> {
    const ledger = this.#ledgerOf(database);
    if (ledger.isSweeping) return;
    ledger.isSweeping = true;
    try {
      await failInterrupted(database.for('housekeeping'));
    } catch (error) {
      this.#warn(error, 'abandoned operations could not be looked for');
    } finally {
      ledger.isSweeping = false;
    }
  }

  #warn(error: unknown, message: string): void {
    this.#logger.warn({ error: describeError(error) }, message);
  }
}
