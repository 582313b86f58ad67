import { Decrypter, type ReadableStreamWithSize } from 'age-encryption';
import { ArchiveError, type ArchiveErrorCode } from './errors.ts';

/** Room for a header with a line for each of as many recipients as a file can have, post-quantum ones too. */
const MAX_HEADER_BYTES = 128 * 1024;

/** What stands behind the header: the nonce of the payload. */
const NONCE_BYTES = 16;
/** The library works at as much in one go. */
const PIECE_BYTES = 64 * 1024;
/** How the last line of a header begins. */
const LAST_LINE = '\n---';

/** How an armoured file begins. */
const ARMOUR = '-----BEGIN ';

/** Keys that files encrypted for them are opened with. Secrets. */
export interface Identities {
  /** `AGE-SECRET-KEY-1…` or `AGE-SECRET-KEY-PQ-1…`, each. */
  readonly keys: readonly string[];
}

/**
 * Reads what `age-keygen` writes: an identity a line, and comments.
 *
 * @returns null when a line is neither, or there is no identity.
 */
export function readIdentities(text: string): Identities | null {
  const keys = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  return keys.length > 0 && keys.every(isIdentity) ? { keys } : null;
}

function isIdentity(key: string): boolean {
  try {
    new Decrypter().addIdentity(key);
    return true;
  } catch {
    return false;
  }
}

/**
 * What is inside a file that is encrypted with age, piece by piece; each piece is proven to be what was encrypted, and that none is
 * missing is proven at the end.
 *
 * @param source the file, from its first byte to its last; it is closed in any case.
 * @throws ArchiveError ARCHIVE_ENCRYPTED when none of the keys opens it, or it is armoured; ARCHIVE_TRUNCATED when it ends before
 *   there is anything in it; ARCHIVE_CORRUPT when it was changed, or cut, and where. An error of the source comes out unchanged.
 */
export async function* unseal(
  source: AsyncIterable<Uint8Array>,
  { keys }: Identities,
): AsyncGenerator<Uint8Array, void, void> {
  const read: Progress = { length: 0, head: Buffer.alloc(0), hasEnded: false, failure: null };
  const file = watched(source, read);
  const decrypter = new Decrypter();
  for (const key of keys) decrypter.addIdentity(key);
  let isOpenedByNone = false;
  decrypter.addIdentity({
    // Asked when no key has opened the file.
    unwrapFileKey() {
      isOpenedByNone = true;
      return null;
    },
  });
  let opened: ReadableStreamWithSize | null = null;
  let proven = 0;
  try {
    opened = await decrypter.decrypt(ReadableStream.from(file));
    for await (const piece of opened) {
      proven += piece.length;
      yield piece;
    }
  } catch (cause) {
    if (read.failure !== null) throw read.failure.reason;
    const [code, message] =
      opened === null ? headerFault(read, isOpenedByNone) : payloadFault(read, opened, proven);
    throw new ArchiveError(code, message, null, { cause });
  } finally {
    await file.return();
  }
}

/** How far the library has read, which tells nobody why it stopped. */
interface Progress {
  length: number;
  /** Its first bytes, to the end of the header at least. */
  head: Buffer;
  hasEnded: boolean;
  /** What the source itself failed with. */
  failure: { readonly reason: unknown } | null;
}

/** The bytes of the source, in pieces, of which `read` says how many were taken. */
async function* watched(
  source: AsyncIterable<Uint8Array>,
  read: Progress,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    for await (const chunk of source) {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        const piece = chunk.subarray(at, at + PIECE_BYTES);
        if (headerLength(read.head) === null) {
          // The library would gather a header without an end in memory.
          if (read.length > MAX_HEADER_BYTES) return;
          read.head = Buffer.concat([read.head, piece]);
        }
        read.length += piece.length;
        yield piece;
      }
    }
    read.hasEnded = true;
  } catch (reason) {
    read.failure = { reason };
    throw reason;
  }
}

/** Null before its end was read. */
function headerLength(head: Buffer): number | null {
  const lastLine = head.indexOf(LAST_LINE);
  const end = lastLine === -1 ? -1 : head.indexOf('\n', lastLine + 1);
  return end === -1 ? null : end + 1;
}

type Fault = readonly [code: ArchiveErrorCode, message: string];

function headerFault({ length, head, hasEnded }: Progress, isOpenedByNone: boolean): Fault {
  if (head.toString('latin1').startsWith(ARMOUR))
    return ['ARCHIVE_ENCRYPTED', 'the file is armoured: age --decrypt opens it, and only that'];
  if (isOpenedByNone) {
    return ['ARCHIVE_ENCRYPTED', 'the file is encrypted for none of the keys that were given'];
  }
  if (hasEnded && length < (headerLength(head) ?? Infinity) + NONCE_BYTES) {
    return ['ARCHIVE_TRUNCATED', `the file ends after ${length} bytes, within the header of its encryption`];
  }
  return ['ARCHIVE_CORRUPT', 'the header of the encryption is not what was written'];
}

function payloadFault({ length, hasEnded }: Progress, opened: ReadableStreamWithSize, proven: number): Fault {
  if (hasEnded && !isPossible(opened, length)) {
    return ['ARCHIVE_TRUNCATED', `the encrypted file ends after ${length} bytes`];
  }
  // Whether a last piece was cut or changed, nobody can tell: either way its tag is wrong.
  const what = hasEnded ? 'was changed, or is cut,' : 'was changed';
  return ['ARCHIVE_CORRUPT', `what is encrypted ${what} within 64 KiB behind byte ${proven} of the archive`];
}

/** Whether an encrypted file can have this length. */
function isPossible(opened: ReadableStreamWithSize, length: number): boolean {
  try {
    opened.size(length);
    return true;
  } catch {
    return false;
  }
}
