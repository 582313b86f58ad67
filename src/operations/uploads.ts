import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { MAX_LINK_SECONDS } from '../auth/link-keys.ts';
import { abortable } from '../base/abortable.ts';
import { ByteReader } from '../base/byte-reader.ts';
import { Digested } from '../base/digested.ts';
import { plainFileName } from '../base/file-name.ts';
import { letGo } from '../base/let-go.ts';
import { inPhase, noteUpload } from '../base/telemetry.ts';
import { inTransaction, type KilolockDatabase } from '../database/connection.ts';
import { type Caller, may } from '../history/states.ts';
import { rowPathsOf } from '../restore/plan.ts';
import { type LocalFile, ObjectMissingError } from '../store/object-store.ts';
import { NotPermittedError } from './destination-permission.ts';
import type { OpenEnvironment } from './environments.ts';
import { followLink, linkFor, linkSeconds } from './links.ts';
import { lockAdmission } from './operation-admission.ts';
import type { StoredUpload } from './operation-request.ts';
import type { ArchiveServices, CallerRequest } from './services.ts';
import {
  addPiece,
  deleteUpload,
  expireUpload,
  findPieces,
  findUpload,
  insertUpload,
  isAbandoned,
  listPieces,
  sumUnused,
  type UploadRecord,
} from './upload-records.ts';
import { aboutField, RequestRefusedError } from './user-error.ts';

/**
 * @file Files that callers send, from the announcement or the request they come with until nobody can use them any more. An
 * upload is a record, and the pieces in the store that it tells of: whichever machine works on it can fetch it.
 */

/** A file that was received whole, on this machine's disk. */
export interface ReceivedFile extends LocalFile {
  readonly fileName: string;
  readonly sizeBytes: bigint;
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
  file: ReceivedFile,
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

/** The key of a piece of an upload in the store: one that nobody had before, so that nobody's piece is another's. */
function pieceKeyOf(uploadId: string): string {
  return `${uploadId}.${randomUUID()}`;
}

/**
 * Waits for a file, by a link that is good for a day, or as long as the caller's credential when that is shorter.
 *
 * @param announced how long the file is, and what it is; its digest in lowercase hex.
 * @returns where to send the file, with tus 1.0. Whoever has that may send: it is a secret.
 * @throws RequestRefusedError INVALID_INPUT, ARCHIVE_TOO_LARGE; QUOTA_EXCEEDED when the caller has as many uploads, or as many
 *   bytes of them, as one may.
 * @throws NotPermittedError when the caller may not import there.
 */
export async function stageUpload(
  services: Pick<
    ArchiveServices,
    'links' | 'limits' | 'maxUploadsPerPrincipal' | 'maxUploadBytesPerPrincipal'
  >,
  { caller }: CallerRequest,
  announced: { readonly byteLength: bigint; readonly sha256: string; readonly fileName: string | null },
  publicUrl: string,
): Promise<{ readonly id: string; readonly url: string; readonly expiresAt: string }> {
  const { byteLength, sha256, fileName } = announced;
  if (!may(caller, 'state.import'))
    throw new NotPermittedError('Your credential does not permit imports there.');
  const { maxArchiveBytes } = services.limits;
  if (byteLength < 1n)
    throw new RequestRefusedError('INVALID_INPUT', 'byteLength is at least 1.', ['byteLength']);
  if (byteLength > maxArchiveBytes) {
    throw new RequestRefusedError(
      'ARCHIVE_TOO_LARGE',
      `A file has at most ${maxArchiveBytes} bytes; an operator can raise that, MAX_ARCHIVE_BYTES.`,
      ['byteLength'],
    );
  }
  const seconds = Math.max(1, linkSeconds(caller, MAX_LINK_SECONDS));
  const id = randomUUID();
  const record = await inTransaction(caller.database, 'record', async ({ db }) => {
    await lockAdmission(db, caller);
    await insertUpload(db, caller, { id, byteLength, sha256, fileName: plainFileName(fileName) }, seconds);
    const unused = await sumUnused(db, caller);
    const { maxUploadsPerPrincipal, maxUploadBytesPerPrincipal } = services;
    if (unused.count > maxUploadsPerPrincipal || unused.bytes > BigInt(maxUploadBytesPerPrincipal)) {
      throw new RequestRefusedError(
        'QUOTA_EXCEEDED',
        `You may have ${maxUploadsPerPrincipal} uploads of ${maxUploadBytesPerPrincipal} bytes in all waiting in this environment. Import those that are whole, or end one with DELETE at its address.`,
      );
    }
    return findUpload(db, caller.namespace, id);
  });
  if (record === null) throw new Error('An upload that was recorded is not on record.');
  const url = await linkFor(services, caller, { purpose: 'upload', resourceId: id }, seconds, publicUrl);
  return { id, url, expiresAt: record.expiresAt };
}

/** An upload by its link. */
export interface OpenUpload {
  readonly byteLength: bigint;
  /** How many bytes there are at this moment, from the first on. */
  receivedBytes(): Promise<bigint>;
  /** Whether nothing more can be done with it: an operation uses it, or its time is over. */
  readonly isOver: boolean;
  /**
   * Receives bytes that go on at `offset`, and keeps all that come, also when they end in an error.
   *
   * @returns how many bytes there are then.
   * @throws UploadRefusedError when they cannot go on there; what `bytes` throws.
   */
  receive(offset: bigint, bytes: AsyncIterable<Buffer>): Promise<bigint>;
  /** Ends it, unless an operation uses it. */
  discard(): Promise<void>;
}

/** Bytes that an upload does not take. */
export class UploadRefusedError extends Error {
  override readonly name = 'UploadRefusedError';
  /** `moved`: it goes on elsewhere; `over`: it is used, or has expired; `fragmented`: it came in too many pieces. */
  readonly reason: 'moved' | 'over' | 'fragmented';

