import { DEFAULT_ARCHIVE_LIMITS } from '../archive/format.ts';
import { CallerError } from '../base/caller-error.ts';

/**
 * A history whose rows contradict each other in a way no constraint prevents (data model 10, trap 7), or hold what no
 * archive can. The message names the row.
 */
export class HistoryInconsistentError extends CallerError {
  override readonly name = 'HistoryInconsistentError';
  override readonly code = 'HISTORY_INCONSISTENT';
}

/** What a row holds that no archive can, told by the name of the row and a clause that says what is wrong. */
export function unarchivable(row: string, fault: string): HistoryInconsistentError {
  return new HistoryInconsistentError(
    `${row} holds what no archive can: ${fault}. Mend the row in Kilolock's database first.`,
  );
}

/** @throws HistoryInconsistentError when the text of a raw state is longer than a version in an archive may be. */
export function checkRawStateLength(serial: bigint, byteLength: number): void {
  const limit = DEFAULT_ARCHIVE_LIMITS.maxVersionBytes;
  if (byteLength > limit) {
    throw new HistoryInconsistentError(
      `The raw state of serial ${serial} has ${byteLength} bytes as PostgreSQL prints it; an archive holds ${limit} at most.`,
    );
  }
}
