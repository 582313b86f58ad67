import { types } from 'node:util';
import { crc32, createInflateRaw } from 'node:zlib';
import { ByteReader } from '../base/byte-reader.ts';
import { DECODED_CHUNK_BYTES, decodeThrough } from './decode-through.ts';
import { ArchiveError } from './errors.ts';

/** First three bytes of a gzip member (RFC 1952): magic, and deflate as the method. */
export const GZIP_MAGIC: Uint8Array = Uint8Array.of(0x1f, 0x8b, 8);

const HEADER_BYTES = 10;
const TRAILER_BYTES = 8;
const MAX_NAME_BYTES = 4096;

// Flags of RFC 1952, 2.3.1. FTEXT (1) says nothing that matters here.
const HAS_EXTRA = 4;
const HAS_NAME = 8;
const HAS_COMMENT = 16;
const UNDERSTOOD = 1 | HAS_NAME;

/**
 * The content of one gzip member, with nothing behind it. Node's own gunzip goes on with a second member and
 * ignores other surplus bytes; so the raw deflate data is inflated, and header and trailer are read here.
 *
 * @throws ArchiveError ARCHIVE_TRUNCATED, ARCHIVE_CORRUPT, or ARCHIVE_UNSUPPORTED_FORMAT for header fields that
 *   `gzip` itself does not write.
 */
export async function* oneGzipMember(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  const bytes = new ByteReader(source);
  try {
    await skipHeader(bytes);
    const body = new GzipBody(bytes);
    const inflate = createInflateRaw({ chunkSize: DECODED_CHUNK_BYTES });
    let crc = 0;
    let length = 0;
    try {
      for await (const chunk of decodeThrough(body.deflated(), inflate)) {
        crc = crc32(chunk, crc);
        length += chunk.length;
        yield chunk;
      }
    } catch (error) {
      throw endsEarly(error) ? truncated() : error;
    }
    // The inflater stops by itself at the end of the deflate data, read to the end or not.
    if (!body.isRead || inflate.bytesWritten !== body.length) {
      throw new ArchiveError('ARCHIVE_CORRUPT', 'there is data after the end of the gzip member');
    }
    const trailer = Buffer.from(body.trailer);
    if (trailer.readUInt32LE(0) !== crc || trailer.readUInt32LE(4) !== length % 2 ** 32) {
      throw new ArchiveError('ARCHIVE_CORRUPT', 'the checksum of the gzip member is wrong');
    }
  } finally {
    await bytes.close();
  }
}

async function skipHeader(bytes: ByteReader): Promise<void> {
  const header = await bytes.exactly(HEADER_BYTES);
  if (header.length < HEADER_BYTES) throw truncated();
  const flags = header[3] ?? 0;
  if ((flags & ~UNDERSTOOD) !== 0) {
    const what = (flags & (HAS_EXTRA | HAS_COMMENT)) !== 0 ? 'extra fields' : 'unknown flags';
    throw new ArchiveError(
      'ARCHIVE_UNSUPPORTED_FORMAT',
      `the gzip header has ${what}; repack it with gzip -n`,
    );
  }
  if ((flags & HAS_NAME) === 0) return;
  for (let length = 0; length < MAX_NAME_BYTES; length++) {
    const [byte] = await bytes.exactly(1);
    if (byte === undefined) throw truncated();
    if (byte === 0) return;
  }
  throw new ArchiveError('ARCHIVE_UNSUPPORTED_FORMAT', 'the gzip header has an endless file name');
}

/** What follows the header: everything but the last eight bytes is for the inflater. */
class GzipBody {
  /** Bytes handed to the inflater. */
  length = 0;
  /** Whether the source has been read to its end. */
  isRead = false;
  trailer: Uint8Array = new Uint8Array(0);
  readonly #bytes: ByteReader;

  constructor(bytes: ByteReader) {
    this.#bytes = bytes;
  }

  async *deflated(): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of this.#bytes.rest()) {
      const all = Buffer.concat([this.trailer, chunk]);
      const cut = Math.max(0, all.length - TRAILER_BYTES);
      this.trailer = all.subarray(cut);
      this.length += cut;
      if (cut > 0) yield all.subarray(0, cut);
    }
    if (this.trailer.length < TRAILER_BYTES) throw truncated();
    this.isRead = true;
  }
}

function truncated(): ArchiveError {
  return new ArchiveError('ARCHIVE_TRUNCATED', 'the archive ends inside its gzip member');
}

/** The inflater came to the end of its input before the end of its data. */
function endsEarly(error: unknown): boolean {
  const cause = error instanceof ArchiveError ? error.cause : undefined;
  return types.isNativeError(cause) && 'code' in cause && cause.code === 'Z_BUF_ERROR';
}
