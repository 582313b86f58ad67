import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { abortable } from '../archive/abortable.ts';
import { Digested } from '../base/digested.ts';
import { letGo } from '../base/let-go.ts';
import { inPhase } from '../base/telemetry.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import type { Caller } from '../history/states.ts';
import { rowPathsOf } from '../restore/restore-request.ts';
import { type LocalFile, ObjectMissingError } from '../store/object-store.ts';
import type { ArchiveServices } from './services.ts';
import {
  addPiece,
  deleteUpload,
  expireUpload,
  insertUpload,
  isAbandoned,
  listPieces,
} from './upload-records.ts';
import { aboutField, RequestRefusedError } from './user-error.ts';

/** A file that a caller sent, in the store: whichever machine works on it can fetch it. */
export interface StoredUpload {
  /** The id of its record, which says where its pieces are. */
  readonly key: string;
  /** Lowercase hex. */
  readonly sha256: string;
  readonly fileName: string;
  /** The field of an import's input that leads to it. */
  readonly inputField: 'file' | 'uploadId';
}

/** The key of a piece of an upload in the store: one that nobody had before, so that nobody's piece is another's. */
export function pieceKeyOf(uploadId: string): string {
  return `${uploadId}.${randomUUID()}`;
}

/** How long a file that came within a request is kept for its operation to be recorded. */
const UNUSED_SECONDS = 3_600;

/**
 * Puts a file that was received whole into the store, as an upload of one piece. The local one stays the caller's to remove.
 *
 * @throws the errors of the store and the database; what they leave is removed when the upload expires.
 */
export async function storeUpload(
  { store }: Pick<ArchiveServices, 'store'>,
  caller: Caller,
  file: LocalFile & { readonly fileName: string; readonly sizeBytes: bigint },
  signal: AbortSignal,
): Promise<StoredUpload> {
  const { sha256, fileName, sizeBytes: byteLength } = file;
  const db = caller.database.for('record');
  const key = randomUUID();
  const objectKey = pieceKeyOf(key);
  await insertUpload(db, caller, { id: key, fileName, sha256, byteLength }, UNUSED_SECONDS);
  await store.uploads.put(objectKey, file, signal);
  if (!(await addPiece(db, key, { startByte: 0n, byteLength, objectKey }, 1))) throw uploadGone();
  return { key, sha256, fileName, inputField: 'file' };
}

/** The refusal of an upload that is not there, or not for this caller to use: they are not told apart. */
export function uploadGone(): RequestRefusedError {
  return new RequestRefusedError(
    'UPLOAD_EXPIRED',
    'There is no such upload of yours, or no longer: it has expired, or an import has used it. Nothing was written; send the file again.',
    ['uploadId'],
  );
}

/**
 * The bytes of an upload, from the first on, a piece after the other.
 *
 * @throws RequestRefusedError UPLOAD_EXPIRED when it is gone.
 */
export async function* readUpload(
  { store }: Pick<ArchiveServices, 'store'>,
  database: KilolockDatabase,
  uploadId: string,
): AsyncGenerator<Buffer, void, void> {
  const pieces = await listPieces(database.for('read'), uploadId);
  // Each has one at least: its time is over, or an import that it served as well has used it up.
  if (pieces.length === 0) throw uploadGone();
  for (const objectKey of pieces) {
    yield* await store.uploads.read(objectKey);
  }
}

/**
 * Has work done on a local copy of an upload: an inspection reads in it to and fro, and may read it twice. The copy, and the
 * rows that a restore puts aside beside it, are gone afterwards.
 *
 * @throws RequestRefusedError ARCHIVE_DIGEST_MISMATCH when it is not the file that was announced, UPLOAD_EXPIRED when it is
 *   gone; nothing has looked into it then.
 */
export async function withLocalUpload<Result>(
  services: Pick<ArchiveServices, 'store' | 'scratch'>,
  database: KilolockDatabase,
  { key, sha256, inputField }: StoredUpload,
  signal: AbortSignal,
  work: (path: string) => Promise<Result>,
): Promise<Result> {
  const path = services.scratch.path();
  try {
    const received = await inPhase('import.fetch', () =>
      saveLocally(readUpload(services, database, key), path, signal),
    );
    if (received !== sha256) {
      throw new RequestRefusedError(
        'ARCHIVE_DIGEST_MISMATCH',
        `The file received has the SHA-256 ${received}, not the ${sha256} it was announced with. Nothing was written; send it again.`,
      );
    }
    return await work(path);
  } catch (error) {
    throw error instanceof ObjectMissingError ? uploadGone() : aboutField(error, inputField);
  } finally {
    for (const each of [path, ...Object.values(rowPathsOf({ archivePath: path }))]) {
      await rm(each, { force: true });
    }
  }
}

/** Writes bytes into a new file, for its owner alone, and tells their SHA-256 in lowercase hex. */
async function saveLocally(bytes: AsyncIterable<Buffer>, path: string, signal: AbortSignal): Promise<string> {
  const digested = new Digested(abortable(bytes, signal));
  await using file = await open(path, 'wx', 0o600);
  for await (const piece of digested) {
    await file.writeFile(piece);
    letGo(piece);
  }
  return digested.sha256();
}

/**
 * Removes an upload that nobody can use any more: its pieces, those too that are not on record, and then its record, so that
 * none is left without one.
 */
export async function removeUpload(
  { store }: Pick<ArchiveServices, 'store'>,
  database: KilolockDatabase,
  uploadId: string,
): Promise<void> {
  for await (const { key } of store.uploads.list(`${uploadId}.`)) await store.uploads.remove(key);
  await deleteUpload(database.for('record'), uploadId);
}

/** Removes the upload that an operation worked on which is over, unless it may be used still: a dry run uses none up. */
export async function removeUsedUpload(
  services: Pick<ArchiveServices, 'store'>,
  database: KilolockDatabase,
  uploadId: string,
): Promise<void> {
  if (await isAbandoned(database.for('record'), uploadId)) await removeUpload(services, database, uploadId);
}

/** Removes an upload, unless an operation has it: from here on none will. */
export async function discardUpload(
  services: Pick<ArchiveServices, 'store'>,
  database: KilolockDatabase,
  uploadId: string,
): Promise<void> {
  if (await expireUpload(database.for('record'), uploadId)) await removeUpload(services, database, uploadId);
}
