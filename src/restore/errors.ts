import { clip } from '../base/clip.ts';
import { RefusedDocumentError } from '../inspection/errors.ts';

/** Why the destination, or what was to be restored, was refused. Codes as in the GraphQL schema. */
export type RestoreRefusalCode =
  | 'CONFIRMATION_MISMATCH'
  | 'INVALID_INPUT'
  | 'LINEAGE_IN_USE'
  | 'QUOTA_EXCEEDED'
  | 'STALE_DESTINATION'
  | 'STATE_ALREADY_EXISTS'
  | 'STATE_LOCKED'
  | 'STATE_NOT_ACTIVE'
  | 'STATE_NOT_FOUND'
  | 'UNSUPPORTED_STATE_DOCUMENT';

/** Long enough for a path of forty keys and what is wrong at its end. */
const MAX_MESSAGE = 4000;

/** A restore or a snapshot import that was refused; nothing was written. */
export class RestoreRefusedError extends Error {
  override readonly name = 'RestoreRefusedError';
  readonly code: RestoreRefusalCode;
  /** The input field it is about, below the mutation's `input`; null when it is about the file. */
  readonly inputPath: readonly string[] | null;

  constructor(
    code: RestoreRefusalCode,
    message: string,
    inputField: string | null = null,
    options?: { readonly cause: unknown },
  ) {
    super(clip(message, MAX_MESSAGE), options);
    this.code = code;
    this.inputPath = inputField === null ? null : [inputField];
  }
}

/** The refusal of the state that has this label; `how` completes "The state …". */
export function refusedState(
  code: RestoreRefusalCode,
  label: string,
  how: string,
  inputField = 'name',
  options?: { readonly cause: unknown },
): RestoreRefusedError {
  return new RestoreRefusedError(code, `The state ${JSON.stringify(label)} ${how}`, inputField, options);
}

/** The refusal of a state that is of another lifecycle status than `active`. */
export function notActive(label: string, status: string): RestoreRefusedError {
  return refusedState('STATE_NOT_ACTIVE', label, `is ${status}; restore it in Kilolock first.`);
}

/** The refusal of a restore or a snapshot for a document that cannot be held; every other error as it is. */
export function asRefusal(error: unknown): unknown {
  if (!(error instanceof RefusedDocumentError)) return error;
  return new RestoreRefusedError('UNSUPPORTED_STATE_DOCUMENT', error.message, null, { cause: error });
}
