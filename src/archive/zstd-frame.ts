import { ArchiveError } from './errors.ts';
import { MAX_ZSTD_WINDOW_LOG, MIN_ZSTD_WINDOW_LOG } from './format.ts';

/** First four bytes of a zstd frame (RFC 8878, 3.1.1), each as the character of its number. */
export const ZSTD_MAGIC = '\x28\xb5\x2f\xfd';

const MAX_BLOCK_BYTES = 128 * 1024;
const CHECKSUM_BYTES = 4;
const RLE_BLOCK = 1;
const RESERVED_BLOCK = 3;

/**
 * Windows of archives whose manifest does not tell theirs, as base-2 logarithms: 2^27, and what `zstd` declares at its levels
 * 1 to 19, so that a repacked archive opens. None is one bit beside 2^27: a damaged byte is noticed, although the content
 * would not suffer.
 */
const UNTOLD_WINDOW_LOGS: ReadonlySet<number> = new Set([19, 20, 21, 22, 23, 27]);

/**
 * Passes one zstd frame through and refuses everything that is not exactly that. A decoder goes on with a
 * second frame, skips skippable ones and may ignore what follows; here the frame's own block lengths say where
 * it ends (RFC 8878, 3.1.1), so that a cut and a surplus are both certain.
 */
export class OneZstdFrame {
  /** The byte that declares the window; null before it has passed by, and in a frame that declares its size instead. */
  #windowByte: number | null = null;

  /**
   * The bytes of the frame, as they come.
   *
   * @throws ArchiveError ARCHIVE_TRUNCATED, ARCHIVE_CORRUPT, ARCHIVE_TOO_LARGE (a window above 128 MiB) or
   *   ARCHIVE_UNSUPPORTED_FORMAT (a dictionary).
   */
  async *passThrough(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    const walk = this.#walk();
    let wanted = walk.next(0).value;
    for await (const chunk of source) {
      let at = 0;
      while (wanted !== undefined && at + wanted <= chunk.length) {
        at += wanted;
        wanted = walk.next(chunk[at - 1] ?? 0).value;
      }
      if (wanted !== undefined) wanted -= chunk.length - at;
      else if (at < chunk.length) {
        throw new ArchiveError('ARCHIVE_CORRUPT', 'there is data after the end of the zstd frame');
      }
      yield chunk;
    }
    if (wanted !== undefined) {
      throw new ArchiveError('ARCHIVE_TRUNCATED', 'the archive ends inside its zstd frame');
    }
  }

  /**
   * Holds the declared window against the one that the manifest tells: another is that of who packed the archive again, but
   * one bit beside it is a damaged byte, which the content need not show.
   *
   * @param told Base-2 logarithm of the window that the archive was written with; null where its manifest does not tell.
   * @throws ArchiveError ARCHIVE_CORRUPT or ARCHIVE_UNSUPPORTED_FORMAT.
   */
  checkWindow(told: number | null): void {
    const declared = this.#windowByte;
    if (declared === null) return;
    if (told !== null) {
      const differing = declared ^ ((told - MIN_ZSTD_WINDOW_LOG) << 3);
      const isOneBit = differing !== 0 && (differing & (differing - 1)) === 0;
      if (!isOneBit) return;
      throw new ArchiveError(
        'ARCHIVE_CORRUPT',
        `the zstd frame declares a window of ${windowBytes(declared)} bytes, one bit beside the ${2 ** told} it was written with: fetch the archive again, or, where it was packed again, pack it with zstd --long=${told}`,
      );
    }
    if (!UNTOLD_WINDOW_LOGS.has(Math.log2(windowBytes(declared)))) {
      throw new ArchiveError(
        'ARCHIVE_UNSUPPORTED_FORMAT',
        'the zstd frame declares a window that no archive has; repack it with zstd --long=27',
      );
    }
  }

  /** Walks the frame: says how many bytes to go on by, one or more, and is told the last of them. */
  *#walk(): Generator<number, undefined, number> {
    const descriptor = yield ZSTD_MAGIC.length + 1;
    if ((descriptor & 0b11000) !== 0) {
      throw new ArchiveError('ARCHIVE_CORRUPT', 'the zstd frame header uses bits that have no meaning');
    }
    if ((descriptor & 0b11) !== 0) {
      throw new ArchiveError(
        'ARCHIVE_UNSUPPORTED_FORMAT',
        'the zstd frame needs a dictionary; archives have none',
      );
    }
    const isSingleSegment = (descriptor & 0b100000) !== 0;
    if (!isSingleSegment) {
      const windowByte = yield 1;
      if (windowBytes(windowByte) > 2 ** MAX_ZSTD_WINDOW_LOG) {
        throw new ArchiveError(
          'ARCHIVE_TOO_LARGE',
          'the zstd frame asks for a window above 128 MiB; repack it with zstd --long=27',
        );
      }
      this.#windowByte = windowByte;
    }
    const sizeFlag = descriptor >> 6;
    const contentSizeBytes = sizeFlag === 0 ? Number(isSingleSegment) : 2 ** sizeFlag;
    if (contentSizeBytes > 0) yield contentSizeBytes;
    let last = false;
    while (!last) {
      const bits = (yield 1) | ((yield 1) << 8) | ((yield 1) << 16);
      const type = (bits >> 1) & 3;
      const size = bits >> 3;
      if (type === RESERVED_BLOCK || size > MAX_BLOCK_BYTES) {
        throw new ArchiveError('ARCHIVE_CORRUPT', 'a block of the zstd frame has an impossible header');
      }
      last = (bits & 1) === 1;
      const stored = type === RLE_BLOCK ? 1 : size;
      if (stored > 0) yield stored;
    }
    const hasChecksum = (descriptor & 0b100) !== 0;
    if (hasChecksum) yield CHECKSUM_BYTES;
  }
}

/** The window that a byte declares (RFC 8878, 3.1.1.1.2): an exponent, and eighths of its power. */
function windowBytes(byte: number): number {
  return 2 ** (MIN_ZSTD_WINDOW_LOG + (byte >> 3)) * (1 + (byte & 7) / 8);
}
