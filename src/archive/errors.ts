import { clip } from '../base/clip.ts';

/** What is wrong with an archive. */
export type ArchiveErrorCode =
  /** It ends too early; fetch or export it again. */
  | 'ARCHIVE_TRUNCATED'
  /** Its bytes are not those that were written; fetch or export it again. */
  | 'ARCHIVE_CORRUPT'
  /** It is not an archive, or one of a version this reader does not know. */
  | 'ARCHIVE_UNSUPPORTED_FORMAT'
  /** It holds something no archive ever holds (a link, an unknown or repeated member, a header that overrides another). */
  | 'ARCHIVE_UNSAFE'
  /** It is beyond a limit of the reader. */
  | 'ARCHIVE_TOO_LARGE'
  /** Its parts contradict each other or the rules of the format. */
  | 'ARCHIVE_INCONSISTENT'
  /** Values were taken out of it for a hand-over: it is no longer the history. */
  | 'ARCHIVE_REDACTED'
  /** It is sealed, and has to be opened first. */
  | 'ARCHIVE_ENCRYPTED'
  /** Its attestation is about another archive, or a signature in it is wrong. */
  | 'SIGNATURE_INVALID'
  /** Nobody has signed it who is trusted, and somebody has to. */
  | 'SIGNATURE_REQUIRED';

/** Longest message: names out of an archive are cut one by one, and this is for what is put together of them. */
const MAX_MESSAGE = 1000;
const MAX_NAME = 120;

/**
 * Why an archive was refused, or could not be written: a clause without a full stop. The message never holds a value of a
 * state, and has at most a thousand characters.
 */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
  readonly code: ArchiveErrorCode;
  /** Name of the member the error was found in, or null when it concerns the file as a whole. */
  readonly member: string | null;

  constructor(
    code: ArchiveErrorCode,
    message: string,
    member: string | null = null,
    options?: { readonly cause: unknown },
  ) {
    super(clip(message, MAX_MESSAGE), options);
    this.code = code;
    this.member = member;
  }
}

/**
 * A name out of an untrusted archive or history, made fit for a message: quoted, control characters escaped,
 * cut to 120 characters.
 */
export function quoted(name: string): string {
  return JSON.stringify(clip(name, MAX_NAME));
}
