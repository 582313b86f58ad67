import type { Logger } from 'pino';
import { describeError } from '../base/error-log.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import {
  failInterrupted,
  markFailed,
  markRunning,
  type NewOperation,
  type OperationRecord,
  renewLeases,
} from './operation-records.ts';
import { toUserError, type UserError } from './user-error.ts';

/** What a job is given to work with. */
export interface JobContext {
  /** Aborts when the process shuts down. */
  readonly signal: AbortSignal;
  /** Notes how far the job is; cheap, as often as the job likes. */
  readonly report: (progress: Partial<OperationRecord['progress']>) => void;
}

/** What the log knows an operation by. */
type OperationIds = Pick<NewOperation, 'id' | 'requestId'>;

/** The work of one operation. */
export interface OperationWork {
  /** Does it, and records its own success in the transaction that holds its effect. */
  readonly job: (context: JobContext) => Promise<void>;
  /** Called once when it is over, however it ended. */
  readonly onEnd: () => Promise<void>;
}

const HEARTBEAT_MS = 2_000;
const SWEEP_EVERY_HEARTBEATS = 15;

const NO_PROGRESS: OperationRecord['progress'] = {
  versionsDone: 0n,
  versionsTotal: null,
  bytesDone: 0n,
  bytesTotal: null,
};

/** Runs operations in this process, a bounded number at a time, and keeps their records alive while they last. */
export class OperationRunner {
  /** The databases whose abandoned operations are swept. */
  readonly #openDatabases: () => readonly KilolockDatabase[];
  readonly #logger: Logger;
  readonly #concurrency: number;
  readonly #abort = new AbortController();
  /** The operations of this process that have not ended, by the database that records them. */
  readonly #atWork = new Map<KilolockDatabase, Map<string, OperationRecord['progress']>>();
  readonly #jobs = new Map<string, Promise<void>>();
  readonly #waiting: (() => void)[] = [];
  readonly #heartbeatTimer: NodeJS.Timeout;
  #running = 0;
  #heartbeats = 0;

  /** @param options.concurrency how many operations work at the same time; others wait their turn. */
  constructor(options: {
    openDatabases: () => readonly KilolockDatabase[];
    logger: Logger;
    concurrency: number;
  }) {
    this.#openDatabases = options.openDatabases;
    this.#logger = options.logger;
    this.#concurrency = options.concurrency;
    this.#heartbeatTimer = setInterval(() => void this.#sendHeartbeat(), HEARTBEAT_MS);
    this.#heartbeatTimer.unref();
  }

  /** Starts an operation that `database` records. A failure is recorded, never thrown. */
  start(database: KilolockDatabase, operation: OperationIds, work: OperationWork): void {
    const { id } = operation;
    this.#progressIn(database).set(id, NO_PROGRESS);
    const done = this.#run(database, operation, work).finally(() => {
      this.#jobs.delete(id);
      this.#progressIn(database).delete(id);
    });
    this.#jobs.set(id, done);
  }

  /** Runs an operation as a part of another, in that one's place. A failure is recorded, and thrown. */
  async runWithin(
    database: KilolockDatabase,
    operation: OperationIds,
    job: OperationWork['job'],
  ): Promise<void> {
    const { id } = operation;
    this.#progressIn(database).set(id, NO_PROGRESS);
    try {
      await this.#work(database, id, job);
    } catch (error) {
      await markFailed(database.db, id, this.#userErrorOf(operation, error));
      throw error;
    } finally {
      this.#progressIn(database).delete(id);
    }
  }

  /** Waits until an operation of this process has ended, at most `milliseconds`. */
  async wait(operationId: string, milliseconds: number): Promise<void> {
    const job = this.#jobs.get(operationId);
    if (job === undefined || milliseconds === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, milliseconds);
    });
    await Promise.race([job, timeout]);
    clearTimeout(timer);
  }

  /** Calls every operation off, and waits until each has cleaned up after itself. */
  async close(): Promise<void> {
    clearInterval(this.#heartbeatTimer);
    this.#abort.abort(new Error('The service is shutting down.'));
    await Promise.all(this.#jobs.values());
  }

  async #run(
    database: KilolockDatabase,
    operation: OperationIds,
    { job, onEnd }: OperationWork,
  ): Promise<void> {
    const { id: operationId, requestId } = operation;
    await this.#acquireSlot();
    let failure: UserError | null = null;
    try {
      await this.#work(database, operationId, job);
    } catch (error) {
      failure = this.#userErrorOf(operation, error);
    }
    // Each on its own: what an operation leaves behind goes although its failure could not be recorded.
    for (const end of [async () => failure && markFailed(database.db, operationId, failure), onEnd]) {
      await end().catch((error: unknown) => {
        this.#logger.error(
          { error: describeError(error), operationId, requestId },
          'the end of an operation could not be recorded',
        );
      });
    }
    this.#running -= 1;
    this.#waiting.shift()?.();
  }

  async #work(database: KilolockDatabase, operationId: string, job: OperationWork['job']): Promise<void> {
    this.#abort.signal.throwIfAborted();
    await markRunning(database.db, operationId);
    const all = this.#progressIn(database);
    await job({
      signal: this.#abort.signal,
      report: (progress) => {
        all.set(operationId, { ...NO_PROGRESS, ...all.get(operationId), ...progress });
      },
    });
  }

  #progressIn(database: KilolockDatabase): Map<string, OperationRecord['progress']> {
    const progress = this.#atWork.get(database) ?? new Map<string, OperationRecord['progress']>();
    this.#atWork.set(database, progress);
    return progress;
  }

  async #acquireSlot(): Promise<void> {
    if (this.#running >= this.#concurrency) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#running += 1;
  }

  #userErrorOf({ id: operationId, requestId }: OperationIds, error: unknown): UserError {
    if (this.#abort.signal.aborted) return INTERRUPTED_BY_SHUTDOWN;
    const told = toUserError(error);
    if (told !== null) return told;
    this.#logger.error({ error: describeError(error), operationId, requestId }, 'operation failed');
    return internal(operationId);
  }

  async #sendHeartbeat(): Promise<void> {
    this.#heartbeats += 1;
    const isSweep = this.#heartbeats % SWEEP_EVERY_HEARTBEATS === 1;
    // A database without a connection is at rest, and would be kept from closing by being asked.
    const swept = isSweep ? this.#openDatabases().filter(({ pool }) => pool.totalCount > 0) : [];
    for (const database of new Set([...this.#atWork.keys(), ...swept])) {
      const progress = this.#progressIn(database);
      try {
        await renewLeases(database.db, progress);
        if (isSweep) await failInterrupted(database.db);
      } catch (error) {
        this.#logger.warn(
          { error: describeError(error) },
          'the records of running operations could not be renewed',
        );
      }
      // Nothing of a database that is at rest is kept, so that it can be closed.
      if (progress.size === 0) this.#atWork.delete(database);
    }
  }
}

const INTERRUPTED_BY_SHUTDOWN: UserError = {
  code: 'OPERATION_INTERRUPTED',
  message: 'The service was shut down before the operation ended. Nothing was written; ask again.',
  path: null,
};

function internal(operationId: string): UserError {
  return {
    code: 'INTERNAL',
    message: `The service failed, and nothing was written. The log says more under operation ${operationId}.`,
    path: null,
  };
}
