import { ArchiveError, type ArchiveErrorCode } from '../archive/errors.ts';
import { DISK_FULL, isDiskFull } from '../base/errno.ts';
import { DatabaseUnavailableError, isConnectionLost } from '../database/errors.ts';
import { StateEmptyError } from '../history/export-source.ts';
import { HistoryInconsistentError } from '../history/inconsistent.ts';
import { StateAmbiguousError } from '../history/namespace.ts';
import { RestoreRefusedError } from '../restore/errors.ts';
import { RetentionRefusedError, StoreUnavailableError } from '../store/object-store.ts';

/** The stable codes of what a caller can mend: `StateArchiveErrorCode` of the schema. */
export type UserErrorCode =
  | ArchiveError['code']
  | RestoreRefusedError['code']
  | 'ARCHIVE_DIGEST_MISMATCH'
  | 'ARCHIVE_NOT_KEPT'
  | 'FORBIDDEN'
  | 'HISTORY_INCONSISTENT'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'INTERNAL'
  | 'OPERATION_INTERRUPTED'
  | 'OPERATION_NOT_CANCELLABLE'
  | 'OPERATION_NOT_FOUND'
  | 'RETENTION_UNSUPPORTED'
  | 'STATE_AMBIGUOUS'
  | 'STATE_EMPTY'
  | 'STATE_NOT_FOUND'
  | 'TOO_MANY_OPERATIONS'
  | 'UPLOAD_EXPIRED'
  | 'UPLOAD_INCOMPLETE';

/** Something the caller can mend: what happened, where, and what to do. */
export interface UserError {
  readonly code: UserErrorCode;
  readonly message: string;
  /** The input field it is about, from `input` down, as in `["input", "name"]`; null when it is about none. */
  readonly path: readonly string[] | null;
}

/** A request that cannot be carried out as asked, for a reason that lies with the request. */
export class RequestRefusedError extends Error {
  override readonly name = 'RequestRefusedError';
  readonly code: UserErrorCode;
  /** The input field it is about, below the mutation's `input`; null when it is about none. */
  readonly inputPath: readonly string[] | null;

  constructor(code: UserErrorCode, message: string, inputPath: readonly string[] | null = null) {
    super(message);
    this.code = code;
    this.inputPath = inputPath;
  }
}

/** The refusal of a state that is not there, or not visible: the two are told in the same words. */
export function stateNotFound(): RequestRefusedError {
  return new RequestRefusedError(
    'STATE_NOT_FOUND',
    'There is no such active state in this environment, or none you may see.',
    ['name'],
  );
}

/** What a caller is told of an error, or null when the error is the service's own and must not be told. */
export function toUserError(error: unknown): UserError | null {
  if (error instanceof RequestRefusedError || error instanceof RestoreRefusedError) {
    return { code: error.code, message: error.message, path: error.inputPath && pathTo(...error.inputPath) };
  }
  if (error instanceof ArchiveError) {
    const message = `${sentence(error.message)} ${ADVICE[error.code]}`;
    return { code: error.code, message, path: pathTo('file') };
  }
  if (error instanceof DatabaseUnavailableError && !isConnectionLost(error)) {
    return interruption(`${error.message} Nothing was written.`);
  }
  if (error instanceof StoreUnavailableError) {
    return interruption(`${error.message} Nothing was written; ask again.`);
  }
  if (isDiskFull(error)) return interruption(`${DISK_FULL} Nothing was written; ask again.`);
  if (error instanceof RetentionRefusedError) {
    return { code: 'RETENTION_UNSUPPORTED', message: `${error.message} Nothing was changed.`, path: null };
  }
  if (
    error instanceof StateEmptyError ||
    error instanceof StateAmbiguousError ||
    error instanceof HistoryInconsistentError
  ) {
    return { code: error.code, message: error.message, path: pathTo('name') };
  }
  return null;
}

/** What is told of work that was interrupted, for a reason that lies with nobody's request. */
export function interruption(message: string): UserError {
  return { code: 'OPERATION_INTERRUPTED', message, path: null };
}

/** What is wrong with an archive, said of the input field that led to it. */
export function aboutField(error: unknown, field: 'file' | 'uploadId'): unknown {
  const told = error instanceof ArchiveError && field !== 'file' ? toUserError(error) : null;
  if (told === null) return error;
  const refusal = new RequestRefusedError(told.code, told.message, [field]);
  refusal.cause = error;
  return refusal;
}

/** The path of a user error about the field of the mutation's `input` that the keys lead to. */
export function pathTo(...keys: readonly string[]): readonly string[] {
  return ['input', ...keys];
}

/** What to do about each way in which an archive can be unusable. */
const ADVICE: Readonly<Record<ArchiveErrorCode, string>> = {
  ARCHIVE_CORRUPT: 'Nothing was written; send the file again, or export it again.',
  ARCHIVE_ENCRYPTED:
    'Nothing was written; open it with `kl archive decrypt` or `age --decrypt`, and send what comes out. `kl import archive --identity` does both.',
  ARCHIVE_INCONSISTENT: 'Nothing was written; export the state again where it comes from.',
  ARCHIVE_REDACTED: 'Nothing was written; import the archive that it was made from.',
  ARCHIVE_TOO_LARGE:
    'Nothing was written. docs/archive-format.md names the limits; an operator can raise that of the file, MAX_ARCHIVE_BYTES.',
  ARCHIVE_TRUNCATED: 'Nothing was written; send the file again, or export it again.',
  ARCHIVE_UNSAFE: 'Nothing was written; no archive is like that, so find out where the file comes from.',
  ARCHIVE_UNSUPPORTED_FORMAT: 'Nothing was written; give a .klstate file of a format named here.',
  SIGNATURE_INVALID:
    'Nothing was written; fetch the file again from where it was exported. If it stays so, find out who changed it.',
  SIGNATURE_REQUIRED:
    'Nothing was written; import an archive that a trusted service exported. An operator names the keys in ARCHIVE_VERIFICATION_KEYS.',
};

/** A clause as a sentence. The name of a member at its beginning stays as it is. */
function sentence(clause: string): string {
  const [first = ''] = clause.split(' ', 1);
  const isName = /[./\dA-Z]/.test(first);
  return `${isName ? clause : clause.charAt(0).toUpperCase() + clause.slice(1)}${clause.endsWith('.') ? '' : '.'}`;
}
