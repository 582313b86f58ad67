import { describeError } from '../base/error-log.ts';
import { currentTraceparent, inPhase } from '../base/telemetry.ts';
import { CommitUndecidedError } from '../database/commit.ts';
import { type DatabaseSession, inTransaction } from '../database/connection.ts';
import type { Caller } from '../history/states.ts';
import { type ArchiveQuota, refuseWithoutRoom } from './archive-quota.ts';
import { selectorOf } from './current-caller.ts';
import { type Idempotency, idempotencyOf, refuseReuse } from './idempotency.ts';
import {
  countAtWork,
  countKept,
  findByIdempotencyKey,
  insertOperation,
  lockAdmission,
  type NewOperation,
} from './operation-admission.ts';
import { markQueued, readStatus } from './operation-lifecycle.ts';
import type { OperationKind } from './operation-records.ts';
import type { ArchiveServices, CallerRequest } from './services.ts';
import { RequestRefusedError, type UserError } from './user-error.ts';

const MAX_WAIT_SECONDS = 25;

/** What every operation can be asked with. */
export interface OperationOptions {
  /** How long to wait for the end before answering, 0 to 25. */
  readonly waitSeconds: number;
  /** The caller's name for this request: asking again with it gives the same operation. */
  readonly idempotencyKey: string | null;
}

/** A request that is new, or the operation that the same request started before. */
export type Admission =
  | { readonly isNew: true; readonly idempotency: Idempotency | null }
  | { readonly isNew: false; readonly operationId: string };

/**
 * Checks the options, and looks the idempotency key up. An operation found by it is waited for as the caller asked.
 *
 * @param request what makes two requests the same, in any order of keys.
 * @throws RequestRefusedError INVALID_INPUT, or IDEMPOTENCY_KEY_REUSED when the key was used for another request.
 */
export async function admitOperation(
  services: ArchiveServices,
  { caller }: CallerRequest,
  kind: OperationKind,
  options: OperationOptions,
  request: Readonly<Record<string, string | boolean | null>>,
): Promise<Admission> {
  const { waitSeconds, idempotencyKey: key } = options;
  if (!(waitSeconds >= 0 && waitSeconds <= MAX_WAIT_SECONDS)) {
    throw new RequestRefusedError('INVALID_INPUT', `waitSeconds is 0 to ${MAX_WAIT_SECONDS}.`, [
      'waitSeconds',
    ]);
  }
  if (key === null) return { isNew: true, idempotency: null };
  const idempotency = idempotencyOf(caller, key, request);
  const operationId = await findEarlier(caller, kind, idempotency);
  if (operationId === null) return { isNew: true, idempotency };
  await waitForEnd(services, caller, operationId, waitSeconds * 1000);
  return { isNew: false, operationId };
}

/**
 * Records an operation, queues it, and waits for its end as long as the caller asked.
 *
 * @returns the operation's id; the earlier one's, and nothing was started, when the same request came in twice at the same moment.
 * @throws RequestRefusedError IDEMPOTENCY_KEY_REUSED when the key came in with another request at the same moment;
 *   TOO_MANY_OPERATIONS when as many of the caller are pending or running in the environment as one may have;
 *   QUOTA_EXCEEDED when as many archives are kept; OPERATION_INTERRUPTED when it cannot be told whether it is on record.
 */
export async function startOperation(
  services: ArchiveServices,
  { caller }: CallerRequest,
  operation: NewOperation,
  options: OperationOptions,
): Promise<string> {
  let { id } = operation;
  if (await inPhase('admit', () => recordWithinLimits(caller, operation, services))) {
    await queue(services, caller, id);
  } else {
    const { kind, idempotency } = operation;
    const earlier = idempotency && (await findEarlier(caller, kind, idempotency));
    if (earlier === null) {
      throw new RequestRefusedError(
        'OPERATION_INTERRUPTED',
        'The operation that the idempotencyKey stood for has failed at this very moment, and the key is free. Nothing was started; ask again.',
      );
    }
    id = earlier;
  }
  await waitForEnd(services, caller, id, options.waitSeconds * 1000);
  return id;
}

