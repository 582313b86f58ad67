import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '../base/process-alive.ts';
import { sha256Of } from './digests.ts';
import { writePrivateFile } from './private-file.ts';

/** An upload that the service waits for. */
export interface Announced {
  readonly id: string;
  /** A secret: whoever has it may send. */
  readonly url: string;
}

/** An upload is over after a day. */
const MAX_AGE_MS = 2 * 24 * 3_600_000;

/** Where uploads that are under way are kept. */
function directory(): string {
  const { XDG_STATE_HOME } = process.env;
  return join(XDG_STATE_HOME || join(homedir(), '.local/state'), 'kilolock-state-archive', 'uploads');
}

/**
 * An upload under way, kept for its owner alone, so that the next call goes on with it, however this one ends. Where nothing
 * can be kept, the next call begins anew: nothing fails for that.
 */
export class KeptUpload {
  readonly #path: string;

  /**
   * @param caller whose upload it is, and of which service.
   * @param sha256 of the file.
   */
  constructor(caller: string, sha256: string) {
    this.#path = join(directory(), `${sha256Of(`${caller} ${sha256}`)}.json`);
  }

  /** What an earlier call has left; null when there is none, or when one that is still running is at it. */
  async read(): Promise<Announced | null> {
    try {
      const { id, url, pid } = JSON.parse(await readFile(this.#path, 'utf8')) as Announced & { pid: number };
      if (pid !== process.pid && isAlive(pid)) return null;
      const announced = { id: String(id), url: new URL(url).href };
      await this.write(announced);
      return announced;
    } catch {
      return null;
    }
  }

  /** Keeps it. */
  async write({ id, url }: Announced): Promise<void> {
    try {
      await mkdir(directory(), { recursive: true, mode: 0o700 });
      await removeOld();
      const kept = JSON.stringify({ id, url, pid: process.pid });
      await writePrivateFile(this.#path, `${kept}\n`, { replace: true });
    } catch {
      // A convenience.
    }
  }

  /** Lets it go. */
  async forget(): Promise<void> {
    await rm(this.#path, { force: true }).catch(() => {});
  }
}

async function removeOld(): Promise<void> {
  for (const name of await readdir(directory())) {
    const path = join(directory(), name);
    if (Date.now() - (await stat(path)).mtimeMs > MAX_AGE_MS) await rm(path, { force: true });
  }
}
