/** What `kl` ends with; docs/kl.md has the table for people. */
export const EXIT = {
  /** Done. */
  done: 0,
  /** Failed, with nothing written. Of `archive diff`, and of a comparison with a live history: there is a difference. */
  failed: 1,
  /** The command line, or a value given on it, cannot be used. */
  usage: 2,
  /** Refused: by the service, or here to keep something from being lost. */
  refused: 3,
  /** No credential, or one that may not. */
  credentials: 4,
  /** The archive, or a document, is not sound. */
  badArchive: 5,
  /** The same call can go through another time. */
  tryAgain: 6,
  /** Interrupted; the next call goes on where a transfer stopped. */
  interrupted: 130,
} as const;
export type Exit = (typeof EXIT)[keyof typeof EXIT];

/** What an error means to whoever called. */
interface Ending {
  readonly exit: Exit;
  /** Whether the same request, unchanged and with the same idempotency key, may be sent again and can go through. */
  readonly again: boolean;
}

function endings<Code extends string>(exit: Exit, again: boolean, codes: readonly Code[]) {
  return Object.fromEntries(codes.map((code) => [code, { exit, again }])) as Record<Code, Ending>;
}

/** Of each code that the service answers with, in whichever way. docs/errors.md explains them. */
export const SERVICE_ENDINGS: Readonly<Record<string, Ending>> = {
  ...endings(EXIT.failed, false, [
    'INTERNAL',
    'GRAPHQL_PARSE_FAILED',
    'GRAPHQL_VALIDATION_FAILED',
    'OPERATION_RESOLUTION_FAILURE',
    'PERSISTED_QUERY_NOT_SUPPORTED',
    'BAD_REQUEST',
    'QUERY_TOO_LARGE',
    'NOT_FOUND',
    'METHOD_NOT_ALLOWED',
    'UNSUPPORTED_MEDIA_TYPE',
    'PRECONDITION_FAILED',
    'RANGE_NOT_SATISFIABLE',
    'CONFLICT',
    'GONE',
    'HEADERS_TOO_LARGE',
  ]),
  ...endings(EXIT.usage, false, ['INVALID_INPUT', 'BAD_USER_INPUT']),
  ...endings(EXIT.refused, false, [
    'STATE_NOT_FOUND',
    'STATE_AMBIGUOUS',
    'STATE_EMPTY',
    'STATE_ALREADY_EXISTS',
    'STATE_NOT_ACTIVE',
    'CONFIRMATION_MISMATCH',
    'STALE_DESTINATION',
    'LINEAGE_IN_USE',
    'HISTORY_INCONSISTENT',
    'QUOTA_EXCEEDED',
    'IDEMPOTENCY_KEY_REUSED',
    'PAYLOAD_TOO_LARGE',
    'UPLOAD_EXPIRED',
    'UPLOAD_INCOMPLETE',
    'OPERATION_NOT_FOUND',
    'OPERATION_NOT_CANCELLABLE',
    'ARCHIVE_NOT_KEPT',
    'RETENTION_UNSUPPORTED',
  ]),
  ...endings(EXIT.credentials, false, ['FORBIDDEN', 'UNAUTHENTICATED']),
  ...endings(EXIT.badArchive, false, [
    'ARCHIVE_TRUNCATED',
    'ARCHIVE_CORRUPT',
    'ARCHIVE_UNSUPPORTED_FORMAT',
    'ARCHIVE_UNSAFE',
    'ARCHIVE_TOO_LARGE',
    'ARCHIVE_INCONSISTENT',
    'ARCHIVE_DIGEST_MISMATCH',
    'ARCHIVE_REDACTED',
    'ARCHIVE_ENCRYPTED',
    'SIGNATURE_INVALID',
    'SIGNATURE_REQUIRED',
    'UNSUPPORTED_STATE_DOCUMENT',
  ]),
  ...endings(EXIT.tryAgain, true, [
    'STATE_LOCKED',
    'TOO_MANY_OPERATIONS',
    'OPERATION_INTERRUPTED',
    'DIGESTS_INCOMPLETE',
    'UPLOAD_INTERRUPTED',
    'UNAVAILABLE',
    'REQUEST_TIMEOUT',
    'NOT_READY',
  ]),
};

/** Of each code that is `kl`'s own. */
export const OWN_ENDINGS = {
  ...endings(EXIT.failed, false, ['FAILED', 'WRITE_FAILED', 'UNKNOWN_ANSWER']),
  ...endings(EXIT.usage, false, ['USAGE', 'FILE_UNUSABLE']),
  ...endings(EXIT.refused, false, [
    'FILE_EXISTS',
    'NOT_CONFIRMED',
    'VERSION_NOT_FOUND',
    'NO_HISTORY',
    'OPERATION_CANCELLED',
  ]),
  ...endings(EXIT.credentials, false, ['NO_CREDENTIAL']),
  ...endings(EXIT.tryAgain, true, ['UNREACHABLE', 'ARCHIVE_GONE']),
  ...endings(EXIT.interrupted, true, ['INTERRUPTED']),
};
export type OwnCode = keyof typeof OWN_ENDINGS;

/** Why a command ended without what it was asked for: what happened and where, and what to do. Never a secret. */
export class KlError extends Error {
  override readonly name = 'KlError';
  readonly code: string;
  /** Where 1 says that there is a difference, `program.ts` makes it 2. */
  exit: Exit;
  /** What to do about it; null when the message says it. */
  readonly advice: string | null;

  /** @param code one of `kl`'s own, or what the service answered with. */
  constructor(code: string, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.exit = endingOf(code).exit;
    this.advice = options.advice ?? null;
  }
}

/** What an error says beside its message. */
export interface FailureOptions {
  readonly advice?: string | null;
  readonly cause?: unknown;
}

/** An error with a code of `kl`'s own. */
export function failure(code: OwnCode, message: string, options: FailureOptions = {}): KlError {
  return new KlError(code, message, options);
}

/** An error of the service, in its words. */
export function refused({ code, message }: { readonly code: string; readonly message: string }): KlError {
  return new KlError(code, message, {
    advice: endingOf(code).again ? 'The same call may go through later.' : null,
  });
}

/** What a code means; one that a later release of the service has is a plain failure. */
export function endingOf(code: string): Ending {
  const known: Readonly<Record<string, Ending>> = { ...SERVICE_ENDINGS, ...OWN_ENDINGS };
  return known[code] ?? { exit: EXIT.failed, again: false };
}
