import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import { DISK_FULL, isDiskFull } from '../base/errno.ts';
import { describeError } from '../base/error-log.ts';
import { noteRefusal, type ObservedKind, observeOperation } from '../base/telemetry.ts';
import { CommitUndecidedError } from '../database/commit.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { DatabaseUnavailableError, isConnectionLost } from '../database/errors.ts';
import type { NamespaceSelector } from '../history/namespace.ts';
import { ObjectMissingError, StoreUnavailableError } from '../store/object-store.ts';
import { OperationHeartbeats } from './operation-heartbeats.ts';
import {
  type Attempt,
  type AttemptEnd,
  AttemptLostError,
  beginPart,
  type ClaimedOperation,
  claimOperation,
  type Outcome,
  settleAttempt,
} from './operation-lifecycle.ts';
import type { Job, OperationQueue } from './operation-queue.ts';
import type { OperationRecord } from './operation-records.ts';
import type { OperationRequest } from './operation-request.ts';
import { interruption, toUserError } from './user-error.ts';

/** What a job is given to work with. */
export interface JobContext {
  readonly attempt: Attempt;
  /** Aborts when the attempt is over by its record, or the process shuts down. */
  readonly signal: AbortSignal;
  /** Notes how far the job is; cheap, as often as the job likes. */
  readonly report: (progress: Partial<OperationRecord['progress']>) => void;
}

/** The work of one operation. */
export interface OperationWork {
  /** Does it, and records its own success in the transaction that holds its effect. */
  readonly job: (context: JobContext) => Promise<void>;
  /** Called once when an attempt is over, to clean up after it. */
  readonly onEnd: (attempt: Attempt, end: AttemptEnd) => Promise<void>;
}

/** What a worker can do. */
export interface Workshop {
  /** What is to be done for an operation that `database` records. */
  readonly workOf: (operation: ClaimedOperation, database: KilolockDatabase) => OperationWork;
  /** Removes what was kept for an operation that has ended: whoever ended it may have died before. */
  readonly tidyUp: (request: OperationRequest, database: KilolockDatabase) => Promise<void>;
}

/** An attempt, and what the log knows the request by that asked for the operation. */
type BegunAttempt = Attempt & Pick<ClaimedOperation, 'requestId'>;

/** Where a worker gets its operations from, and how many it may do. */
export interface OperationWorkerOptions {
  readonly queue: Pick<OperationQueue, 'take' | 'hold' | 'putBack' | 'remove'>;
  /** Opens the database that records the operations of an environment. */
  readonly databaseOf: (environment: NamespaceSelector) => Promise<KilolockDatabase>;
  readonly logger: Logger;
  /** How many operations this process works on at a time; 0: none. */
  readonly concurrency: number;
  /** How many operations of one environment may be running at a time, over all processes. */
  readonly maxRunning: number;
}

/** How often the queue is asked, by who has a place free. Behind a pooler nobody could be told. */
const POLL_MS = 2_000;
/** How often the queue is told that jobs are in hand; it believes it for ten seconds. */
const HOLD_MS = 3_000;
/** How long to wait before each try to record an end; the last ones outlast the restart of a database. */
const RECORDING_PAUSES_MS = [0, 250, 1_000, 3_000, 10_000, 30_000];

/**
 * Works on the operations of the queue in this process, a bounded number at a time. The queue says that there may be something
 * to do; what is done, the record decides: it is claimed before, kept alive meanwhile, and settled at the end, and each time
 * the record may say that the operation is another's.
 */
export class OperationWorker {
  readonly #options: OperationWorkerOptions;
  readonly #heartbeats: OperationHeartbeats;
  readonly #name = `${hostname()}:${process.pid}`;
  readonly #shutdown = new AbortController();
  readonly #timers: NodeJS.Timeout[] = [];
  /** Emits the id of an operation when an attempt at it has ended here. */
  readonly #ends = new EventEmitter().setMaxListeners(0);
  /** What the queue has given this process and not been told the end of. */
  readonly #inHand = new Set<Job>();
  readonly #atWork = new Set<Promise<void>>();
  #workshop: Workshop | null = null;
  #free: number;
  #isTaking = false;
  #takeAgain = false;

  constructor(options: OperationWorkerOptions) {
    this.#options = options;
    this.#free = options.concurrency;
    this.#heartbeats = new OperationHeartbeats(options.logger);
  }

