import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { rowPathsOf } from '../restore/restore-request.ts';
import type { LocalFile } from '../store/object-store.ts';
import type { ArchiveServices } from './services.ts';
import { RequestRefusedError } from './user-error.ts';

/** A file that a caller sent, in the store: whichever machine works on it can fetch it. */
export interface StoredUpload {
  /** Its key among the uploads of the store. */
  readonly key: string;
  /** Lowercase hex. */
  readonly sha256: string;
  readonly fileName: string;
}

/** Puts a file that was received whole into the store. The local one stays the caller's to remove. */
export async function storeUpload(
  { store }: Pick<ArchiveServices, 'store'>,
  file: LocalFile & { readonly fileName: string },
  signal: AbortSignal,
): Promise<StoredUpload> {
  const key = randomUUID();
  await store.uploads.put(key, file, signal);
  return { key, sha256: file.sha256, fileName: file.fileName };
}

/**
 * Has work done on a local copy of an upload: an inspection reads in it to and fro, and may read it twice. The copy, and the
 * rows that a restore puts aside beside it, are gone afterwards.
 *
 * @throws RequestRefusedError ARCHIVE_DIGEST_MISMATCH when it is not the file that was announced; nothing has looked into it
 *   then.
 */
export async function withLocalUpload<Result>(
  { store, scratch }: Pick<ArchiveServices, 'store' | 'scratch'>,
  { key, sha256 }: StoredUpload,
  signal: AbortSignal,
  work: (path: string) => Promise<Result>,
): Promise<Result> {
  const path = scratch.path();
  try {
    const received = await saveLocally(await store.uploads.read(key), path, signal);
    if (received !== sha256) {
      throw new RequestRefusedError(
        'ARCHIVE_DIGEST_MISMATCH',
        `The file received has the SHA-256 ${received}, not the ${sha256} it was announced with. Nothing was written; send it again.`,
      );
    }
    return await work(path);
  } finally {
    for (const each of [path, ...Object.values(rowPathsOf({ archivePath: path }))]) {
      await rm(each, { force: true });
    }
  }
}

/** Writes bytes into a new file, for its owner alone, and tells their SHA-256 in lowercase hex. */
async function saveLocally(bytes: Readable, path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  const digest = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  };
  await pipeline(bytes, digest, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal });
  return hash.digest('hex');
}

/** Longer than an operation waits for its turn. */
const ABANDONED_AGE_MS = 24 * 3_600_000;

/** Removes the uploads that a process which died left in the store. */
export async function removeAbandonedUploads({ store }: Pick<ArchiveServices, 'store'>): Promise<void> {
  for await (const { key, ageMs } of store.uploads.list()) {
    if (ageMs >= ABANDONED_AGE_MS) await store.uploads.remove(key);
  }
}
