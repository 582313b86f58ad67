import { DOCUMENTS, type ImportAnswer, type OperationAnswer } from './documents.ts';
import { endingOf, failure, KlError } from './endings.ts';
import type { Work } from './progress.ts';
import type { Service } from './service.ts';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 2_000;

/** Whether an operation has not ended. */
export function isGoingOn({ status }: Pick<OperationAnswer, 'status'>): boolean {
  return status === 'PENDING' || status === 'RUNNING';
}

/** An operation; null when there is none that the credential may see. */
export async function findOperation(service: Service, id: string): Promise<ImportAnswer | null> {
  const { stateArchiveOperation } = await service.ask<{ stateArchiveOperation: ImportAnswer | null }>(
    DOCUMENTS.operation,
    { id },
  );
  return stateArchiveOperation;
}

/**
 * Waits until an operation has ended, and shows how far it is.
 *
 * @throws KlError with what it failed with; INTERRUPTED, when the operation goes on without whoever waited.
 */
export async function waitForEnd<Answer extends OperationAnswer>(
  service: Service,
  begun: Answer,
  work: Work,
): Promise<Answer> {
  let operation = begun;
  const step = begun.kind === 'EXPORT' ? 'exporting' : 'importing';
  for (let pause = FIRST_PAUSE_MS; isGoingOn(operation); pause = Math.min(pause * 1.5, LONGEST_PAUSE_MS)) {
    const { versionsDone, versionsTotal, bytesDone, bytesTotal } = operation.progress;
    work.show({
      step: operation.status === 'PENDING' ? 'waiting for its turn' : step,
      versions: { done: versionsDone, total: versionsTotal },
      bytes: { done: Number(bytesDone), total: bytesTotal === null ? null : Number(bytesTotal) },
    });
    try {
      await service.pause(pause);
      const found = await findOperation(service, operation.id);
      if (found === null)
        throw failure('UNKNOWN_ANSWER', `The operation ${operation.id} is no longer to be found.`);
      operation = { ...operation, ...found };
    } catch (error) {
      throw goingOn(error, operation.id);
    }
  }
  if (operation.status === 'SUCCEEDED' || operation.status === 'EXPIRED') return operation;
  if (operation.status === 'CANCELLED') {
    throw failure('OPERATION_CANCELLED', `The operation ${operation.id} was cancelled: nothing came of it.`);
  }
  const { code, message } = operation.error ?? {
    code: 'UNKNOWN_ANSWER',
    message: `The operation ended as ${operation.status}, and the service says nothing of why.`,
  };
  throw new KlError(code, message, {
    advice: endingOf(code).again ? 'The same call may go through later.' : null,
  });
}

/** An operation that is being cancelled, once it has ended, however that was. */
export async function waitForCancellation(service: Service, begun: ImportAnswer): Promise<ImportAnswer> {
  let operation = begun;
  while (isGoingOn(operation)) {
    await service.pause(FIRST_PAUSE_MS);
    operation = (await findOperation(service, operation.id)) ?? { ...operation, status: 'CANCELLED' };
  }
  return operation;
}

/** Whoever no longer waits is told how to find the operation again. */
function goingOn(error: unknown, id: string): unknown {
  if (!(error instanceof KlError) || !['INTERRUPTED', 'UNREACHABLE', 'UNAVAILABLE'].includes(error.code))
    return error;
  return new KlError(error.code, error.message, {
    advice: `The operation goes on without you: kl status ${id}, or kl cancel ${id}`,
    cause: error,
  });
}
