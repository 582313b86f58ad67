import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { MAX_LINK_SECONDS } from '../auth/link-keys.ts';
import { plainFileName } from '../base/file-name.ts';
import { noteUpload } from '../base/telemetry.ts';
import { inTransaction, type KilolockDatabase } from '../database/connection.ts';
import type { StateNamespace } from '../history/namespace.ts';
import { may } from '../history/states.ts';
import type { LocalFile } from '../store/object-store.ts';
import { selectorOf } from './current-caller.ts';
import { NotPermittedError } from './destination-permission.ts';
import type { OpenEnvironment } from './environments.ts';
import { isStillPermitted } from './link-permission.ts';
import { lockAdmission } from './operation-admission.ts';
import { discardUpload, pieceKeyOf } from './received-uploads.ts';
import type { ArchiveServices, CallerRequest } from './services.ts';
import {
  addPiece,
  findPieces,
  findUpload,
  insertUpload,
  sumUnused,
  type UploadRecord,
} from './upload-records.ts';
import { RequestRefusedError } from './user-error.ts';

/** A file that is announced: how long it is, and what it is. */
export interface UploadAnnouncement {
  readonly byteLength: bigint;
  /** Lowercase hex. */
  readonly sha256: string;
  readonly fileName: string | null;
}

/** An upload that is waited for. */
export interface StagedUpload {
  readonly id: string;
  /** Where to send the file, with tus 1.0. Whoever has it may send: it is a secret. */
  readonly url: string;
  readonly expiresAt: string;
}

/**
 * Waits for a file, by a link that is good for a day, or as long as the caller's credential when that is shorter.
 *
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
  { byteLength, sha256, fileName }: UploadAnnouncement,
  publicUrl: string,
): Promise<StagedUpload> {
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
  const { subject, token = null, expiresAt = Number.POSITIVE_INFINITY } = caller.principal;
  const seconds = Math.max(1, Math.min(MAX_LINK_SECONDS, Math.floor(expiresAt - Date.now() / 1000)));
  const upload = { id: randomUUID(), byteLength, sha256, fileName: plainFileName(fileName) };
  const record = await inTransaction(caller.database, 'record', async ({ db }) => {
    await lockAdmission(db, caller);
    await insertUpload(db, caller, upload, seconds);
    const unused = await sumUnused(db, caller);
    const { maxUploadsPerPrincipal, maxUploadBytesPerPrincipal } = services;
    if (unused.count > maxUploadsPerPrincipal || unused.bytes > BigInt(maxUploadBytesPerPrincipal)) {
      throw new RequestRefusedError(
        'QUOTA_EXCEEDED',
        `You may have ${maxUploadsPerPrincipal} uploads of ${maxUploadBytesPerPrincipal} bytes in all waiting in this environment. Import those that are whole, or end one with DELETE at its address.`,
      );
    }
    return findUpload(db, caller.namespace, upload.id);
  });
  if (record === null) throw new Error('An upload that was recorded is not on record.');
  const selector = selectorOf(caller);
  const link = await services.links.sign({
    purpose: 'upload',
    resourceId: upload.id,
    workspace: selector?.workspace ?? null,
    environment: selector?.environment ?? null,
    subject,
    token,
    expiresInSeconds: seconds,
  });
  return {
    id: upload.id,
    url: `${publicUrl}/uploads/${upload.id}?token=${encodeURIComponent(link)}`,
    expiresAt: record.expiresAt,
  };
}

/** An upload by its link. */
export interface OpenUpload {
  readonly byteLength: bigint;
  /** How many bytes there are at this moment, from the first on. */
  readonly receivedBytes: () => Promise<bigint>;
  /** Whether nothing more can be done with it: an operation uses it, or its time is over. */
  readonly isOver: boolean;
  /**
   * Receives bytes that go on at `offset`, and keeps all that come, also when they end in an error.
   *
   * @returns how many bytes there are then.
   * @throws UploadRefusedError when they cannot go on there; what `bytes` throws.
   */
  readonly receive: (offset: bigint, bytes: AsyncIterable<Buffer>) => Promise<bigint>;
  /** Ends it, unless an operation uses it. */
  readonly discard: () => Promise<void>;
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
  const { environments, links } = services;
  const link = await links.verify(linkToken, 'upload', uploadId);
  if (link === null) return null;
  const { workspace, environment } = link;
  const opened = await environments.open(
    workspace === null || environment === null ? null : { workspace, environment },
  );
  if (opened === null) return null;
  const { namespace, database } = opened;
  if (!(await isStillPermitted(services, link, 'state.import', namespace))) return null;
  const record = await findUpload(database.for('read'), namespace, uploadId);
  if (record === null) return null;
  const receiver = new PieceReceiver(services, opened, record);
  return {
    byteLength: record.byteLength,
    async receivedBytes() {
      const current = await findUpload(database.for('read'), namespace, uploadId);
      if (current === null) throw uploadIsOver();
      return current.receivedBytes;
    },
    isOver: record.operationId !== null || record.hasExpired,
    receive: (offset, bytes) => receiver.receive(offset, bytes),
    discard: () => discardUpload(services, database, uploadId),
  };
}

