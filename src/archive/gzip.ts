import { types } from 'node:util';
import { crc32, createInflateRaw } from 'node:zlib';
import { DECODED_CHUNK_BYTES, decodeThrough } from './decode-through.ts';
import { ArchiveError } from './errors.ts';
import { TAR_BLOCK } from './tar.ts';

/** First three bytes of a gzip member (RFC 1952), each as the character of its number: magic, and deflate as the method. */
export const GZIP_MAGIC = '\x1f\x8b\x08';

const HEADER_BYTES = 10;
const TRAILER_BYTES = 8;

// Flags of RFC 1952, 2.3.1. FTEXT (1) says nothing that matters here.
const HAS_EXTRA = 4;
const HAS_NAME = 8;
const HAS_COMMENT = 16;
const UNDERSTOOD = 1 | HAS_NAME;

/**
 * The content of one gzip member, with nothing behind it. Node's own gunzip goes on with a second member and
 * ignores other surplus bytes; so the raw deflate data is inflated, and header and trailer are read here.
 *
 * @param head how the source begins: its first {@link TAR_BLOCK} bytes, or all of them. The header ends within.
 * @throws ArchiveError ARCHIVE_TRUNCATED, ARCHIVE_CORRUPT, or ARCHIVE_UNSUPPORTED_FORMAT for header fields that
 *   `gzip` itself does not write.
 */
export async function* oneGzipMember(
  head: Uint8Array,
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  let headerLeft = headerLength(head);
  /** The last bytes so far: what the inflater does not get. */
  let trailer = Buffer.alloc(0);
  let deflatedLength = 0;
  let isRead = false;
  async function* deflated(): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of source) {
      const body = chunk.subarray(headerLeft);
      headerLeft -= chunk.length - body.length;
      const all = Buffer.concat([trailer, body]);
      trailer = all.subarray(-TRAILER_BYTES);
      const data = all.subarray(0, all.length - trailer.length);
      deflatedLength += data.length;
      if (data.length > 0) yield data;
    }
    if (trailer.length < TRAILER_BYTES) throw truncated();
    isRead = true;
  }
  const inflate = createInflateRaw({ chunkSize: DECODED_CHUNK_BYTES });
  let crc = 0;
  let length = 0;
  try {
    for await (const chunk of decodeThrough(deflated(), inflate)) {
      crc = crc32(chunk, crc);
      length += chunk.length;
      yield chunk;
    }
  } catch (error) {
    throw endsEarly(error) ? truncated() : error;
  }
  // The inflater stops by itself at the end of the deflate data, read to the end or not.
  if (!isRead || inflate.bytesWritten !== deflatedLength) {
    throw new ArchiveError('ARCHIVE_CORRUPT', 'there is data after the end of the gzip member');
  }
  if (trailer.readUInt32LE(0) !== crc || trailer.readUInt32LE(4) !== length % 2 ** 32) {
    throw new ArchiveError('ARCHIVE_CORRUPT', 'the checksum of the gzip member is wrong');
  }
}

function headerLength(head: Uint8Array): number {
  const flags = head[3] ?? 0;
  if ((flags & ~UNDERSTOOD) !== 0) {
    const what = (flags & (HAS_EXTRA | HAS_COMMENT)) !== 0 ? 'extra fields' : 'unknown flags';
    throw new ArchiveError(
      'ARCHIVE_UNSUPPORTED_FORMAT',
      `the gzip header has ${what}; repack it with gzip -n`,
    );
  }
  const nameEnd = (flags & HAS_NAME) === 0 ? HEADER_BYTES - 1 : head.indexOf(0, HEADER_BYTES);
  if (nameEnd !== -1 && nameEnd < head.length) return nameEnd + 1;
  if (head.length < TAR_BLOCK) throw truncated();
  throw new ArchiveError('ARCHIVE_UNSUPPORTED_FORMAT', 'the gzip header has an endless file name');
}

function truncated(): ArchiveError {
  return new ArchiveError('ARCHIVE_TRUNCATED', 'the archive ends inside its gzip member');
}

/** The inflater came to the end of its input before the end of its data. */
function endsEarly(error: unknown): boolean {
  const cause = error instanceof ArchiveError ? error.cause : undefined;
  return types.isNativeError(cause) && 'code' in cause && cause.code === 'Z_BUF_ERROR';
}
