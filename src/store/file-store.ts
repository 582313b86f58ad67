import { createHash, randomUUID } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { copyFile, link, mkdir, open, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno } from '../base/errno.ts';
import { OperatorError } from '../base/operator-error.ts';
import { assertKey, ObjectExistsError, ObjectMissingError, type ObjectStore } from './object-store.ts';

/** What is not whole yet ends so. */
const PARTIAL = '.partial';

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

    async *list(prefix = '') {
      for (const key of await readdir(directory)) {
        if (!key.startsWith(prefix) || key.endsWith(PARTIAL)) continue;
        const found = await statOf(key);
        if (found?.isFile()) {
          yield { key, sizeBytes: BigInt(found.size), ageMs: Date.now() - found.mtimeMs };
        }
      }
    },

    remove: (key) => rm(pathOf(key), { force: true }),

    async removeLeftovers(olderThanMs) {
      for (const name of await readdir(directory)) {
        if (!name.endsWith(PARTIAL)) continue;
        const path = join(directory, name);
        const found = await unlessMissing(stat(path));
        if (found !== null && Date.now() - found.mtimeMs >= olderThanMs) await rm(path, { force: true });
      }
    },
  };
}

async function digestOf(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { signal })) hash.update(chunk);
  return hash.digest('hex');
}

/** Copies a file from another file system, so that it appears whole. */
async function linkCopy(path: string, name: string, signal: AbortSignal): Promise<void> {
  const partial = join(dirname(name), randomUUID() + PARTIAL);
  try {
    await copyFile(path, partial, constants.COPYFILE_EXCL);
    await flush(partial);
    signal.throwIfAborted();
    await link(partial, name);
  } finally {
    await rm(partial, { force: true });
  }
}

async function refuseWithoutLinks(directory: string): Promise<void> {
  const [first, second] = [randomUUID(), randomUUID()].map((name) => join(directory, name + PARTIAL)) as [
    string,
    string,
  ];
  try {
    await writeFile(first, '', { mode: 0o600, flag: 'wx' });
    await link(first, second);
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'].some((code) => isErrno(error, code)))
      throw error;
    throw new OperatorError(
      'ARCHIVE_STORE_URL cannot be used: the file system of that directory has no hard links, by which exactly one of several writers is the first.',
      { cause: error },
    );
  } finally {
    for (const path of [first, second]) await rm(path, { force: true });
  }
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

/** Makes what was written, or given a name in a directory, survive a loss of power. */
async function flush(path: string): Promise<void> {
  await using handle = await open(path);
  await handle.sync();
}
