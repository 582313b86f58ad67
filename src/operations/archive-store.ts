import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { ARCHIVE_FILE_EXTENSION } from '../archive/format.ts';
import { isErrno } from '../base/errno.ts';

/** Archives on disk, and the files on their way in. Everything in it is as secret as the states are. */
export interface ArchiveStore {
  /** Where the archive of an operation is written; its name is the operation's object key. */
  pathOf(objectKey: string): string;
  /** A path for a file on its way in, used by nobody else. */
  stagingPath(): string;
  /** Whether the archive is there. */
  has(objectKey: string): Promise<boolean>;
  /** The bytes of an archive from `start` to `end`, both included; all of them without a range. */
  read(objectKey: string, range?: { start: number; end: number }): Readable;
  /** The object keys of the archives that are there. */
  list(): Promise<string[]>;
  /** Removes an archive, if it is there. */
  remove(objectKey: string): Promise<void>;
  /** Removes what a process that died left half done, unless it was touched within `olderThanMs`. */
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

/** Opens the store in a directory, which is created for the owner alone (0700). */
export async function openArchiveStore(directory: string): Promise<ArchiveStore> {
  const archives = join(directory, 'archives');
  const staging = join(directory, 'staging');
  for (const path of [archives, staging]) await mkdir(path, { recursive: true, mode: 0o700 });
  return {
    pathOf: (objectKey) => join(archives, objectKey),
    stagingPath: () => join(staging, randomUUID()),
    async has(objectKey) {
      const found = await stat(join(archives, objectKey)).catch((error) => {
        if (isErrno(error, 'ENOENT')) return null;
        throw error;
      });
      return found !== null;
    },
    read: (objectKey, range) => createReadStream(join(archives, objectKey), range),
    async list() {
      return (await readdir(archives)).filter(isArchive);
    },
    async remove(objectKey) {
      await rm(join(archives, objectKey), { force: true });
    },
    async removeLeftovers(olderThanMs) {
      const leftovers = [
        ...(await readdir(archives)).filter((name) => !isArchive(name)).map((name) => join(archives, name)),
        ...(await readdir(staging)).map((name) => join(staging, name)),
      ];
      for (const path of leftovers) {
        const age = Date.now() - (await stat(path)).mtimeMs;
        if (age >= olderThanMs) await rm(path, { force: true });
      }
    },
  };
}

/** Whether a file is whole: half an archive has another name. */
function isArchive(name: string): boolean {
  return name.endsWith(ARCHIVE_FILE_EXTENSION);
}
