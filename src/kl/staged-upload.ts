import { hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import type { VerifiedArchive } from '../archive/reader.ts';
import { isAlive } from '../base/process-alive.ts';
import { type Announced, DOCUMENTS } from './documents.ts';
import { failure, KlError } from './endings.ts';
import { writePrivateFile } from './files.ts';
import type { Work } from './progress.ts';
import { isPassing, type Service, unexplained } from './service.ts';
import { type Connection, transfer } from './transfer.ts';

/** A connection that takes no byte for this long is given up, and the rest is sent by another. */
const STALL_MS = 60_000;
const ANSWER_MS = 30_000;
/** Whoever has to go is not kept for long. */
const DELETE_MS = 5_000;
/** What is kept of uploads: an upload is over after a day. */
const MAX_AGE_MS = 2 * 24 * 3_600_000;
const TUS = { 'tus-resumable': '1.0.0' };

/**
 * Sends an archive's file apart from any request, going on where it stopped whenever it is cut, and where an earlier call
 * stopped.
 *
 * @throws KlError with what the service refused it for; UNREACHABLE when it stays away; FILE_UNUSABLE when the file is changed
 *   meanwhile.
 */
export async function sendArchive(
  service: Service,
  path: string,
  { sizeBytes, sha256 }: Pick<VerifiedArchive, 'sizeBytes' | 'sha256'>,
  work: Work,
): Promise<StagedUpload> {
  work.show({ step: 'sending' });
  const keptAt = keptPath(service, sha256);
  const send = async (announced: Announced) => {
    const upload = new StagedUpload(service, announced, keptAt);
    await upload.send(path, Number(sizeBytes), work);
    return upload;
  };
  const former = await readKept(keptAt);
  if (former !== null) {
    try {
      return await send(former);
    } catch (error) {
      // It is over: used, or past its time. The file is sent anew.
      if (!(error instanceof KlError) || error.code !== 'UPLOAD_EXPIRED') throw error;
    }
  }
  const file = { byteLength: String(sizeBytes), sha256, fileName: basename(path) };
  const announced = (await service.change(DOCUMENTS.stage, file)).upload ?? unexplained('takes no upload');
  await keep(keptAt, announced);
  return send(announced);
}

/**
 * A file that the service has received whole, to be looked at any number of times and imported once. Out of scope it is deleted
 * there, since it would count for a day; unless it was used, or the next call is to go on with it.
 */
export class StagedUpload implements AsyncDisposable {
  readonly id: string;
  readonly #service: Service;
  readonly #url: string;
  readonly #keptAt: string;
  #isOpen = true;

  constructor(service: Service, { id, url }: Announced, keptAt: string) {
    this.id = id;
    this.#service = service;
    this.#url = url;
    this.#keptAt = keptAt;
  }

  /** Sends what the service has not received yet. */
  async send(path: string, size: number, work: Work): Promise<void> {
    try {
      await transfer(
        this.#service,
        {
          step: 'sending',
          size,
          stallMs: STALL_MS,
          arrived: () => this.#received(),
          attempt: (connection) => sendRest(this.#url, path, size, connection),
        },
        work,
      );
    } catch (error) {
      if (isPassing(error)) this.leave();
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** How many bytes have arrived so far. */
  async #received(): Promise<number> {
    const request = { method: 'HEAD', headers: TUS };
    return offsetIn(await this.#service.reach(this.#url, request, AbortSignal.timeout(ANSWER_MS)));
  }

  /** An import has it. */
  async use(): Promise<void> {
    this.leave();
    await this.#forget();
  }

  /** Nobody knows whether an import has it: it is left as it is. */
  leave(): void {
    this.#isOpen = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOpen || this.#service.signal.aborted) return;
    const request = { method: 'DELETE', headers: TUS };
    await this.#service.reach(this.#url, request, AbortSignal.timeout(DELETE_MS)).catch(() => {
      // It is forgotten after a day in any case.
    });
    await this.#forget();
  }

  async #forget(): Promise<void> {
    await rm(this.#keptAt, { force: true }).catch(() => {});
  }
}

/** Sends the rest by one request. @returns how many bytes have arrived then. */
async function sendRest(
  url: string,
  path: string,
  size: number,
  { from, reach, moved }: Connection,
): Promise<number> {
  let done = from;
  let cut: KlError | null = null;
  async function* rest(): AsyncGenerator<Buffer, void, void> {
    for await (const chunk of createReadStream(path, { start: from, end: size - 1 })) {
      yield chunk as Buffer;
      // Asked for the next, somebody has taken this one.
      done += (chunk as Buffer).length;
      moved(done);
    }
    if (done < size) {
      cut = failure('FILE_UNUSABLE', `${path} was changed while it was being sent.`);
      throw cut;
    }
  }
  const request: RequestInit = {
    method: 'PATCH',
    headers: { ...TUS, 'upload-offset': String(from), 'content-type': 'application/offset+octet-stream' },
    body: Readable.toWeb(Readable.from(rest(), { objectMode: false })) as ReadableStream,
    duplex: 'half',
  };
  try {
    return offsetIn(await reach(url, request));
  } catch (error) {
    throw cut ?? error;
  }
}

/** What an answer of the upload's address says has arrived. */
function offsetIn(response: Response): number {
  const offset = response.headers.get('upload-offset');
  // The bodies of answers are empty, or say what the status does.
  void response.body?.cancel();
  if (response.ok && offset !== null && /^\d{1,15}$/.test(offset)) return Number(offset);
  if (response.status === 404 || response.status === 410) {
    throw new KlError('UPLOAD_EXPIRED', 'The service no longer waits for the file: the upload has expired.');
  }
  if (response.status === 413) {
    throw new KlError('PAYLOAD_TOO_LARGE', 'The file was changed while it was being sent: it is larger.');
  }
  throw failure('UNREACHABLE', `The upload was answered with status ${response.status}.`);
}

/**
 * Where an upload under way is kept for its owner alone, so that the next call goes on with it, however this one ends. Where nothing
 * can be kept, the next call begins anew: nothing fails for that.
 */
function keptPath({ caller }: Service, sha256: string): string {
  const home = process.env.XDG_STATE_HOME || join(homedir(), '.local/state');
  return join(home, 'kilolock-state-archive', 'uploads', `${hash('sha256', `${caller} ${sha256}`)}.json`);
}

/** What an earlier call has left, for this one; null when there is none, or when one that is still running is at it. */
async function readKept(path: string): Promise<Announced | null> {
  try {
    const { id, url, pid } = JSON.parse(await readFile(path, 'utf8')) as Announced & { pid: number };
    if (pid !== process.pid && isAlive(pid)) return null;
    const announced = { id: String(id), url: new URL(url).href };
    await keep(path, announced);
    return announced;
  } catch {
    return null;
  }
}

async function keep(path: string, { id, url }: Announced): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    for (const name of await readdir(dirname(path))) {
      const other = join(dirname(path), name);
      if (Date.now() - (await stat(other)).mtimeMs > MAX_AGE_MS) await rm(other, { force: true });
    }
    const kept = JSON.stringify({ id, url, pid: process.pid });
    await writePrivateFile(path, `${kept}\n`, { replace: true });
  } catch {
    // A convenience.
  }
}
