import { versionMemberName } from '../archive/format.ts';
import type { UnsupportedStateDocumentError } from '../terraform/errors.ts';

/** Where in a document something is wrong, and what: `path` as in {@link UnsupportedStateDocumentError}, a clause without a full stop. */
export type DocumentFault = Pick<UnsupportedStateDocumentError, 'path' | 'reason'>;

/** A raw state that Kilolock could not hold, or that costs more to check than any honest one. */
export class RefusedDocumentError extends Error implements DocumentFault {
  override readonly name = 'RefusedDocumentError';
  readonly serial: bigint;
  readonly path: string;
  readonly reason: string;
  /** An insertion that names the document's spelling when it is not the archive's; else empty. */
  readonly spelling: string;

  constructor(serial: bigint, { path, reason }: DocumentFault, spelling = '') {
    super(
      `The raw state of serial ${serial} (${versionMemberName(serial)})${spelling} cannot be held by Kilolock: at ${path}, ${reason}.`,
    );
    this.serial = serial;
    this.path = path;
    this.reason = reason;
    this.spelling = spelling;
  }
}
