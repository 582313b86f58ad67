import { Decrypter, type Identity, type ReadableStreamWithSize } from 'age-encryption';
import { ArchiveError } from './errors.ts';

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
  const watched = new WatchedSource(source);
  const decrypter = new Decrypter();
  for (const key of keys) decrypter.addIdentity(key);
  const last = new LastResort();
  decrypter.addIdentity(last);
  let opened: ReadableStreamWithSize;
  try {
    opened = await decrypter.decrypt(watched.stream);
  } catch (error) {
    await watched.close();
    if (watched.failure !== null) throw watched.failure.reason;
    throw headerFailure(watched, last, error);
  }
  let proven = 0;
  try {
    for await (const piece of opened) {
      proven += piece.length;
      yield piece;
    }
  } catch (error) {
    if (watched.failure !== null) throw watched.failure.reason;
    throw payloadFailure(watched, opened, proven, error);
  } finally {
    await watched.close();
  }
}

function headerFailure(watched: WatchedSource, last: LastResort, cause: unknown): ArchiveError {
  if (watched.isArmoured) {
    return new ArchiveError(
      'ARCHIVE_ENCRYPTED',
      'the file is armoured: age --decrypt opens it, and only that',
    );
  }
  if (last.isReached) {
    return new ArchiveError(
      'ARCHIVE_ENCRYPTED',
      'the file is encrypted for none of the keys that were given',
      {
        cause,
      },
    );
  }
  if (watched.hasEnded && watched.length < (watched.headerBytes ?? Infinity) + NONCE_BYTES) {
    return new ArchiveError(
      'ARCHIVE_TRUNCATED',
      `the file ends after ${watched.length} bytes, within the header of its encryption`,
      { cause },
    );
  }
  return new ArchiveError('ARCHIVE_CORRUPT', 'the header of the encryption is not what was written', {
    cause,
  });
}

function payloadFailure(
  watched: WatchedSource,
  opened: ReadableStreamWithSize,
  proven: number,
  cause: unknown,
): ArchiveError {
  if (watched.hasEnded && !isPossible(opened, watched.length)) {
    return new ArchiveError('ARCHIVE_TRUNCATED', `the encrypted file ends after ${watched.length} bytes`, {
      cause,
    });
  }
  // Whether a last piece was cut or changed, nobody can tell: either way its tag is wrong.
  const what = watched.hasEnded ? 'was changed, or is cut,' : 'was changed';
  return new ArchiveError(
    'ARCHIVE_CORRUPT',
    `what is encrypted ${what} within 64 KiB behind byte ${proven} of the archive`,
    { cause },
  );
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

/** The file on its way into the library, which tells nobody why it stopped reading. */
class WatchedSource {
  readonly stream: ReadableStream<Uint8Array>;
  /** How many bytes the header has; null before its end was read. */
  headerBytes: number | null = null;
  /** How many bytes were read. */
  length = 0;
  hasEnded = false;
  isArmoured = false;
  /** What the source itself failed with. */
  failure: { readonly reason: unknown } | null = null;
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();
  #header = '';

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
    // Nothing is read before it is wanted.
    this.stream = new ReadableStream({ pull: (controller) => this.#pull(controller) }, { highWaterMark: 0 });
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    // The library would gather a header without an end in memory.
    if (this.headerBytes === null && this.length > MAX_HEADER_BYTES) {
      controller.error(new Error(`the header has more than ${MAX_HEADER_BYTES} bytes`));
      return;
    }
    try {
      const piece = await this.#next();
      if (piece === null) {
        this.hasEnded = true;
        controller.close();
        return;
      }
      this.length += piece.length;
      if (this.headerBytes === null) this.#look(piece);
      controller.enqueue(piece);
    } catch (reason) {
      this.failure = { reason };
      controller.error(reason);
    }
  }

  async #next(): Promise<Uint8Array | null> {
    while (this.#rest.length === 0) {
      const next = await this.#source.next();
      if (next.done) return null;
      this.#rest = next.value;
    }
    const piece = this.#rest.subarray(0, PIECE_BYTES);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }

  /** Looks for the end of the header. */
  #look(piece: Uint8Array): void {
    this.#header += Buffer.from(piece).toString('latin1');
    this.isArmoured = this.#header.startsWith(ARMOUR);
    const last = this.#header.indexOf(LAST_LINE);
    const end = last < 0 ? last : this.#header.indexOf('\n', last + 1);
    if (end < 0) return;
    this.headerBytes = end + 1;
    this.#header = '';
  }

  /** Lets go of the source. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

/** Asked when no key has opened the file, which it does not either. */
class LastResort implements Identity {
  isReached = false;

  unwrapFileKey(): null {
    this.isReached = true;
    return null;
  }
}
