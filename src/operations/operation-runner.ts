import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from '../base/error-log.ts';
import { CommitUndecidedError } from '../database/commit.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { DatabaseUnavailableError, isConnectionLost } from '../database/errors.ts';
import type { NewOperation } from './operation-admission.ts';
import { OperationLeases } from './operation-leases.ts';
import { markRunning, type OperationEnd, OperationLostError, settleFailure } from './operation-lifecycle.ts';
import type { OperationRecord } from './operation-records.ts';
import { Slots } from './slots.ts';
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
  /**
   * Called once when it is over. `undecided` when the record cannot be had, or is held by a transaction whose COMMIT was
   * never answered: the operation may turn out either way.
   */
  readonly onEnd: (end: OperationEnd) => Promise<void>;
}

/** A failure, and whether the operation certainly failed: a lost connection may have carried a COMMIT. */
interface Failure {
  readonly error: UserError;
  readonly isCertain: boolean;
}

interface Job {
  /** When its end is on record, with null; or when it is over and that could not be recorded, with what to tell. */
  readonly ended: Promise<UserError | null>;
  /** When it has cleaned up after itself. */
  readonly done: Promise<void>;
}

/** How long to wait before each try to record a failure; the last ones outlast the restart of a database. */
const RECORDING_PAUSES_MS = [0, 250, 1_000, 3_000, 10_000, 30_000];
/** How long a shutdown waits for jobs: a database that stands still would hold it up for ever. */
const CLOSE_GRACE_MS = 10_000;

/** Runs operations in this process, a bounded number at a time, and keeps their records alive while they last. */
export class OperationRunner {
  readonly #logger: Logger;
  readonly #slots: Slots;
  readonly #leases: OperationLeases;
  readonly #abort = new AbortController();
  readonly #jobs = new Map<string, Job>();

  /** @param options.concurrency how many operations work at the same time; others wait their turn. */
  constructor(options: {
    openDatabases: () => readonly KilolockDatabase[];
    logger: Logger;
    concurrency: number;
  }) {
    this.#logger = options.logger;
    this.#slots = new Slots(options.concurrency);
    this.#leases = new OperationLeases(options);
  }

