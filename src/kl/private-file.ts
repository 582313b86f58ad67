import { access, constants, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { getSystemErrorMessage } from 'node:util';
import { isErrno } from '../base/errno.ts';
import { failure } from './endings.ts';

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
  if (!replace) await refuseExisting(path);
  const draft = `${path}.${process.pid}.partial`;
  try {
    await writeFile(draft, contents, { mode: 0o600, flag: 'wx', flush: true });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw failure('WRITE_FAILED', `${path} cannot be written (${reasonOf(error)}).`, { cause: error });
  }
}

/** A directory for this process alone, which goes away with what is in it. */
export async function temporaryDirectory(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'kl-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** @throws KlError FILE_EXISTS when there is something at this path. */
export async function refuseExisting(path: string): Promise<void> {
  try {
    await (await open(path, 'r')).close();
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    if (isErrno(error, 'ENOTDIR'))
      throw failure('WRITE_FAILED', `${path} cannot be written (not a directory).`);
  }
  throw failure('FILE_EXISTS', `${path} is there already.`, {
    advice: 'Give another name, or --force to replace it.',
  });
}

/** Whether it is the operating system that refused. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

/** Why the operating system refused, in its words. */
export function reasonOf(error: unknown): string {
  if (!isSystemError(error)) return 'unknown failure';
  return error.errno === undefined ? String(error.code) : getSystemErrorMessage(error.errno);
}

/** @throws KlError WRITE_FAILED where nothing can be written beside `path`. */
export async function requirePlace(path: string): Promise<void> {
  try {
    await access(dirname(path), constants.W_OK);
  } catch (error) {
    throw failure('WRITE_FAILED', `${path} cannot be written (${reasonOf(error)}).`, { cause: error });
  }
}