  /** Begins to work. */
  start(workshop: Workshop): void {
    if (this.#options.concurrency === 0) return;
    this.#workshop = workshop;
    this.#timers.push(
      setInterval(() => this.nudge(), POLL_MS).unref(),
      setInterval(() => void this.#hold(), HOLD_MS).unref(),
    );
    this.nudge();
  }

  /** Asks the queue now: something was put into it. */
  nudge(): void {
    this.#takeAgain = true;
    if (!this.#isTaking) void this.#take();
  }

  /** Whether this process hands its operations back: nothing is worth waiting for. */
  get isClosing(): boolean {
    return this.#shutdown.signal.aborted;
  }

  /**
   * Waits, at most `milliseconds`, until an attempt at an operation has ended in this process, or the process shuts down. Of
   * other processes' attempts only the record tells.
   */
  async attemptEnded(operationId: string, milliseconds: number): Promise<void> {
    const over = new AbortController();
    const end = () => over.abort();
    this.#ends.once(operationId, end);
    const signal = AbortSignal.any([over.signal, this.#shutdown.signal]);
    await pause(milliseconds, undefined, { signal, ref: false }).catch(() => {});
    this.#ends.off(operationId, end);
  }

  /**
   * Does a part of an attempt as an operation of its own, which is begun and ends with it. A failure is recorded, and thrown.
   *
   * @throws what the job failed with, unless the record says that it succeeded.
   */
  async runPart(
    database: KilolockDatabase,
    part: Omit<BegunAttempt, 'attempt'>,
    work: OperationWork,
    whole: Pick<JobContext, 'signal'>,
  ): Promise<void> {
    const attempt = { ...part, ...(await beginPart(database.for('record'), part.id, this.#name)) };
    await observeOperation({ ...attempt, kind: 'export', waitedSeconds: null }, 'here', async () => {
      const { end, failure } = await this.#attempt(database, attempt, work, whole.signal);
      if (failure !== null && end !== 'succeeded') throw failure.error;
      return end;
    });
  }

  /** Takes nothing from the queue any more. */
  stopTaking(): void {
    for (const timer of this.#timers.splice(0, 1)) clearInterval(timer);
    this.#workshop = null;
  }

  /**
   * Takes nothing any more, calls off what is worked on, and hands it back for others to take up.
   *
   * @param graceMs how long to wait until that is on record: a database that stands still would hold it up for ever. What is
   *   not on record by then is taken up when this process has been silent for a while.
   */
  async close(graceMs: number): Promise<void> {
    this.stopTaking();
    this.#shutdown.abort(new Error('The service is shutting down.'));
    await Promise.race([Promise.all(this.#atWork), pause(graceMs, undefined, { ref: false })]);
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
    this.#heartbeats.close();
  }

  async #take(): Promise<void> {
    this.#isTaking = true;
    try {
      while (this.#takeAgain && this.#workshop !== null && this.#free > 0) {
        this.#takeAgain = false;
        for (const job of await this.#options.queue.take(this.#free)) this.#begin(job, this.#workshop);
      }
    } catch (error) {
      this.#warn(error, 'the queue of operations could not be asked');
    } finally {
      this.#isTaking = false;
    }
  }

  #begin(job: Job, workshop: Workshop | null): void {
    this.#free -= 1;
    this.#takeAgain = true;
    this.#inHand.add(job);
    let isFree = false;
    const giveBack = () => {
      if (isFree) return;
      isFree = true;
      this.#free += 1;
      this.nudge();
    };
    const done = this.#run(job, workshop, giveBack).finally(() => {
      giveBack();
      this.#inHand.delete(job);
      this.#atWork.delete(done);
      this.#ends.emit(job.id);
    });
    this.#atWork.add(done);
  }

  /** @param giveBack to be called when the work is over, however long it takes to put its end on record. */
  async #run(job: Job, workshop: Workshop | null, giveBack: () => void): Promise<void> {
    const { queue } = this.#options;
    try {
      // Taken at the very moment in which the process began to shut down.
      if (workshop === null) return await queue.putBack(job);
      const database = await this.#options.databaseOf(job.environment);
      const { maxRunning } = this.#options;
      const claim = await claimOperation(database, job.id, { worker: this.#name, maxRunning });
      if (claim.kind === 'not yet') return await queue.putBack(job);
      if (claim.kind === 'over') {
        if (claim.request !== null) await workshop.tidyUp(claim.request, database);
        return await queue.remove(job);
      }
      const { operation } = claim;
      const work = workshop.workOf(operation, database);
      const waitedSeconds = operation.attempt === 1 ? operation.ageSeconds : null;
      const end = await observeOperation(
        { ...operation, kind: kindOf(operation.request), waitedSeconds },
        operation.traceparent ?? undefined,
        async () => (await this.#attempt(database, operation, work, this.#shutdown.signal, giveBack)).end,
      );
      const isOver = end === 'succeeded' || end === 'failed' || end === 'cancelled';
      // What is another's may be over as well, and not tidied up after.
      await (isOver ? queue.remove(job) : queue.putBack(job));
    } catch (error) {
      this.#warn(error, 'a job of the queue could not be settled; it is taken up again', {
        operationId: job.id,
      });
      await queue.putBack(job).catch(() => {});
    }
  }

  /** @returns how the attempt ended, and what its work failed with; the record may know better than that. */
  async #attempt(
    database: KilolockDatabase,
    attempt: BegunAttempt,
    { job, onEnd }: OperationWork,
    callOff: AbortSignal,
    giveBack = () => {},
  ): Promise<{ readonly end: AttemptEnd; readonly failure: { readonly error: unknown } | null }> {
    const failure = await this.#do(database, attempt, job, callOff);
    giveBack();
    const end =
      failure === null
        ? 'succeeded'
        : await this.#settle(database, attempt, this.#explain(attempt, failure.error));
    await onEnd(attempt, end).catch((error: unknown) => {
      this.#options.logger.error(
        { error: describeError(error), ...idsOf(attempt) },
        'an operation could not clean up after itself',
      );
    });
    return { end, failure };
  }

  /** Does the work, and gives back what it failed with. */
  async #do(
    database: KilolockDatabase,
    attempt: Attempt,
    job: OperationWork['job'],
    callOff: AbortSignal,
  ): Promise<{ readonly error: unknown } | null> {
    const over = new AbortController();
    using alive = this.#heartbeats.hold(database, attempt, () => over.abort(new AttemptLostError(attempt)));
    try {
      const signal = AbortSignal.any([callOff, over.signal]);
      signal.throwIfAborted();
      await job({ attempt, signal, report: alive.note });
      return null;
    } catch (error) {
      return { error };
    }
  }

  /** Puts the end of an attempt on record, or finds that the record knows better. */
  async #settle(database: KilolockDatabase, attempt: BegunAttempt, outcome: Outcome): Promise<AttemptEnd> {
    for (const milliseconds of RECORDING_PAUSES_MS) {
      await pause(milliseconds, undefined, { signal: this.#shutdown.signal, ref: false }).catch(() => {});
      try {
        const end = await settleAttempt(database.for('record'), attempt, outcome);
        if (end === 'failed') noteRefusal('operation', outcome.error.code);
        if (end !== 'undecided') return end;
      } catch (problem) {
        this.#warn(
          problem,
          'the end of an operation could not be recorded; it is tried again',
          idsOf(attempt),
        );
      }
      if (milliseconds > 0 && this.#shutdown.signal.aborted) break;
    }
    this.#options.logger.error(idsOf(attempt), 'the end of an operation could not be recorded');
    return 'undecided';
  }

  #explain(attempt: BegunAttempt, error: unknown): Outcome {
    if (this.#shutdown.signal.aborted) {
      return interrupted('The service was shut down before the operation ended.');
    }
    if (error instanceof AttemptLostError) return interrupted('The operation was taken from its worker.');
    const outage = outageOf(error);
    if (outage !== null) {
      this.#warn(error, 'an operation was interrupted', idsOf(attempt));
      return interrupted(outage);
    }
    const told = toUserError(error);
    if (told !== null) return { kind: 'failed', error: told };
    this.#options.logger.error({ error: describeError(error), ...idsOf(attempt) }, 'operation failed');
    const message = `The service failed, and nothing was written. The log says more under operation ${attempt.id}.`;
    return { kind: 'failed', error: { code: 'INTERNAL', message, path: null } };
  }

  async #hold(): Promise<void> {
    try {
      await this.#options.queue.hold([...this.#inHand]);
    } catch (error) {
      this.#warn(error, 'the queue could not be told what is worked on');
    }
  }

  #warn(error: unknown, message: string, ids: Readonly<Record<string, string>> = {}): void {
    this.#options.logger.warn({ error: describeError(error), ...ids }, message);
  }
}

/** What the log knows an operation by. */
function idsOf({ id, requestId }: BegunAttempt) {
  return { operationId: id, requestId };
}

function kindOf({ order }: OperationRequest): ObservedKind {
  if (order.kind === 'EXPORT') return 'export';
  return order.dryRun ? 'dry_run' : 'import';
}

/** What happened, in a sentence, when it says nothing of the operation and may be over later; else null. */
function outageOf(error: unknown): string | null {
  if (isConnectionLost(error) || error instanceof CommitUndecidedError) {
    return 'The connection to the database was lost before the operation ended.';
  }
  if (error instanceof DatabaseUnavailableError || error instanceof StoreUnavailableError)
    return error.message;
  if (isDiskFull(error)) return DISK_FULL;
  // Of a store that is another machine's disk, that one has it.
  if (error instanceof ObjectMissingError) return 'The file that was received is not in the store.';
  return null;
}

/** What is told when it has happened too often; before, the operation is taken up again. */
function interrupted(what: string): Outcome {
  return { kind: 'interrupted', error: interruption(`${what} Nothing was written; ask again.`) };
}