/** Queues an operation that is on record. What is not queued now will be by the sweep, and is not the caller's to mend. */
async function queue({ queue, worker, logger }: ArchiveServices, caller: Caller, id: string): Promise<void> {
  try {
    await queue.send([{ id, environment: selectorOf(caller), traceparent: currentTraceparent() }]);
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
  services: Pick<ArchiveServices, 'worker'>,
  caller: Pick<Caller, 'database'>,
  operationId: string,
  milliseconds: number,
): Promise<void> {
  if (milliseconds === 0) return;
  await inPhase('wait', () => lookForEnd(services, caller, operationId, milliseconds));
}

async function lookForEnd(
  { worker }: Pick<ArchiveServices, 'worker'>,
  { database }: Pick<Caller, 'database'>,
  operationId: string,
  milliseconds: number,
): Promise<void> {
  const until = performance.now() + milliseconds;
  for (let look = 0; performance.now() < until && !worker.isClosing; look += 1) {
    const untilNext = Math.min(LOOKS_MS[look] ?? 2_000, until - performance.now());
    // Before the record is read: what ends in between is not missed.
    const ended = worker.attemptEnded(operationId, untilNext);
    const status = await readStatus(database.for('read'), operationId).catch(() => 'RUNNING');
    if (status !== 'PENDING' && status !== 'RUNNING') return;
    await ended;
  }
}

/**
 * Records an operation unless the caller has too many at work, or too many archives kept for one more. The rows are counted
 * under a lock, so that replicas and requests of the same moment count each other's.
 *
 * @returns false when the idempotency key is taken.
 */
async function recordWithinLimits(
  caller: Caller,
  operation: NewOperation,
  limits: Pick<ArchiveServices, 'maxOperationsPerPrincipal' | 'maxArchivesPerPrincipal'> & ArchiveQuota,
): Promise<boolean> {
  const { maxOperationsPerPrincipal, maxArchivesPerPrincipal } = limits;
  const admit = async ({ db }: DatabaseSession) => {
    await lockAdmission(db, caller);
    if (!(await insertOperation(db, caller, operation))) return false;
    await operation.recordedWith?.(db);
    // The new one is among them.
    if ((await countAtWork(db, caller)) > maxOperationsPerPrincipal) {
      throw new RequestRefusedError(
        'TOO_MANY_OPERATIONS',
        `You have ${maxOperationsPerPrincipal} exports and imports pending or running in this environment, as many as one may. Nothing was started; ask again when one of them has ended.`,
      );
    }
    if (operation.kind === 'EXPORT' && (await countKept(db, caller)) >= maxArchivesPerPrincipal) {
      throw new RequestRefusedError(
        'QUOTA_EXCEEDED',
        `${maxArchivesPerPrincipal} archives of yours are kept of this environment, as many as one may have. Nothing was started; ask again when one of them has expired.`,
      );
    }
    if (operation.kind === 'EXPORT') await refuseWithoutRoom(db, caller, limits);
    return true;
  };
  try {
    return await inTransaction(caller.database, 'record', admit);
  } catch (error) {
    if (!(error instanceof CommitUndecidedError)) throw error;
    // Should it be on record, the sweep queues it.
    throw new RequestRefusedError('OPERATION_INTERRUPTED', undecided(operation.id).message);
  }
}

async function findEarlier(
  caller: Caller,
  kind: OperationKind,
  idempotency: Idempotency,
): Promise<string | null> {
  const earlier = await findByIdempotencyKey(caller.database.for('read'), caller, kind, idempotency.key);
  if (earlier === null) return null;
  refuseReuse(idempotency, earlier.fingerprint);
  return earlier.id;
}

/** What is told of an operation whose record cannot be had. */
export function undecided(operationId: string): UserError {
  return {
    code: 'OPERATION_INTERRUPTED',
    message: `The connection to the database was lost. What became of operation ${operationId} is not known yet: ask for it by its id before you start another.`,
    path: null,
  };
}
