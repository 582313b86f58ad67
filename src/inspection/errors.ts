import { versionMemberName } from '../archive/format.ts';
import { UnsupportedStateDocumentError } from '../terraform/errors.ts';

/** Where in a document something is wrong, and what: `path` as in {@link UnsupportedStateDocumentError}, a clause without a full stop. */
export type DocumentFault = Pick<UnsupportedStateDocumentError, 'path' | 'reason'>;

/** A document as messages name it, at the beginning of a sentence, and its serial if it is a version of an archive. */
export interface NamedDocument {
  readonly serial: bigint | null;
  readonly name: string;
}

/** The raw state of a version. @param spelling names it when it is not the archive's, as an insertion. */
export function rawStateOf(serial: bigint, spelling = ''): NamedDocument {
  return { serial, name: `The raw state of serial ${serial} (${versionMemberName(serial)})${spelling}` };
}

/** A document that Kilolock could not hold, or that costs more to check than any honest one. */
export class RefusedDocumentError extends Error implements DocumentFault {
  override readonly name = 'RefusedDocumentError';
  readonly document: NamedDocument;
  readonly path: string;
  readonly reason: string;

  constructor(document: NamedDocument, { path, reason }: DocumentFault) {
    super(`${document.name} cannot be held by Kilolock: at ${path}, ${reason}.`);
    this.document = document;
    this.path = path;
    this.reason = reason;
  }
}

/** Reads a document; that it is unsupported becomes its refusal. */
export function refusing<Result>(document: NamedDocument, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof UnsupportedStateDocumentError)) throw error;
    throw new RefusedDocumentError(document, error);
  }
}
