import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { isErrno } from '../base/errno.ts';
import { isAlive } from '../base/process-alive.ts';

/**
 * Files of this process alone: what it is working on, in a directory of its own. When the process is gone, so is whoever
 * could want them. They are as secret as the states are.
 */
export interface Scratch {
  /** A path for a file, used by nobody else. */
  path(): string;
  /**
   * Says that this process is alive, and removes what others left: at once what belongs to a process of this machine that is
   * gone, and what has not been touched for `olderThanMs`.
   */
  removeLeftovers(olderThanMs: number): Promise<void>;
}

/** The directories that this process has open. */
const ownDirectories = new Set<string>();

/** Opens a directory for scratch, which is created for the owner alone (0700). Processes may share it. */
export async function openScratch(directory: string): Promise<Scratch> {
  const own = join(directory, `${process.pid}@${encodeURIComponent(hostname())}@${randomUUID()}`);
  for (const path of [directory, own]) await mkdir(path, { recursive: true, mode: 0o700 });
  ownDirectories.add(own);
  return {
    path: () => join(own, randomUUID()),
    async removeLeftovers(olderThanMs) {
      const now = new Date();
      await utimes(own, now, now);
      for (const name of await readdir(directory)) {
        const path = join(directory, name);
        if (ownDirectories.has(path)) continue;
        if (isOfGoneProcess(path) || (await ageOf(path)) >= olderThanMs) {
          await rm(path, { recursive: true, force: true });
        }
      }
    },
  };
}

/** Milliseconds since something was put into a directory or taken out; 0 when it is not there any more. */
async function ageOf(path: string): Promise<number> {
  try {
    return Date.now() - (await stat(path)).mtimeMs;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return 0;
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
