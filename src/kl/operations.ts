import { DOCUMENTS, type OperationAnswer } from './documents.ts';
import { failure, KlError, refused } from './endings.ts';
import type { Work } from './progress.ts';
import { isPassing, type Service } from './service.ts';

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 2_000;

/** Whether an operation has not ended. */
export function isGoingOn({ status }: Pick<OperationAnswer, 'status'>): boolean {
  return status === 'PENDING' || status === 'RUNNING';
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
      const found = await service.ask(DOCUMENTS.operation, { id: operation.id });
      if (found === null)
        throw failure('UNKNOWN_ANSWER', `The operation ${operation.id} is no longer to be found.`);
      operation = { ...operation, ...found };
    } catch (error) {
      if (!isUndecided(error)) throw error;
      // Whoever no longer waits is told how to find it again.
      const { id } = operation;
      throw new KlError(error.code, error.message, {
        advice: `The operation goes on without you: kl status ${id}, or kl cancel ${id}`,
        cause: error,
      });
    }
  }
  if (operation.status === 'SUCCEEDED' || operation.status === 'EXPIRED') return operation;
  if (operation.status === 'CANCELLED') {
    throw failure('OPERATION_CANCELLED', `The operation ${operation.id} was cancelled: nothing came of it.`);
  }
  throw refused(
    operation.error ?? {
      code: 'UNKNOWN_ANSWER',
      message: `The operation ended as ${operation.status}, and the service says nothing of why.`,
    },
  );
}

/** Whether an error says that nobody waits any longer, and nothing of what becomes of what was asked for. */
export function isUndecided(error: unknown): error is KlError {
  return error instanceof KlError && (error.code === 'INTERRUPTED' || isPassing(error));
}
