import { constants, createZstdDecompress } from 'node:zlib';
import { ByteReader } from '../base/byte-reader.ts';
import { DECODED_CHUNK_BYTES, decodeThrough } from './decode-through.ts';
import { ArchiveError } from './errors.ts';
import { type ArchiveLimits, EXPANSION_RATIO_GRACE_BYTES, MAX_ZSTD_WINDOW_LOG, MEMBER } from './format.ts';
import { GZIP_MAGIC, oneGzipMember } from './gzip.ts';
import { TAR_BLOCK, TAR_MAGIC_AT } from './tar.ts';
import { OneZstdFrame, ZSTD_MAGIC } from './zstd-frame.ts';

/** An archive file that is read from its beginning. */
export interface Container {
  /**
   * The tar inside, out of one zstd frame, out of one gzip member, or as it is: told by the first bytes, never by a name. To be read
   * once, each piece before the next is asked for. A zstd decoder holds as much memory as the frame's window is long.
   *
   * @throws ArchiveError ARCHIVE_UNSUPPORTED_FORMAT for anything else, ARCHIVE_TRUNCATED or ARCHIVE_CORRUPT for a
   *   damaged container or one with something behind it, ARCHIVE_TOO_LARGE beyond `maxArchiveBytes`,
   *   `maxTotalBytes` or `maxExpansionRatio`.
   */
  readonly tar: AsyncGenerator<Uint8Array, void, void>;
  /** See {@link OneZstdFrame.checkWindow}; nothing else has a window to check. */
  checkWindow(told: number | null): void;
}

export function openContainer(source: AsyncIterable<Uint8Array>, limits: ArchiveLimits): Container {
  const frame = new OneZstdFrame();
  return {
    tar: unpacked(new ByteReader(source), frame, limits),
    checkWindow: (told) => frame.checkWindow(told),
  };
}

async function* unpacked(
  bytes: ByteReader,
  frame: OneZstdFrame,
  limits: ArchiveLimits,
): AsyncGenerator<Uint8Array, void, void> {
  let stored = 0;
  async function* metered(): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of bytes.rest()) {
      stored += chunk.length;
      if (stored > limits.maxArchiveBytes) throw tooLarge(`has more than ${limits.maxArchiveBytes} bytes`);
      yield chunk;
    }
  }
  try {
    const head = Buffer.from(await bytes.exactly(TAR_BLOCK));
    bytes.unread(head);
    let total = 0;
    for await (const chunk of decoded(head, metered(), frame)) {
      total += chunk.length;
      if (total > limits.maxTotalBytes) throw tooLarge(`unpacks to more than ${limits.maxTotalBytes} bytes`);
      if (total > EXPANSION_RATIO_GRACE_BYTES && total > stored * limits.maxExpansionRatio) {
        throw tooLarge(`unpacks to more than ${limits.maxExpansionRatio} times its size`);
      }
      yield chunk;
    }
  } finally {
    await bytes.close();
  }
}

function decoded(
  head: Buffer,
  source: AsyncIterable<Uint8Array>,
  frame: OneZstdFrame,
): AsyncIterable<Uint8Array> {
  const text = head.toString('latin1');
  if (text.startsWith(ZSTD_MAGIC)) {
    const params = { [constants.ZSTD_d_windowLogMax]: MAX_ZSTD_WINDOW_LOG };
    const decoder = createZstdDecompress({ params, chunkSize: DECODED_CHUNK_BYTES });
    return decodeThrough(frame.passThrough(source), decoder);
  }
  if (text.startsWith(GZIP_MAGIC)) return oneGzipMember(head, source);
  if (text.startsWith('ustar', TAR_MAGIC_AT)) return source;
  throw refusal(text);
}

function tooLarge(what: string): ArchiveError {
  return new ArchiveError('ARCHIVE_TOO_LARGE', `the archive ${what}`);
}

/** U+FFFD in UTF-8. */
const REPLACEMENT = '\xef\xbf\xbd';
/** How files begin that are likely to be handed in, and what they are. */
const OTHER_FILES = {
  PK: 'zip',
  BZh: 'bzip2',
  '\xfd7z': 'xz',
  '{': 'JSON: a snapshot of one state, perhaps',
};

/** @param head the first bytes, each as the character of its number. */
function refusal(head: string): ArchiveError {
  if (isSealed(head)) return new ArchiveError('ARCHIVE_ENCRYPTED', 'the file is encrypted with age');
  if (head.length > 0 && head.length < TAR_BLOCK) {
    const starts = [ZSTD_MAGIC, GZIP_MAGIC, `${MEMBER.manifest}\0`];
    if (starts.some((start) => head.startsWith(start.slice(0, head.length)))) {
      return new ArchiveError('ARCHIVE_TRUNCATED', `the archive ends after ${head.length} bytes`);
    }
  }
  // RFC 8878, 3.1.2: sixteen magic numbers announce a frame that decoders skip.
  if ((head.charCodeAt(0) & 0xf0) === 0x50 && head.startsWith('\x2a\x4d\x18', 1)) {
    return new ArchiveError('ARCHIVE_CORRUPT', 'a skippable zstd frame stands before the archive');
  }
  // The first byte of the magic is ASCII; what is no UTF-8 behind it was replaced.
  if ([ZSTD_MAGIC, GZIP_MAGIC].some((magic) => head.startsWith(magic.charAt(0) + REPLACEMENT))) {
    return new ArchiveError('ARCHIVE_CORRUPT', 'the archive was taken for text on its way; it is binary');
  }
  const hex = Buffer.from(head.slice(0, 4), 'latin1').toString('hex');
  const [, kind] = Object.entries(OTHER_FILES).find(([start]) => head.startsWith(start)) ?? [];
  const found = head === '' ? 'an empty file' : `a file that begins with ${hex}${kind ? ` (${kind})` : ''}`;
  return new ArchiveError(
    'ARCHIVE_UNSUPPORTED_FORMAT',
    `this is ${found}; an archive is a tar in one zstd frame (gzip and a bare tar are read too)`,
  );
}

/** How a file begins that is encrypted with age, in bytes and as text. */
const STARTS = ['age-encryption.org/v1', '-----BEGIN AGE ENCRYPTED FILE-----'];

/** Whether a file that begins so, each byte as the character of its number, is one that is encrypted with age. */
export function isSealed(head: string): boolean {
  return STARTS.some((start) => head.startsWith(start));
}
