import { readStateDocument, type StateDocument } from '../terraform/document.ts';
import { UnsupportedStateDocumentError } from '../terraform/errors.ts';
import { RestoreRefusedError } from './errors.ts';

/**
 * Reads a document that Kilolock is to hold.
 *
 * @param what names the document at the beginning of a sentence.
 * @throws RestoreRefusedError UNSUPPORTED_STATE_DOCUMENT, with the place in the document.
 */
export function readSupportedDocument(bytes: Buffer, what: string): StateDocument {
  try {
    return readStateDocument(bytes);
  } catch (error) {
    if (!(error instanceof UnsupportedStateDocumentError)) throw error;
    throw new RestoreRefusedError(
      'UNSUPPORTED_STATE_DOCUMENT',
      `${what} cannot be held by Kilolock: at ${error.path}, ${error.reason}.`,
      { cause: error },
    );
  }
}
