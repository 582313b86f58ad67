import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { ZSTD_WINDOW_LOG } from './format.ts';

const CHUNK_BYTES = 256 * 1024;

const ZSTD_OPTIONS = {
  params: {
    [constants.ZSTD_c_compressionLevel]: 3,
    // Successive versions are nearly equal, and a long window reaches back to the one before.
    [constants.ZSTD_c_enableLongDistanceMatching]: 1,
    [constants.ZSTD_c_windowLog]: ZSTD_WINDOW_LOG,
    [constants.ZSTD_c_checksumFlag]: 1,
  },
  chunkSize: CHUNK_BYTES,
  // The stream is to be idle when it is ended: ended with its last chunk still waiting it would close the frame
  // in one block less, now and then, and equal contents would make different files.
  writableHighWaterMark: 1,
};

/**
 * Compresses a stream into one zstd frame in a new file (mode 0600) and flushes that to the disk. Equal bytes
 * make equal files, however they are cut into chunks.
 *
 * @returns digest (lower-case hex) and size of the file.
 * @throws what the source or the file system throws; the unfinished file is left to the caller.
 */
export async function compressToFile(
  source: AsyncIterable<Uint8Array>,
  path: string,
): Promise<{ sha256: string; sizeBytes: bigint }> {
  const hash = createHash('sha256');
  let sizeBytes = 0n;
  async function* digested(compressed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of compressed) {
      hash.update(chunk);
      sizeBytes += BigInt(chunk.length);
      yield chunk;
    }
  }
  await pipeline(
    readAhead(inChunks(source)),
    createZstdCompress(ZSTD_OPTIONS),
    digested,
    createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true }),
  );
  return { sha256: hash.digest('hex'), sizeBytes };
}

/**
 * Joins small pieces (a header, padding) with their neighbours: each chunk is a trip to the thread pool. Two
 * buffers take turns, since fresh ones would pile up faster than they are collected: a chunk holds until the
 * next but one is asked for.
 */
async function* inChunks(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  let buffer = new Uint8Array(CHUNK_BYTES);
  let other = new Uint8Array(CHUNK_BYTES);
  let length = 0;
  for await (const piece of source) {
    for (let at = 0; at < piece.length; ) {
      const taken = piece.subarray(at, at + CHUNK_BYTES - length);
      buffer.set(taken, length);
      at += taken.length;
      length += taken.length;
      if (length < CHUNK_BYTES) continue;
      yield buffer;
      [buffer, other] = [other, buffer];
      length = 0;
    }
  }
  if (length > 0) yield buffer.subarray(0, length);
}

/** Has the next chunk made while the one before is being compressed on another thread. */
async function* readAhead(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  const iterator = source[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      const current = await next;
      if (current.done) return;
      next = iterator.next();
      // It is awaited in the next round, if there is one.
      next.catch(() => {});
      yield current.value;
    }
  } finally {
    await iterator.return?.();
  }
}