  constructor(reason: UploadRefusedError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * The upload a link leads to; null when the link is not good, the credential it was made with permits it no longer, or there
 * is no such upload: they are not told apart.
 */
export async function openUpload(
  services: Pick<ArchiveServices, 'environments' | 'links' | 'readCredential' | 'scratch' | 'store'>,
  uploadId: string,
  linkToken: string,
): Promise<OpenUpload | null> {
  const opened = await followLink(services, { purpose: 'upload', resourceId: uploadId }, linkToken);
  if (opened === null) return null;
  const { namespace, database } = opened;
  const find = () => findUpload(database.for('read'), namespace, uploadId);
  const record = await find();
  if (record === null) return null;
  return {
    byteLength: record.byteLength,
    async receivedBytes() {
      const current = await find();
      if (current === null) throw uploadIsOver();
      return current.receivedBytes;
    },
    isOver: record.operationId !== null || record.hasExpired,
    receive: (offset, bytes) => receivePieces(services, opened, record, offset, bytes),
    discard: () => discardUpload(services, database, uploadId),
  };
}

/** So much is put into the store at a time: what a cut costs at most when the process goes with it. */
const PIECE_BYTES = 8 * 1024 * 1024;
/** How many pieces more than it takes an upload may come in: each is cut off by a request's end. */
const CUTS = 1_000;

/** Puts what comes of an upload into the store, a piece after the other, and each on record. */
async function receivePieces(
  services: Pick<ArchiveServices, 'scratch' | 'store'>,
  environment: OpenEnvironment,
  upload: UploadRecord,
  offset: bigint,
  bytes: AsyncIterable<Buffer>,
): Promise<bigint> {
  const arriving = new ByteReader(bytes);
  const end = { isReached: false, error: null as unknown };
  async function* nextPiece() {
    for (let left = PIECE_BYTES; left > 0; ) {
      const some = await arriving.some(left).catch((error: unknown) => {
        end.error = error;
        return null;
      });
      end.isReached = some === null;
      if (some === null) return;
      left -= some.length;
      yield some;
    }
  }
  let at = offset;
  while (!end.isReached) {
    const path = services.scratch.path();
    try {
      const { sha256, length } = await saveLocally(nextPiece(), path);
      if (length > 0) await keepPiece(services, environment, upload, at, { path, sha256, length });
      at += BigInt(length);
    } finally {
      await rm(path, { force: true });
    }
  }
  if (end.error !== null) throw end.error;
  return at;
}

async function keepPiece(
  { store }: Pick<ArchiveServices, 'store'>,
  { database, namespace }: OpenEnvironment,
  { id, byteLength }: UploadRecord,
  startByte: bigint,
  piece: LocalFile & { readonly length: number },
): Promise<void> {
  const objectKey = pieceKeyOf(id);
  const maxPieces = Math.ceil(Number(byteLength) / PIECE_BYTES) + CUTS;
  // Not called off with the request: what has come is kept.
  await store.uploads.put(objectKey, piece, new AbortController().signal);
  const db = database.for('record');
  const record = { startByte, byteLength: BigInt(piece.length), objectKey };
  const isKept = await addPiece(db, id, record, maxPieces).catch(async (error: unknown) => {
    // The answer may have been lost. When nobody can tell, the piece stays until its upload is removed.
    if ((await findPieces(db, [objectKey])).has(objectKey)) return true;
    throw error;
  });
  if (isKept) return noteUpload('staged', piece.length);
  await store.uploads.remove(objectKey);
  const current = await findUpload(database.for('read'), namespace, id);
  if (current === null || current.operationId !== null || current.hasExpired) throw uploadIsOver();
  if (current.receivedBytes !== startByte) {
    throw new UploadRefusedError(
      'moved',
      `The upload goes on at byte ${current.receivedBytes}, not at ${startByte}: another request has sent to it.`,
    );
  }
  throw new UploadRefusedError(
    'fragmented',
    `The upload came in ${maxPieces} pieces already: begin another, and send more of the file in each request.`,
  );
}

/** That nothing more can be done with an upload. */
export function uploadIsOver(): UploadRefusedError {
  return new UploadRefusedError('over', 'The upload is over: an import uses it, or its time is past.');
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
      saveLocally(abortable(readUpload(services, database, key), signal), path),
    );
    if (received.sha256 !== sha256) {
      throw new RequestRefusedError(
        'ARCHIVE_DIGEST_MISMATCH',
        `The file received has the SHA-256 ${received.sha256}, not the ${sha256} it was announced with. Nothing was written; send it again.`,
      );
    }
    return await work(path);
  } catch (error) {
    throw error instanceof ObjectMissingError ? uploadGone() : aboutField(error, inputField);
  } finally {
    for (const each of [path, ...Object.values(rowPathsOf(path))]) {
      await rm(each, { force: true });
    }
  }
}

/** Writes bytes into a new file, for its owner alone, and tells their SHA-256 in lowercase hex and their number. */
async function saveLocally(
  bytes: AsyncIterable<Uint8Array>,
  path: string,
): Promise<{ readonly sha256: string; readonly length: number }> {
  const digested = new Digested(bytes);
  await using file = await open(path, 'wx', 0o600);
  for await (const chunk of digested) {
    await file.writeFile(chunk);
    letGo(chunk);
  }
  return { sha256: digested.sha256(), length: digested.length };
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
