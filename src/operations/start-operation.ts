import { randomUUID } from 'node:crypto';
import { describeError } from '../base/error-log.ts';
import { currentTraceparent, inPhase } from '../base/telemetry.ts';
import { CommitUndecidedError } from '../database/commit.ts';
import type { Caller } from '../history/states.ts';
import { selectorOf } from './current-caller.ts';
import { findByIdempotencyKey, idempotencyOf } from './idempotency.ts';
import { type NewOperation, recordWithinLimits } from './operation-admission.ts';
import { markQueued, readStatus } from './operation-lifecycle.ts';
import type { OperationKind } from './operation-records.ts';
import type { ArchiveServices, CallerRequest } from './services.ts';
import { interruption, RequestRefusedError, type UserError } from './user-error.ts';

const MAX_WAIT_SECONDS = 25;

/** What every operation can be asked with. */
export interface OperationOptions {
  /** How long to wait for the end before answering, 0 to 25. */
  readonly waitSeconds: number;
  /** The caller's name for this request: asking again with it gives the same operation. */
  readonly idempotencyKey: string | null;
}

/** What an operation is to do, and to which state. */
export type OperationPlan = Omit<NewOperation, 'id' | 'kind' | 'requestId' | 'idempotency' | 'traceparent'>;

/**
 * Records an operation, queues it, and waits for its end as long as the caller asked; or finds the one that the same request
 * started before.
 *
 * @param request what makes two requests the same, in any order of keys.
 * @param plan makes the plan, when it is a new one.
 * @returns the operation's id; the earlier one's, and nothing was started, when the same request came in twice at the same moment.
 * @throws RequestRefusedError INVALID_INPUT for options that cannot be used; IDEMPOTENCY_KEY_REUSED when the key was used for
 *   another request; TOO_MANY_OPERATIONS when as many of the caller are pending or running in the environment as one may have;
 *   QUOTA_EXCEEDED when as many archives are kept; OPERATION_INTERRUPTED when it cannot be told whether it is on record. What
 *   \`plan\` throws.
 */
export async function startOperation(
  services: ArchiveServices,
  { caller, requestId }: CallerRequest,
  kind: OperationKind,
  { waitSeconds, idempotencyKey }: OperationOptions,
  request: Readonly<Record<string, string | boolean | null>>,
  plan: () => Promise<OperationPlan>,
): Promise<string> {
  if (!(waitSeconds >= 0 && waitSeconds <= MAX_WAIT_SECONDS)) {
    throw new RequestRefusedError('INVALID_INPUT', `waitSeconds is 0 to ${MAX_WAIT_SECONDS}.`, [
      'waitSeconds',
    ]);
  }
  const idempotency = idempotencyKey === null ? null : idempotencyOf(caller, idempotencyKey, request);
  const findEarlier = async () => idempotency && findByIdempotencyKey(caller, kind, idempotency);
  let id = await findEarlier();
  if (id === null) {
    const traceparent = currentTraceparent();
    const operation = { ...(await plan()), id: randomUUID(), kind, requestId, idempotency, traceparent };
    id = (await record(services, caller, operation)) ? operation.id : await findEarlier();
  }
  if (id === null) {
    throw new RequestRefusedError(
      'OPERATION_INTERRUPTED',
      'The operation that the idempotencyKey stood for has failed at this very moment, and the key is free. Nothing was started; ask again.',
    );
  }
  await waitForEnd(services, caller, id, waitSeconds * 1000);
  return id;
}

/** Records an operation and queues it; false when the idempotency key is taken. */
async function record(services: ArchiveServices, caller: Caller, operation: NewOperation): Promise<boolean> {
  try {
    if (!(await inPhase('admit', () => recordWithinLimits(caller, operation, services)))) return false;
  } catch (error) {
    if (!(error instanceof CommitUndecidedError)) throw error;
    // Should it be on record, the sweep queues it.
    throw new RequestRefusedError('OPERATION_INTERRUPTED', undecided(operation.id).message);
  }
  await queue(services, caller, operation.id);
  return true;
}

/** Queues an operation that is on record. What is not queued now will be by the sweep, and is not the caller's to mend. */
async function queue({ queue, worker, logger }: ArchiveServices, caller: Caller, id: string): Promise<void> {
  try {
    await queue.send([{ id, environment: selectorOf(caller) }]);
    // Before anybody is told: whoever claims an operation passes over a record that is locked at this moment.
    await markQueued(caller.database.for('record'), [id]).finally(() => worker.nudge());
    await queue.announce();
  } catch (error) {
    logger.warn(
      { error: describeError(error), operationId: id },
      'an operation could not be queued, or nobody told of it; it is found later',
    );
  }
}

/** How long to wait before each look at a record. What ends in this process is seen at once. */
const LOOKS_MS = [100, 200, 400, 800, 1_600, 2_000];

/**
 * Waits until an operation has ended, wherever it is worked on, at most `milliseconds`. When the database cannot be asked
 * meanwhile, it has not.
 */
export async function waitForEnd(
  { worker }: Pick<ArchiveServices, 'worker'>,
  { database }: Pick<Caller, 'database'>,
  operationId: string,
  milliseconds: number,
): Promise<void> {
  if (milliseconds === 0) return;
  const until = performance.now() + milliseconds;
  await inPhase('wait', async () => {
    for (let look = 0; performance.now() < until && !worker.isClosing; look += 1) {
      const untilNext = Math.min(LOOKS_MS[look] ?? 2_000, until - performance.now());
      // Before the record is read: what ends in between is not missed.
      const ended = worker.attemptEnded(operationId, untilNext);
      const status = await readStatus(database.for('read'), operationId).catch(() => 'RUNNING');
      if (status !== 'PENDING' && status !== 'RUNNING') return;
      await ended;
    }
  });
}

/** What is told of an operation whose record cannot be had. */
export function undecided(operationId: string): UserError {
  return interruption(
    `The connection to the database was lost. What became of operation ${operationId} is not known yet: ask for it by its id before you start another.`,
  );
}
