import { versionMemberName } from '../archive/format.ts';
import {
  DEFAULT_STATE_DOCUMENT_LIMITS,
  readStateDocument,
  type StateDocument,
  type StateDocumentLimits,
} from '../terraform/document.ts';
import { UnsupportedStateDocumentError } from '../terraform/errors.ts';
import type { StateHistoryReader, StateVersion } from '../terraform/history-reader.ts';
import { isJsonbText, jsonbText } from '../terraform/jsonb-text.ts';
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
  return refusing(what, () => readStateDocument(bytes, limits));
}

function refusing<Result>(what: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof UnsupportedStateDocumentError)) throw error;
    throw unsupportedDocument(what, error.path, error.reason, error);
  }
}

/** A raw state of an archive as PostgreSQL will keep it, which is what its rows are made of. */
export interface KeptDocument {
  readonly document: StateDocument;
  /** Whether jsonb spells it otherwise than the archive: then `document` is its text and not the archive's. */
  readonly isNormalised: boolean;
}

/**
 * Reads a raw state of an archive.
 *
 * @throws RestoreRefusedError UNSUPPORTED_STATE_DOCUMENT, with the serial, the member and the place in the document.
 */
export function readKeptDocument(serial: bigint, bytes: Buffer): KeptDocument {
  const document = readSupportedDocument(bytes, rawStateOf(serial));
  if (isJsonbText(bytes)) return { document, isNormalised: false };
  const kept = readSupportedDocument(jsonbText(bytes), `${rawStateOf(serial)}, as PostgreSQL spells it,`);
  return { document: kept, isNormalised: true };
}

/** The same of a version that is read with those before it. */
export interface KeptVersion extends StateVersion {
  readonly isNormalised: boolean;
}

/** Reads a raw state of an archive after those before it; see {@link readKeptDocument}. */
export function readKeptVersion(serial: bigint, bytes: Buffer, reader: StateHistoryReader): KeptVersion {
  const version = refusing(rawStateOf(serial), () => reader.read(bytes));
  if (isJsonbText(bytes)) return { ...version, isNormalised: false };
  const kept = jsonbText(bytes);
  return {
    ...refusing(`${rawStateOf(serial)}, as PostgreSQL spells it,`, () => reader.read(kept)),
    isNormalised: true,
  };
}

/** How a message names the raw state of a version, at the beginning of a sentence. */
export function rawStateOf(serial: bigint): string {
  return `The raw state of serial ${serial} (${versionMemberName(serial)})`;
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
