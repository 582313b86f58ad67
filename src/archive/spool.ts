import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

const CHUNK_CHARACTERS = 64 * 1024;

/** Lines put aside in a file, because a tar header gives the size of a member before its bytes. */
export interface Spool {
  lines: number;
  byteLength: number;
  read(): AsyncIterable<Uint8Array>;
}

/**
 * Writes lines to a new file (mode 0600) at `path`; the caller removes it.
 *
 * @param lines Each with its newline.
 */
export async function spoolLines(lines: AsyncIterable<string>, path: string): Promise<Spool> {
  let count = 0;
  let byteLength = 0;
  async function* chunks(): AsyncGenerator<string, void, void> {
    let pending = '';
    for await (const line of lines) {
      count += 1;
      byteLength += Buffer.byteLength(line);
      pending += line;
      if (pending.length < CHUNK_CHARACTERS) continue;
      yield pending;
      pending = '';
    }
    if (pending !== '') yield pending;
  }
  await pipeline(chunks, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
  return { lines: count, byteLength, read: () => createReadStream(path) };
}
