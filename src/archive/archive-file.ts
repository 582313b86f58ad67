import { open } from 'node:fs/promises';
import { abortable } from '../base/abortable.ts';

const CHUNK_BYTES = 64 * 1024;

/** How {@link readArchiveFile} reads. */
export interface FileOptions {
  /**
   * For a file that is still being written: how many bytes it has so far, ascending. Nothing is read beyond that before it
   * ends, which says that the file is complete.
   */
  grown?: AsyncIterable<number> | readonly number[] | undefined;
  /** Stops the reading with its reason. */
  signal?: AbortSignal | undefined;
}

/**
 * The bytes of a file, from the first to the last. Leaving the loop closes it.
 *
 * @throws the reason of the signal, what `grown` throws, and errors of the file system.
 */
export async function* readArchiveFile(
  path: string,
  { grown = [], signal }: FileOptions = {},
): AsyncGenerator<Uint8Array, void, void> {
  await using file = await open(path);
  async function* ends() {
    yield* grown;
    // To its very end: there may be more than was told.
    yield Infinity;
  }
  let at = 0;
  for await (const end of abortable(ends(), signal)) {
    while (at < end) {
      signal?.throwIfAborted();
      const chunk = Buffer.allocUnsafe(Math.min(end - at, CHUNK_BYTES));
      const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  }
}
