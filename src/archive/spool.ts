import { open } from 'node:fs/promises';

const PIECE_BYTES = 64 * 1024;

/** Lines put aside in a file, because a tar header gives the size of a member before its bytes. */
export interface Spool {
  lines: number;
  byteLength: number;
  /** The bytes, each piece of them until the next is asked for. */
  read(): AsyncIterable<Uint8Array>;
}

/**
 * Writes a line for each item to a new file (mode 0600) at `path`; the caller removes it.
 *
 * @param encode gives the line, its newline included.
 */
export async function spoolLines<T>(
  items: AsyncIterable<T>,
  encode: (item: T) => string,
  path: string,
): Promise<Spool> {
  await using file = await open(path, 'wx', 0o600);
  const encoder = new TextEncoder();
  // Encoded at once, and into the same memory: what is gathered as text or in fresh buffers outlives the nursery, and piles up.
  const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
  let used = 0;
  let count = 0;
  let byteLength = 0;
  const flush = async () => {
    if (used === 0) return;
    await file.writeFile(piece.subarray(0, used));
    byteLength += used;
    used = 0;
  };
  for await (const item of items) {
    count += 1;
    for (let rest = encode(item); rest !== ''; ) {
      const { read, written } = encoder.encodeInto(rest, piece.subarray(used));
      used += written;
      rest = rest.slice(read);
      if (rest !== '') await flush();
    }
  }
  await flush();
  return { lines: count, byteLength, read: () => readAgain(path, byteLength) };
}

async function* readAgain(path: string, byteLength: number): AsyncGenerator<Uint8Array, void, void> {
  await using file = await open(path);
  const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
  for (let left = byteLength; left > 0; ) {
    const { bytesRead } = await file.read(piece, 0, Math.min(left, piece.length));
    if (bytesRead === 0) return;
    left -= bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}
