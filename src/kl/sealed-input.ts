import { open, readFile, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readArchiveFile } from '../archive/archive-file.ts';
import { ArchiveError } from '../archive/errors.ts';
import { SEALED_FILE_EXTENSION } from '../archive/format.ts';
import { isSealed } from '../archive/sealed-file.ts';
import type { Identities } from '../archive/unseal.ts';
import { Digested } from '../base/digested.ts';
import { isErrno } from '../base/errno.ts';
import { failure } from './endings.ts';
import { temporaryDirectory } from './private-file.ts';

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

/** A file that can be sent: one that is encrypted is opened into another, which goes away with it. */
export interface OpenedFile extends AsyncDisposable {
  readonly path: string;
}

/**
 * The archive in a file, for a service that opens none itself.
 *
 * @throws as {@link openSealed} does.
 */
export async function openFile(
  path: string,
  { identity, signal }: { readonly identity: string | null; readonly signal: AbortSignal },
): Promise<OpenedFile> {
  if (!(await isSealedFile(path))) return { path, async [Symbol.asyncDispose]() {} };
  await using resources = new AsyncDisposableStack();
  const aside = resources.use(await temporaryDirectory());
  const opened = join(aside.path, basename(path, SEALED_FILE_EXTENSION));
  await writeFile(opened, openSealed(readArchiveFile(path, { signal }), identity), {
    mode: 0o600,
    flag: 'wx',
  });
  const kept = resources.move();
  return { path: opened, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** The digest and the length of a file, whatever is in it. */
export async function fileDigest(
  path: string,
  signal: AbortSignal,
): Promise<{ readonly sha256: string; readonly sizeBytes: bigint }> {
  const file = new Digested(readArchiveFile(path, { signal }));
  for await (const _ of file);
  return { sha256: file.sha256(), sizeBytes: BigInt(file.length) };
}

/** No file of keys is as long. */
const MAX_KEY_FILE_BYTES = 64 * 1024;

async function readKeys(path: string): Promise<Identities> {
  const found = await stat(path).catch((error: unknown) => {
    const what = isErrno(error, 'ENOENT') ? 'is not there' : 'cannot be read';
    throw failure('FILE_UNUSABLE', `${path} ${what}.`, { cause: error });
  });
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