  /** Starts an operation that `database` records. A failure is recorded, never thrown. */
  start(database: KilolockDatabase, operation: OperationIds, work: OperationWork): void {
    const { promise: ended, resolve: end } = Promise.withResolvers<UserError | null>();
    const done = this.#run(database, operation, work, end).finally(() => {
      this.#jobs.delete(operation.id);
    });
    this.#jobs.set(operation.id, { ended, done });
  }

  /**
   * Runs an operation as a part of another, in that one's place. A failure is recorded, and thrown.
   *
   * @throws what the job failed with, unless the record says that it succeeded.
   */
  async runWithin(
    database: KilolockDatabase,
    operation: OperationIds,
    { job, onEnd }: OperationWork,
  ): Promise<void> {
    const failure = await this.#work(database, operation, job);
    const end =
      failure === null ? 'succeeded' : await this.#settle(database, operation, failure.told, () => {});
    await this.#cleanUp(operation, () => onEnd(end));
    if (failure !== null && end !== 'succeeded') throw failure.error;
  }

  /**
   * Waits until an operation of this process has ended, at most `milliseconds`.
   *
   * @returns what to tell of an operation that is over though its record does not say so; else null.
   */
  async wait(operationId: string, milliseconds: number): Promise<UserError | null> {
    const job = this.#jobs.get(operationId);
    if (job === undefined || milliseconds === 0) return null;
    const timeUp = new AbortController();
    try {
      return await Promise.race([
        job.ended,
        pause(milliseconds, null, { signal: timeUp.signal, ref: false }),
      ]);
    } finally {
      timeUp.abort();
    }
  }

  /** Calls every operation off, and waits until each has cleaned up after itself, if it does so in time. */
  async close(): Promise<void> {
    this.#leases.close();
    this.#abort.abort(new Error('The service is shutting down.'));
    const jobs = [...this.#jobs.values()].map(({ done }) => done);
    await Promise.race([Promise.all(jobs), pause(CLOSE_GRACE_MS, undefined, { ref: false })]);
  }

  async #run(
    database: KilolockDatabase,
    operation: OperationIds,
    { job, onEnd }: OperationWork,
    tell: (failure: UserError | null) => void,
  ): Promise<void> {
    this.#leases.hold(database, operation.id);
    const giveBack = await this.#slots.take();
    const failure = await this.#work(database, operation, job);
    giveBack();
    const end =
      failure === null
        ? 'succeeded'
        : await this.#settle(database, operation, failure.told, () =>
            tell(unrecorded(operation, failure.told)),
          );
    // Also when nothing could be recorded: what an operation leaves behind goes.
    await this.#cleanUp(operation, () => onEnd(end));
    tell(null);
  }

  /** Does the work, and gives back what it failed with. */
  async #work(
    database: KilolockDatabase,
    operation: OperationIds,
    job: OperationWork['job'],
  ): Promise<{ readonly error: unknown; readonly told: Failure } | null> {
    const { id } = operation;
    this.#leases.hold(database, id);
    try {
      this.#abort.signal.throwIfAborted();
      await markRunning(database.for('record'), id);
      await job({
        signal: this.#abort.signal,
        report: (progress) => this.#leases.note(database, id, progress),
      });
      return null;
    } catch (error) {
      return { error, told: this.#explain(operation, error) };
    } finally {
      this.#leases.drop(database, id);
    }
  }

  /**
   * Puts a failure on record, or finds that the operation succeeded after all.
   *
   * @param onDelay called when the first try did neither.
   */
  async #settle(
    database: KilolockDatabase,
    { id: operationId, requestId }: OperationIds,
    { error }: Failure,
    onDelay: () => void,
  ): Promise<OperationEnd> {
    for (const milliseconds of RECORDING_PAUSES_MS) {
      if (milliseconds > 0) {
        onDelay();
        await pause(milliseconds, undefined, { signal: this.#abort.signal, ref: false }).catch(() => {});
      }
      try {
        const end = await settleFailure(database.for('record'), operationId, error);
        if (end !== 'undecided') return end;
      } catch (problem) {
        this.#logger.warn(
          { error: describeError(problem), operationId, requestId },
          'the end of an operation could not be recorded; it is tried again',
        );
      }
      if (this.#abort.signal.aborted) break;
    }
    this.#logger.error({ operationId, requestId }, 'the end of an operation could not be recorded');
    return 'undecided';
  }

  async #cleanUp({ id: operationId, requestId }: OperationIds, onEnd: () => Promise<void>): Promise<void> {
    await onEnd().catch((error: unknown) => {
      this.#logger.error(
        { error: describeError(error), operationId, requestId },
        'an operation could not clean up after itself',
      );
    });
  }

  #explain({ id: operationId, requestId }: OperationIds, error: unknown): Failure {
    const isLost = isConnectionLost(error) || error instanceof CommitUndecidedError;
    if (this.#abort.signal.aborted) return { error: INTERRUPTED_BY_SHUTDOWN, isCertain: !isLost };
    const told = toUserError(error);
    if (told !== null) return { error: told, isCertain: true };
    if (error instanceof OperationLostError) return { error: LEASE_LOST, isCertain: true };
    this.#logger[isLost || error instanceof DatabaseUnavailableError ? 'warn' : 'error'](
      { error: describeError(error), operationId, requestId },
      'operation failed',
    );
    if (isLost) return { error: CONNECTION_LOST, isCertain: false };
    return {
      error: error instanceof DatabaseUnavailableError ? interrupted(error.message) : internal(operationId),
      isCertain: true,
    };
  }
}

const INTERRUPTED_BY_SHUTDOWN = interrupted('The service was shut down before the operation ended.');
const CONNECTION_LOST = interrupted('The connection to the database was lost before the operation ended.');
const LEASE_LOST = interrupted(
  'The service could not say in time that the operation was still at work, so that it was given up.',
);

function interrupted(what: string): UserError {
  return {
    code: 'OPERATION_INTERRUPTED',
    message: `${what} Nothing was written; ask again.`,
    path: null,
  };
}

function internal(operationId: string): UserError {
  return {
    code: 'INTERNAL',
    message: `The service failed, and nothing was written. The log says more under operation ${operationId}.`,
    path: null,
  };
}

/** What is told of a failure that is not on record. */
function unrecorded({ id }: OperationIds, { error, isCertain }: Failure): UserError {
  if (isCertain) return { ...error, message: `${error.message} Operation ${id} does not say so yet.` };
  return undecided(id);
}

/** What is told of an operation whose record cannot be had. */
export function undecided(operationId: string): UserError {
  return {
    code: 'OPERATION_INTERRUPTED',
    message: `The connection to the database was lost. What became of operation ${operationId} is not known yet: ask for it by its id before you start another.`,
    path: null,
  };
}
