import { randomUUID } from 'node:crypto';
import { chown, link, mkdir, open, rename, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isErrno } from './errno.ts';
import { OperatorError } from './operator-error.ts';

/** A file that holds a key cannot be used. The message names the file and what to do, never its contents. */
export class SecretFileError extends OperatorError {
  override readonly name = 'SecretFileError';
  /** The file. */
  readonly path: string;

  constructor(path: string, problem: string) {
    super(`${path} ${problem}`);
    this.path = path;
  }
}

/**
 * Reads a secret from a file, creating the file (mode 0600, its directory 0711) when there is none. Processes that
 * do this at the same time all end up with the same contents, and none ever sees a part of them.
 *
 * @param create makes the contents; the result is dropped when another process was first.
 * @param owner the account the file is for, when it is not the process's own.
 * @throws SecretFileError when the file is not a regular file, or others than its owner may use it.
 */
export async function readOrCreateSecretFile(
  path: string,
  create: () => string,
  owner?: { readonly uid: number; readonly gid: number },
): Promise<string> {
  const existing = await readSecretFile(path);
  if (existing !== null) return existing;

  // Not 0700: the embedded PostgreSQL lives below the same directory, under an account of its own.
  await mkdir(dirname(path), { recursive: true, mode: 0o711 });
  const draft = `${path}.${randomUUID()}.partial`;
  await writeFile(draft, create(), { mode: 0o600, flag: 'wx', flush: true });
  try {
    if (owner) await chown(draft, owner.uid, owner.gid);
    // A hard link, because it fails when the name is taken; a rename would replace the key of whoever was first.
    await link(draft, path);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  } finally {
    await unlink(draft);
  }

  const created = await readSecretFile(path);
  if (created === null) throw new SecretFileError(path, 'was removed while it was being created; try again');
  return created;
}

/** Puts other contents into a secret file, all at once: a process that reads it meanwhile gets the old or the new. */
export async function replaceSecretFile(path: string, contents: string): Promise<void> {
  const draft = `${path}.${randomUUID()}.partial`;
  await writeFile(draft, contents, { mode: 0o600, flag: 'wx', flush: true });
  try {
    await rename(draft, path);
  } catch (error) {
    await unlink(draft);
    throw error;
  }
}

async function readSecretFile(path: string): Promise<string | null> {
  await using file = await open(path).catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  });
  if (file === null) return null;
  const stats = await file.stat();
  if (!stats.isFile()) throw new SecretFileError(path, 'is not a regular file');
  if ((stats.mode & 0o077) !== 0) {
    throw new SecretFileError(path, 'is open to others than its owner; make it private with chmod 600');
  }
  return await file.readFile('utf8');
}
