import { open, readFile, stat } from 'node:fs/promises';
import { readArchiveFile } from '../archive/archive-file.ts';
import { isSealed } from '../archive/container.ts';
import { ArchiveError, type ArchiveErrorCode } from '../archive/errors.ts';
import {
  type ArchiveMember,
  type ArchiveMembers,
  readArchive,
  type VerifiedArchive,
} from '../archive/reader.ts';
import type { SignatureTrust } from '../archive/signing-keys.ts';
import type { Identities } from '../archive/unseal.ts';
import { Digested } from '../base/digested.ts';
import type { Context } from './context.ts';
import { failure, KlError } from './endings.ts';
import { isSystemError, sizeOf, unreadable } from './files.ts';
import type { Work } from './progress.ts';

/** What to do about an archive that is not sound, by code. */
export const ARCHIVE_ADVICE: Readonly<Record<ArchiveErrorCode, string>> = {
  ARCHIVE_TRUNCATED: 'Fetch the file again, or export the state again.',
  ARCHIVE_CORRUPT: 'Fetch the file again, or export the state again.',
  ARCHIVE_UNSUPPORTED_FORMAT: 'Give a .klstate file; another format needs another release.',
  ARCHIVE_UNSAFE: 'Find out where the file comes from: no archive holds this.',
  ARCHIVE_TOO_LARGE: 'Find out where the file comes from: no history of a state is as large.',
  ARCHIVE_INCONSISTENT: 'Export the state again where it comes from.',
  ARCHIVE_REDACTED: 'Import the archive that it was made from.',
  ARCHIVE_ENCRYPTED: 'Give a key that opens it: --identity FILE, or KL_AGE_IDENTITY.',
  SIGNATURE_INVALID:
    'Fetch the file again from where it was exported. If it stays so, find out who changed it.',
  SIGNATURE_REQUIRED: 'Give an archive that one of these keys has signed.',
};

/** How an archive's file is read. */
export interface Reading extends Pick<Context, 'signal' | 'identity'> {
  /** Whose signatures count; nobody's unless given. */
  readonly trust?: SignatureTrust;
  /** Whether one is read that values were taken out of for a hand-over; it is unless false is given. */
  readonly redacted?: boolean;
}

/**
 * Reads an archive's file, one that is encrypted, too. Its digest and its length are those of the file.
 *
 * @param work is shown how many bytes of the file were read.
 * @throws KlError FILE_UNUSABLE before the first member, where there is no such file, or no file with keys.
 */
export async function* archiveMembers(
  path: string,
  { signal, identity, trust, redacted = true }: Reading,
  work?: Work,
): ArchiveMembers {
  const size = await sizeOf(path);
  const file = new Digested(bytesOf(path, signal));
  async function* shown(): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of file) {
      work?.show({ step: 'reading', bytes: { done: file.length, total: size } });
      yield chunk;
    }
  }
  const options = { trust, redacted };
  if (!(await isSealedFile(path))) return yield* readArchive(shown(), options);
  const inside = yield* readArchive(openSealed(shown(), identity), options);
  return { ...inside, sha256: file.sha256(), sizeBytes: BigInt(file.length) };
}

/** What was read of an archive's file, to its end or to where it is damaged. */
export type ReadThrough = {
  /** Serials of the versions that were read to their ends. Of a damaged archive nothing proves them. */
  readonly whole: readonly bigint[];
} & (
  | { readonly archive: VerifiedArchive; readonly damage: null }
  | { readonly archive: null; readonly damage: ArchiveError }
);

/**
 * Reads a whole archive, damaged or not.
 *
 * @param look sees each member, and how many versions stand before it.
 * @throws KlError as {@link archiveMembers} does, and what `look` throws that is no ArchiveError.
 */
export async function readThrough(
  path: string,
  reading: Reading,
  work: Work | undefined,
  look: (member: ArchiveMember, versionsBefore: number) => Promise<void>,
): Promise<ReadThrough> {
  const whole: bigint[] = [];
  let open: bigint | null = null;
  try {
    await using members = archiveMembers(path, reading, work);
    for (;;) {
      const step = await members.next();
      if (open !== null) whole.push(open);
      if (step.done) return { whole, archive: step.value, damage: null };
      open = step.value.kind === 'version' ? step.value.version.serial : null;
      await look(step.value, whole.length);
    }
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    return { whole, archive: null, damage: error };
  }
}

/** Whether a file begins as one that is encrypted with age. */
export async function isSealedFile(path: string): Promise<boolean> {
  await using file = await open(path).catch(() => null);
  // Who reads it says why it cannot be read.
  if (file === null) return false;
  const head = Buffer.alloc(64);
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return isSealed(head.toString('latin1', 0, bytesRead));
}

/**
 * What is inside an encrypted file.
 *
 * @param stored the file, from its first byte to its last.
 * @param identity the file with the keys; null: nobody gave any.
 * @throws ArchiveError as {@link unseal} does, ARCHIVE_ENCRYPTED without keys; KlError for a file of keys that cannot be used.
 */
export async function* openSealed(
  stored: AsyncIterable<Uint8Array>,
  identity: string | null,
): AsyncGenerator<Uint8Array, void, void> {
  if (identity === null) {
    throw new ArchiveError('ARCHIVE_ENCRYPTED', 'the file is encrypted with age, and no key was given');
  }
  const keys = await readKeys(identity);
  const { unseal } = await import('../archive/unseal.ts');
  yield* unseal(stored, keys);
}

/** No file of keys is as long. */
const MAX_KEY_FILE_BYTES = 64 * 1024;

async function readKeys(path: string): Promise<Identities> {
  const found = await stat(path).catch(unreadable(path));
  const canBeKeys = found.isFile() && found.size <= MAX_KEY_FILE_BYTES;
  if (canBeKeys && (found.mode & 0o077) !== 0) {
    throw failure('NO_CREDENTIAL', `${path} is open to others than its owner.`, {
      advice: 'Make it private with chmod 600, and replace the key if somebody may have read it.',
    });
  }
  const { readIdentities } = await import('../archive/unseal.ts');
  const keys = canBeKeys ? readIdentities(await readFile(path, 'utf8')) : null;
  if (keys !== null) return keys;
  throw failure('FILE_UNUSABLE', `${path} holds no keys of age, one a line, as age-keygen writes them.`);
}

/** The bytes of a file. @throws KlError FILE_UNUSABLE where it cannot be read. */
export async function* bytesOf(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* readArchiveFile(path, { signal });
  } catch (error) {
    if (signal?.aborted || !isSystemError(error)) throw error;
    unreadable(path)(error);
  }
}

/** An error of reading an archive as `kl` ends with it: what is wrong with the file is told by its name. */
export function named(path: string, error: unknown): unknown {
  if (!(error instanceof ArchiveError)) return error;
  const advice = ARCHIVE_ADVICE[error.code];
  return new KlError(error.code, `${path}: ${error.message}.`, { advice, cause: error });
}
