import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { ARCHIVE_FILE_EXTENSION } from '../archive/format.ts';
import { isErrno } from '../base/errno.ts';
import { isAlive } from '../base/process-alive.ts';

/**
 * Archives on disk, and the files on their way in. Everything in it is as secret as the states are.
 *
 * What is not whole lies in a directory of the process that works on it: when the process is gone, so is whoever could
 * want it. An archive that is whole lies where every process that shares the directory finds it.
 */
export interface ArchiveStore {
  /** Where an archive lies; its name is the operation's object key. */
  pathOf(objectKey: string): string;
  /** Where an archive is written before it is kept. */
  draftPathOf(objectKey: string): string;
  /** Puts an archive that was written whole at its draft path where it lies from then on. */
  keep(objectKey: string): Promise<void>;
  /** A path for a file on its way in, used by nobody else. */
  stagingPath(): string;
  /** Whether the archive is there. */
  has(objectKey: string): Promise<boolean>;
  /** The bytes of an archive from `start` to `end`, both included; all of them without a range. */
  read(objectKey: string, range?: { start: number; end: number }): Readable;
  /** The archives that are there, and how long ago each was written. */
  list(): Promise<{ readonly objectKey: string; readonly ageMs: number }[]>;
  /** Removes an archive, kept or not, if it is there. */
  remove(objectKey: string): Promise<void>;
  /**
   * Says that this process is alive, and removes what others left half done: at once what belongs to a process of this
   * machine that is gone, and what has not been touched for `olderThanMs`.
   */
  removeLeftovers(olderThanMs: number): Promise<void>;
}

/** The object key of an operation's archive. */
export function objectKeyOf(operationId: string): string {
  return operationId + ARCHIVE_FILE_EXTENSION;
}

/** The operation whose archive has this object key. */
export function operationIdOf(objectKey: string): string {
  return objectKey.slice(0, -ARCHIVE_FILE_EXTENSION.length);
}

/** The directories of the stores that this process has open. */
const ownDirectories = new Set<string>();

/** Opens the store in a directory, which is created for the owner alone (0700). */
export async function openArchiveStore(directory: string): Promise<ArchiveStore> {
  const archives = join(directory, 'archives');
  const staging = join(directory, 'staging');
  const own = join(staging, `${process.pid}@${encodeURIComponent(hostname())}@${randomUUID()}`);
  for (const path of [archives, own]) await mkdir(path, { recursive: true, mode: 0o700 });
  ownDirectories.add(own);
  const pathOf = (objectKey: string) => join(archives, objectKey);
  const draftPathOf = (objectKey: string) => join(own, objectKey);
  return {
    pathOf,
    draftPathOf,
    async keep(objectKey) {
      await rename(draftPathOf(objectKey), pathOf(objectKey));
      await flush(archives);
    },
    stagingPath: () => join(own, randomUUID()),
    async has(objectKey) {
      return (await ageOf(pathOf(objectKey))) !== null;
    },
    read: (objectKey, range) => createReadStream(pathOf(objectKey), range),
    async list() {
      const found = [];
      for (const objectKey of (await readdir(archives)).filter(isArchive)) {
        const ageMs = await ageOf(pathOf(objectKey));
        if (ageMs !== null) found.push({ objectKey, ageMs });
      }
      return found;
    },
    async remove(objectKey) {
      for (const path of [pathOf(objectKey), draftPathOf(objectKey)]) await rm(path, { force: true });
    },
    async removeLeftovers(olderThanMs) {
      const now = new Date();
      await utimes(own, now, now);
      const leftovers = [
        ...(await readdir(archives)).filter((name) => !isArchive(name)).map((name) => join(archives, name)),
        ...(await readdir(staging)).map((name) => join(staging, name)),
      ];
      for (const path of leftovers) {
        if (ownDirectories.has(path)) continue;
        if (isOfGoneProcess(path) || ((await ageOf(path)) ?? 0) >= olderThanMs) {
          await rm(path, { recursive: true, force: true });
        }
      }
    },
  };
}

/** Whether a file is whole: half an archive has another name. */
function isArchive(name: string): boolean {
  return name.endsWith(ARCHIVE_FILE_EXTENSION);
}

/** Milliseconds since a file was written, or something in a directory; null when it is not there. */
async function ageOf(path: string): Promise<number | null> {
  try {
    return Date.now() - (await stat(path)).mtimeMs;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  }
}

/** Whether a directory belonged to a process of this machine that has ended. Of another machine nobody can tell. */
function isOfGoneProcess(path: string): boolean {
  const [, pid, host] = /^(\d+)@([^@]+)@[0-9a-f-]{36}$/.exec(basename(path)) ?? [];
  if (pid === undefined || host !== encodeURIComponent(hostname())) return false;
  // The number of this process, in a restarted container for one, was another's before.
  return Number(pid) === process.pid || !isAlive(Number(pid));
}

/** Makes what was renamed into a directory survive a loss of power. */
async function flush(directory: string): Promise<void> {
  const handle = await open(directory);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