/** So much is put into the store at a time: what a cut costs at most when the process goes with it. */
const PIECE_BYTES = 8 * 1024 * 1024;
/** How many pieces more than it takes an upload may come in: each is cut off by a request's end. */
const CUTS = 1_000;

/** Puts what comes of an upload into the store, a piece after the other, and each on record. */
class PieceReceiver {
  readonly #services: Pick<ArchiveServices, 'scratch' | 'store'>;
  readonly #database: KilolockDatabase;
  readonly #namespace: StateNamespace;
  readonly #uploadId: string;
  readonly #maxPieces: number;

  constructor(
    services: Pick<ArchiveServices, 'scratch' | 'store'>,
    { database, namespace }: OpenEnvironment,
    { id, byteLength }: UploadRecord,
  ) {
    this.#services = services;
    this.#database = database;
    this.#namespace = namespace;
    this.#uploadId = id;
    this.#maxPieces = Math.ceil(Number(byteLength) / PIECE_BYTES) + CUTS;
  }

  async receive(offset: bigint, bytes: AsyncIterable<Buffer>): Promise<bigint> {
    const arriving = new Bytes(bytes);
    let at = offset;
    for (;;) {
      await using piece = await PieceFile.create(this.#services.scratch.path());
      const end = await fill(piece, arriving);
      if (piece.length > 0) await this.#keep(piece, at);
      at += BigInt(piece.length);
      if (end === null) continue;
      if (end.error !== null) throw end.error;
      return at;
    }
  }

  async #keep(piece: PieceFile, startByte: bigint): Promise<void> {
    const { store } = this.#services;
    const objectKey = pieceKeyOf(this.#uploadId);
    // Not called off with the request: what has come is kept.
    await store.uploads.put(objectKey, piece.finish(), new AbortController().signal);
    const db = this.#database.for('record');
    const record = { startByte, byteLength: BigInt(piece.length), objectKey };
    const isKept = await addPiece(db, this.#uploadId, record, this.#maxPieces).catch(
      async (error: unknown) => {
        // The answer may have been lost. When nobody can tell, the piece stays until its upload is removed.
        if ((await findPieces(db, [objectKey])).has(objectKey)) return true;
        throw error;
      },
    );
    if (isKept) return noteUpload('staged', piece.length);
    await store.uploads.remove(objectKey);
    throw await this.#refusal(startByte);
  }

  async #refusal(startByte: bigint): Promise<UploadRefusedError> {
    const upload = await findUpload(this.#database.for('read'), this.#namespace, this.#uploadId);
    if (upload === null || upload.operationId !== null || upload.hasExpired) return uploadIsOver();
    if (upload.receivedBytes !== startByte) {
      return new UploadRefusedError(
        'moved',
        `The upload goes on at byte ${upload.receivedBytes}, not at ${startByte}: another request has sent to it.`,
      );
    }
    return new UploadRefusedError(
      'fragmented',
      `The upload came in ${this.#maxPieces} pieces already: begin another, and send more of the file in each request.`,
    );
  }
}

/** That nothing more can be done with an upload. */
export function uploadIsOver(): UploadRefusedError {
  return new UploadRefusedError('over', 'The upload is over: an import uses it, or its time is past.');
}

/** Bytes that are taken in amounts of the taker's. */
class Bytes {
  readonly #chunks: AsyncIterator<Buffer>;
  #left: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /** The next bytes, at most so many; null at the end. */
  async take(most: number): Promise<Buffer | null> {
    while (this.#left.length === 0) {
      const { done, value } = await this.#chunks.next();
      if (done) return null;
      this.#left = value;
    }
    const taken = this.#left.subarray(0, most);
    this.#left = this.#left.subarray(most);
    return taken;
  }
}

/**
 * Fills a piece.
 *
 * @returns how the bytes ended, with an error or without; null when there may be more.
 */
async function fill(piece: PieceFile, bytes: Bytes): Promise<{ readonly error: unknown } | null> {
  while (piece.length < PIECE_BYTES) {
    let taken: Buffer | null;
    try {
      taken = await bytes.take(PIECE_BYTES - piece.length);
    } catch (error) {
      return { error };
    }
    if (taken === null) return { error: null };
    await piece.write(taken);
  }
  return null;
}

/** A piece of an upload in a file of this process, which is removed when it is out of scope. */
class PieceFile implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #hash = createHash('sha256');
  #length = 0;

  private constructor(file: FileHandle, path: string) {
    this.#file = file;
    this.#path = path;
  }

  static async create(path: string): Promise<PieceFile> {
    return new PieceFile(await open(path, 'wx', 0o600), path);
  }

  get length(): number {
    return this.#length;
  }

  async write(chunk: Buffer): Promise<void> {
    await this.#file.writeFile(chunk);
    this.#hash.update(chunk);
    this.#length += chunk.length;
  }

  /** The whole piece; nothing more can be written. */
  finish(): LocalFile {
    return { path: this.#path, sha256: this.#hash.digest('hex') };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
    await rm(this.#path, { force: true });
  }
}
