import { types } from 'node:util';
import type { MessagePort } from 'node:worker_threads';
import { ArchiveError } from '../archive/errors.ts';
import type { ArchiveLimits } from '../archive/format.ts';
import type { SignatureTrust } from '../archive/signing-keys.ts';
import type { WrittenArchive } from '../archive/writer.ts';
import { RefusedDocumentError } from './errors.ts';
import type { RestoreFindings, RestoreInspection } from './inspection.ts';
import type { ReadSnapshot } from './snapshot.ts';
import type { RowPaths } from './spooled-rows.ts';
import type { DoubtfulRows, Storage } from './storage.ts';

/**
 * @file What the thread of an inspection and the one that waits for it say to each other. Everything is cloned on its way,
 * so that errors travel as {@link Failure}s.
 */

/** What a thread is to inspect. */
export interface InspectionTask {
  readonly port: MessagePort;
  /** The memory of a {@link SharedProgress}. */
  readonly progress: SharedArrayBuffer;
  readonly work: InspectionWork;
}

/** An archive, and how it is to be read. */
export interface InspectedFile {
  /** The file must not change until the inspection is over. */
  readonly path: string;
  /** What it may cost to read. */
  readonly limits: ArchiveLimits;
  /** Whose signatures count. */
  readonly trust: SignatureTrust;
}

/** What there is to inspect; see the functions of the same names. */
export type InspectionWork =
  | ({ readonly kind: 'export' } & InspectedFile)
  | ({ readonly kind: 'restore' } & InspectedFile & Pick<RestoreInspection, 'asidePath' | 'rows'>)
  | { readonly kind: 'snapshot'; readonly bytes: Uint8Array; readonly rows: RowPaths };

/** What each kind of work ends with. */
export interface InspectionResults {
  readonly export: WrittenArchive;
  readonly restore: RestoreFindings;
  readonly snapshot: Omit<ReadSnapshot, 'resources' | 'outputs'>;
}

/** How it ended. */
export type InspectionResult =
  | { readonly found: InspectionResults[keyof InspectionResults] }
  | { readonly failure: Failure };

/** What the thread says meanwhile. */
export type FromThread =
  | { readonly kind: 'begun'; readonly threadId: number }
  /** It has a large document before it, and waits for its turn. */
  | { readonly kind: 'ask'; readonly about: 'turn' }
  | { readonly kind: 'turn over' }
  | { readonly kind: 'ask'; readonly about: 'jsonbText'; readonly document: Uint8Array }
  | { readonly kind: 'ask'; readonly about: 'faultOf'; readonly rows: DoubtfulRows };

/** What it is told. It asks one question at a time. */
export type ToThread =
  | { readonly kind: 'answer'; readonly answer: Awaited<ReturnType<Storage[keyof Storage]>> }
  /** How many bytes of the file are written. */
  | { readonly kind: 'grown'; readonly bytes: number }
  | { readonly kind: 'whole' };

/** An error as it travels between threads: a clone keeps neither its class nor what that adds. */
export type Failure =
  | ({ readonly kind: 'archive' } & Pick<ArchiveError, 'code' | 'message' | 'member'>)
  | ({ readonly kind: 'document' } & Pick<RefusedDocumentError, 'document' | 'path' | 'reason'>)
  | { readonly kind: 'other'; readonly error: unknown; readonly errno: unknown };

/** What an error is sent as. */
export function toFailure(error: unknown): Failure {
  if (error instanceof ArchiveError) {
    const { code, message, member } = error;
    return { kind: 'archive', code, message, member };
  }
  if (error instanceof RefusedDocumentError) {
    const { document, path, reason } = error;
    return { kind: 'document', document, path, reason };
  }
  return { kind: 'other', error, errno: types.isNativeError(error) && 'code' in error ? error.code : null };
}

/** The error that was sent. */
export function fromFailure(failure: Failure): unknown {
  switch (failure.kind) {
    case 'archive':
      return new ArchiveError(failure.code, failure.message, failure.member);
    case 'document':
      return new RefusedDocumentError(failure.document, failure);
    case 'other': {
      const { error, errno } = failure;
      return types.isNativeError(error) && errno !== null ? Object.assign(error, { code: errno }) : error;
    }
  }
}
