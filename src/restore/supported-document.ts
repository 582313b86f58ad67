import {
  DEFAULT_STATE_DOCUMENT_LIMITS,
  readStateDocument,
  type StateDocument,
  type StateDocumentLimits,
} from '../terraform/document.ts';
import { UnsupportedStateDocumentError } from '../terraform/errors.ts';
import { RestoreRefusedError } from './errors.ts';

/**
 * Reads a document that Kilolock is to hold.
 *
 * @param what names the document at the beginning of a sentence.
 * @throws RestoreRefusedError UNSUPPORTED_STATE_DOCUMENT, with the place in the document.
 */
export function readSupportedDocument(
  bytes: Buffer,
  what: string,
  limits: StateDocumentLimits = DEFAULT_STATE_DOCUMENT_LIMITS,
): StateDocument {
  try {
    return readStateDocument(bytes, limits);
  } catch (error) {
    if (!(error instanceof UnsupportedStateDocumentError)) throw error;
    throw unsupportedDocument(what, error.path, error.reason, error);
  }
}

/** The refusal of a document for `reason`, a clause without a full stop, at `path`. */
export function unsupportedDocument(
  what: string,
  path: string,
  reason: string,
  cause?: unknown,
): RestoreRefusedError {
  return new RestoreRefusedError(
    'UNSUPPORTED_STATE_DOCUMENT',
    `${what} cannot be held by Kilolock: at ${path}, ${reason}.`,
    { cause },
  );
}
