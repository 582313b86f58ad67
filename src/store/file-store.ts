import { randomUUID } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import {
  copyFile,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Digested } from '../base/digested.ts';
import { isErrno } from '../base/errno.ts';
import { flush } from '../base/flush.ts';
import { OperatorError } from '../base/operator-error.ts';
import { assertKey, ObjectExistsError, ObjectMissingError, type ObjectStore } from './object-store.ts';

/** What is not whole yet ends so. */
const PARTIAL = '.partial';
/** What keeps an object from being removed is beside it, in a file of its name that ends so. */
const RETAINED = '.retained';

/** What such a file says, as JSON. */
interface Retained {
  /** In seconds since 1970; 0 for no time. */
  readonly until: number;
  readonly isHeld: boolean;
}

const FREE: Retained = { until: 0, isHeld: false };

/**
 * Opens the objects in a directory, which is created for the owner alone (0700). Several machines may share it: a name is
 * given by a hard link, which exactly one of them can make.
 *
 * @throws OperatorError when the file system has no hard links.
 */
export async function openFileStore(directory: string): Promise<ObjectStore> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await refuseWithoutLinks(directory);
  const pathOf = (key: string) => {
    assertKey(key);
    return join(directory, key);
  };
  const statOf = (key: string) => unlessMissing(stat(pathOf(key)));
  const retainedOf = async (key: string): Promise<Retained> => {
    const text = await unlessMissing(readFile(pathOf(key) + RETAINED, 'utf8'));
    return text === null ? FREE : JSON.parse(text);
  };
  const retain = async (key: string, change: Partial<Retained>) => {
    if ((await statOf(key)) === null) throw new ObjectMissingError(key);
    const before = await retainedOf(key);
    const after = { ...before, ...change, until: Math.max(before.until, change.until ?? 0) };
    await replace(pathOf(key) + RETAINED, JSON.stringify(after));
  };
  return {
    async put(key, { path, sha256 }, signal) {
      signal.throwIfAborted();
      const name = pathOf(key);
      try {
        await link(path, name).catch(async (error) => {
          if (!isErrno(error, 'EXDEV')) throw error;
          await linkCopy(path, name, signal);
        });
      } catch (error) {
        if (!isErrno(error, 'EEXIST')) throw error;
        // Who asks again, or learnt nothing of what came of it, finds its own.
        if ((await digestOf(name, signal)) !== sha256) throw new ObjectExistsError(key);
      }
      await flush(name);
      await flush(directory);
    },

    async sizeOf(key) {
      const found = await statOf(key);
      return found && BigInt(found.size);
    },

    async read(key, range) {
      const file = await open(pathOf(key)).catch((error) => toMissing(error, key));
      return file.createReadStream(range);
    },

    addressOf: null,

    retention: {
      retainUntil: (key, until) => retain(key, { until }),
      hold: (key, isHeld) => retain(key, { isHeld }),
    },

    async *list(prefix = '', after = '') {
      for (const key of (await readdir(directory)).sort()) {
        if (!key.startsWith(prefix) || key <= after || isBeside(key)) continue;
        const found = await statOf(key);
        if (found?.isFile()) {
          yield { key, sizeBytes: BigInt(found.size), ageMs: Date.now() - found.mtimeMs };
        }
      }
    },

    async remove(key) {
      const path = pathOf(key);
      const { until, isHeld } = await retainedOf(key);
      if (isHeld || until * 1000 > Date.now()) return false;
      await rm(path, { force: true });
      await rm(path + RETAINED, { force: true });
      return true;
    },

    async removeLeftovers(olderThanMs) {
      const names = new Set(await readdir(directory));
      for (const name of names) {
        const isOfObject = name.endsWith(RETAINED) && names.has(name.slice(0, -RETAINED.length));
        if (!isBeside(name) || isOfObject) continue;
        const path = join(directory, name);
        const found = await unlessMissing(stat(path));
        if (found !== null && Date.now() - found.mtimeMs >= olderThanMs) await rm(path, { force: true });
      }
    },
  };
}

/** Whether a file is none of the objects. */
function isBeside(name: string): boolean {
  return name.endsWith(PARTIAL) || name.endsWith(RETAINED);
}

/** Has something done with the name of a file that is not whole yet, and is gone afterwards. */
async function withPartial(directory: string, work: (partial: string) => Promise<void>): Promise<void> {
  const partial = join(directory, randomUUID() + PARTIAL);
  try {
    await work(partial);
  } finally {
    await rm(partial, { force: true });
  }
}

/** Writes a small file, so that it has its old contents or its new ones. */
async function replace(path: string, text: string): Promise<void> {
  await withPartial(dirname(path), async (partial) => {
    await writeFile(partial, text, { mode: 0o600, flag: 'wx', flush: true });
    await rename(partial, path);
    await flush(dirname(path));
  });
}

async function digestOf(path: string, signal: AbortSignal): Promise<string> {
  const file = new Digested(createReadStream(path, { signal }));
  for await (const _ of file);
  return file.sha256();
}

/** Copies a file from another file system, so that it appears whole. */
async function linkCopy(path: string, name: string, signal: AbortSignal): Promise<void> {
  await withPartial(dirname(name), async (partial) => {
    await copyFile(path, partial, constants.COPYFILE_EXCL);
    await flush(partial);
    signal.throwIfAborted();
    await link(partial, name);
  });
}

async function refuseWithoutLinks(directory: string): Promise<void> {
  const tryLink = (first: string) =>
    withPartial(directory, async (second) => {
      await writeFile(first, '', { mode: 0o600, flag: 'wx' });
      await link(first, second);
    });
  await withPartial(directory, tryLink).catch((error: unknown) => {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].some((code) => isErrno(error, code)))
      throw error;
    throw new OperatorError(
      'ARCHIVE_STORE_URL cannot be used: the file system of that directory has no hard links, by which exactly one of several writers is the first.',
      { cause: error },
    );
  });
}

async function unlessMissing<Found>(found: Promise<Found>): Promise<Found | null> {
  try {
    return await found;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  }
}

function toMissing(error: unknown, key: string): never {
  if (isErrno(error, 'ENOENT')) throw new ObjectMissingError(key, { cause: error });
  throw error;
}
