import type { ByteReader } from '../base/byte-reader.ts';
import { ArchiveError, quoted } from './errors.ts';

/** POSIX ustar: everything comes in blocks of 512 bytes. */
export const TAR_BLOCK = 512;

/** What ends a tar: two blocks of zeros. */
export const TAR_END: Uint8Array = new Uint8Array(2 * TAR_BLOCK);

/** Largest file a plain ustar header can announce: eleven octal digits. */
const MAX_USTAR_SIZE = 8 ** 11 - 1;

// Offsets and lengths of the fields of a ustar header (POSIX.1-1988 and later).
const NAME = { at: 0, length: 100 };
const MODE_AT = 100;
const SIZE = { at: 124, length: 12 };
const TIME_AT = 136;
const CHECKSUM = { at: 148, length: 8 };
const TYPE_AT = 156;
const LINK_NAME = { at: 157, length: 100 };
/** Where a header says `ustar`. */
export const TAR_MAGIC_AT = 257;
/** The prefix of the name, and what is left of the block behind it; GNU's other fields stand there too. */
const PREFIX_AND_REST_AT = 345;

/** To compare with: as many as are read at once behind the end of a tar. */
const ZEROS = new Uint8Array(64 * 1024);

const REGULAR_FILE = '0';
/** What the bytes after the magic are called in a message. */
const TYPE_NAMES: Readonly<Record<string, string>> = {
  '1': 'a hard link',
  '2': 'a symbolic link',
  '3': 'a character device',
  '4': 'a block device',
  '5': 'a directory',
  '6': 'a FIFO',
  '7': 'a contiguous file',
  g: 'a global pax header',
  x: 'a pax header',
  K: 'a GNU long link name',
  L: 'a GNU long name',
  S: 'a GNU sparse file',
};

/** What every header has, whatever its member: mode 0600, time 0, user and group 0 without names. */
const EMPTY_HEADER = Buffer.alloc(TAR_BLOCK);
EMPTY_HEADER.write(`0000600\0${'0000000\0'.repeat(2)}`, MODE_AT, 'latin1');
EMPTY_HEADER.write('00000000000\0', TIME_AT, 'latin1');
EMPTY_HEADER.write(REGULAR_FILE, TYPE_AT, 'latin1');
EMPTY_HEADER.write('ustar\x0000', TAR_MAGIC_AT, 'latin1');

/**
 * The header of a regular file: mode 0600, time 0, no owner. Always the same bytes for the same name and size.
 *
 * @throws ArchiveError ARCHIVE_TOO_LARGE when the size does not fit a ustar header (8 GiB and more).
 */
export function tarHeader(name: string, size: number): Uint8Array {
  if (size > MAX_USTAR_SIZE) {
    throw new ArchiveError(
      'ARCHIVE_TOO_LARGE',
      `${name} has ${size} bytes; a tar member ends at 8 GiB`,
      name,
    );
  }
  const header = Buffer.from(EMPTY_HEADER);
  header.write(name, NAME.at, NAME.length, 'latin1');
  header.write(size.toString(8).padStart(11, '0'), SIZE.at, 'latin1');
  header.write(`${checksum(header).toString(8).padStart(6, '0')}\0 `, CHECKSUM.at, 'latin1');
  return header;
}

/** The zeros that fill a member of this size up to a whole block. */
export function tarPadding(size: number): Uint8Array {
  return ZEROS.subarray(0, paddingLength(size));
}

