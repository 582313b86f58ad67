import { open, readFile, stat } from 'node:fs/promises';
import { isSealed } from '../archive/container.ts';
import { ArchiveError } from '../archive/errors.ts';
import type { Identities } from '../archive/unseal.ts';
import { failure } from './endings.ts';
import { unreadable } from './files.ts';

/** Whether a file begins as one that is encrypted with age. */
export async function isSealedFile(path: string): Promise<boolean> {
  await using file = await open(path).catch(() => null);
  // Who reads it says why it cannot be read.
  if (file === null) return false;
  const head = Buffer.alloc(64);
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return isSealed(head.subarray(0, bytesRead));
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
  if (!found.isFile() || found.size > MAX_KEY_FILE_BYTES) throw noKeys(path);
  if ((found.mode & 0o077) !== 0) {
    throw failure('NO_CREDENTIAL', `${path} is open to others than its owner.`, {
      advice: 'Make it private with chmod 600, and replace the key if somebody may have read it.',
    });
  }
  const { readIdentities } = await import('../archive/unseal.ts');
  const keys = readIdentities(await readFile(path, 'utf8'));
  if (keys === null) throw noKeys(path);
  return keys;
}

function noKeys(path: string) {
  return failure('FILE_UNUSABLE', `${path} holds no keys of age, one a line, as age-keygen writes them.`);
}
