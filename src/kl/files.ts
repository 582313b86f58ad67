import { link, lstat, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getSystemErrorMessage } from 'node:util';
import { isErrno } from '../base/errno.ts';
import { failure, type KlError } from './endings.ts';

/**
 * Writes a file for its owner alone (0600), which appears under its name only when it is whole.
 *
 * @throws KlError FILE_EXISTS when there is one and it is not to be replaced, WRITE_FAILED when it cannot be written.
 */
export async function writePrivateFile(
  path: string,
  contents: Uint8Array | string,
  { replace }: { readonly replace: boolean },
): Promise<void> {
  const draft = `${path}.${process.pid}.partial`;
  try {
    await writeFile(draft, contents, { mode: 0o600, flag: 'wx', flush: true });
    await place(draft, path, { replace });
  } catch (error) {
    await rm(draft, { force: true });
    throw isSystemError(error) ? unwritable(path, error) : error;
  }
}

/**
 * Gives a file that is whole its name; what has appeared there meanwhile is left alone unless it may be replaced.
 *
 * @throws KlError FILE_EXISTS, and errors of the file system.
 */
export async function place(
  draft: string,
  path: string,
  { replace }: { readonly replace: boolean },
): Promise<void> {
  if (replace) return rename(draft, path);
  try {
    await link(draft, path);
    await rm(draft);
  } catch (error) {
    if (isErrno(error, 'EEXIST')) throw existing(path);
    // There are file systems without hard links.
    await rename(draft, path);
  }
}

/** @throws KlError FILE_EXISTS when there is something at this path. */
export async function refuseExisting(path: string): Promise<void> {
  const there = await lstat(path).catch((error: unknown) => {
    if (isErrno(error, 'ENOENT')) return null;
    throw unwritable(path, error);
  });
  if (there !== null) throw existing(path);
}

function existing(path: string): KlError {
  return failure('FILE_EXISTS', `${path} is there already.`, {
    advice: 'Give another name, or --force to replace it.',
  });
}

/** A directory for this process alone, which goes away with what is in it. */
export async function temporaryDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'kl-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** @throws KlError FILE_UNUSABLE for what is no regular file. */
export async function sizeOf(path: string): Promise<number> {
  const found = await stat(path).catch(unreadable(path));
  if (!found.isFile()) throw failure('FILE_UNUSABLE', `${path} is no file.`);
  return found.size;
}

/** Whether it is the operating system that refused. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

/** Takes what reading a file failed with, and says it of the file. @throws KlError FILE_UNUSABLE. */
export function unreadable(path: string): (error: unknown) => never {
  return (error) => {
    const message = isErrno(error, 'ENOENT')
      ? `There is no file ${path}.`
      : `${path} cannot be read (${reasonOf(error)}).`;
    throw failure('FILE_UNUSABLE', message, { cause: error });
  };
}

/** What writing a file failed with, said of the file: WRITE_FAILED. */
export function unwritable(path: string, error: unknown): KlError {
  return failure('WRITE_FAILED', `${path} cannot be written (${reasonOf(error)}).`, { cause: error });
}

/** Why the operating system refused, in its words. */
function reasonOf(error: unknown): string {
  if (!isSystemError(error)) return 'unknown failure';
  return error.errno === undefined ? String(error.code) : getSystemErrorMessage(error.errno);
}