function paddingLength(size: number): number {
  return (TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK;
}

/** A member as its header announces it. */
export interface TarEntry {
  readonly name: string;
  readonly size: number;
  /**
   * Its next bytes, which are there until more is asked for; null when it is complete.
   *
   * @throws ArchiveError ARCHIVE_TRUNCATED, or ARCHIVE_CORRUPT when the padding behind it is not zero.
   */
  read(): Promise<Uint8Array | null>;
}

/**
 * The members of a tar of plain regular files and nothing else, refusing what common readers apply in silence: pax and
 * GNU headers that override a name or a size, links, non-zero bytes after the end. What of a member is not read when the next is
 * asked for is skipped.
 *
 * @throws ArchiveError ARCHIVE_TRUNCATED, ARCHIVE_CORRUPT or ARCHIVE_UNSAFE.
 */
export async function* tarEntries(bytes: ByteReader): AsyncGenerator<TarEntry, void, void> {
  for (;;) {
    const block = await readBlock(bytes, 'the next member');
    if (isZero(block)) return await readEnd(bytes);
    const { name, size } = parseHeader(block);
    let missing = size;
    let isComplete = false;
    const read = async () => {
      if (isComplete) return null;
      if (missing === 0) {
        isComplete = true;
        await readPadding(bytes, name, size);
        return null;
      }
      const piece = await bytes.some(missing);
      if (piece === null) throw truncated(`${missing} bytes before the end of ${name}`, name);
      missing -= piece.length;
      return piece;
    };
    yield { name, size, read };
    while ((await read()) !== null);
  }
}

async function readBlock(bytes: ByteReader, what: string): Promise<Uint8Array> {
  const block = await bytes.exactly(TAR_BLOCK);
  if (block.length < TAR_BLOCK) throw truncated(`before ${what}`);
  return block;
}

async function readPadding(bytes: ByteReader, name: string, size: number): Promise<void> {
  const length = paddingLength(size);
  const padding = await bytes.exactly(length);
  if (padding.length < length) throw truncated(`behind ${name}`, name);
  if (!isZero(padding)) {
    throw new ArchiveError('ARCHIVE_CORRUPT', `the padding behind ${name} is not zero`, name);
  }
}

/** Tools pad a tar with more zero blocks than the two it needs; they are drained so that nothing hides there. */
async function readEnd(bytes: ByteReader): Promise<void> {
  const afterEnd = () => new ArchiveError('ARCHIVE_CORRUPT', 'there is data after the end of the tar');
  if (!isZero(await readBlock(bytes, 'the end of the tar'))) throw afterEnd();
  let length = 0;
  for (let piece = await bytes.some(ZEROS.length); piece !== null; piece = await bytes.some(ZEROS.length)) {
    if (!isZero(piece)) throw afterEnd();
    length += piece.length;
  }
  if (length % TAR_BLOCK !== 0) throw afterEnd();
}

function parseHeader(block: Uint8Array) {
  const header = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  if (octal(header, CHECKSUM) !== checksum(header)) {
    throw new ArchiveError('ARCHIVE_CORRUPT', 'the checksum of a tar header is wrong');
  }
  const name = text(header, NAME);
  if (name === null || !/^[\x21-\x7e]+$/.test(name)) {
    throw new ArchiveError('ARCHIVE_UNSAFE', 'a member has a name that is not plain ASCII text');
  }
  const unsafe = (what: string) =>
    new ArchiveError(
      'ARCHIVE_UNSAFE',
      `member ${quoted(name)} ${what}; an archive holds plain files only`,
      name,
    );
  const magic = header.toString('latin1', TAR_MAGIC_AT, TAR_MAGIC_AT + 8);
  if (magic !== 'ustar\x0000' && magic !== 'ustar  \0') throw unsafe('does not have a ustar header');
  const type = String.fromCharCode(header.readUInt8(TYPE_AT));
  if (type !== REGULAR_FILE && type !== '\0') throw unsafe(`is ${TYPE_NAMES[type] ?? 'of an unknown type'}`);
  if (text(header, LINK_NAME) !== '') throw unsafe('has the target of a link');
  if (!isZero(header.subarray(PREFIX_AND_REST_AT)))
    throw unsafe('has a header with something behind its fields');
  const size = octal(header, SIZE);
  if (size === null) throw unsafe('has a size that is not a plain octal number');
  return { name, size };
}

/** The text of a field up to its first NUL, or null when anything but NULs follows that. */
function text(header: Buffer, field: { at: number; length: number }): string | null {
  const bytes = header.subarray(field.at, field.at + field.length);
  const end = bytes.indexOf(0);
  if (end === -1) return bytes.toString('latin1');
  return isZero(bytes.subarray(end)) ? bytes.toString('latin1', 0, end) : null;
}

/** The number in a field, or null when it is not written in octal digits between spaces and NULs. */
function octal(header: Buffer, field: { at: number; length: number }): number | null {
  const digits = /^ *([0-7]+)[ \0]*$/.exec(header.toString('latin1', field.at, field.at + field.length))?.[1];
  return digits === undefined ? null : Number.parseInt(digits, 8);
}

/** Sum of the header's bytes, its own field counted as spaces (POSIX ustar). */
function checksum(header: Buffer): number {
  let sum = CHECKSUM.length * 0x20;
  for (const byte of header) sum += byte;
  for (const byte of header.subarray(CHECKSUM.at, CHECKSUM.at + CHECKSUM.length)) sum -= byte;
  return sum;
}

/** Whether bytes, at most as many as {@link ZEROS} has, are all zero. */
function isZero(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes, ZEROS.subarray(0, bytes.length)) === 0;
}

function truncated(where: string, member: string | null = null): ArchiveError {
  return new ArchiveError('ARCHIVE_TRUNCATED', `the archive ends ${where}`, member);
}
