import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import type { VerifiedArchive } from '../archive/reader.ts';
import { DOCUMENTS, type UserError } from './documents.ts';
import { failure, KlError } from './endings.ts';
import { type Announced, KeptUpload } from './kept-upload.ts';
import type { Work } from './progress.ts';
import { isPassing, reach, refuseErrors, type Service } from './service.ts';

/** A connection that takes no byte for this long is given up, and the rest is sent by another. */
const STALL_MS = 60_000;
const ANSWER_MS = 30_000;
/** Whoever has to go is not kept for long. */
const DELETE_MS = 5_000;
const TUS = { 'tus-resumable': '1.0.0' };

/**
 * A file that the service has received whole, to be looked at any number of times and imported once. Out of scope it is deleted
 * there, since it would count for a day; unless it was used, or the next call is to go on with it.
 */
export interface StagedUpload extends AsyncDisposable {
  readonly id: string;
  /** An import has it. */
  use(): Promise<void>;
  /** Nobody knows whether an import has it: it is left as it is. */
  leave(): void;
}

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
  archive: Pick<VerifiedArchive, 'sizeBytes' | 'sha256'>,
  work: Work,
  signal: AbortSignal,
): Promise<StagedUpload> {
  work.show({ step: 'sending' });
  const kept = new KeptUpload(service.caller, archive.sha256);
  const former = await kept.read();
  if (former !== null) {
    try {
      return await sendBy(former, service, path, archive, kept, work, signal);
    } catch (error) {
      // It is over: used, or past its time. The file is sent anew.
      if (!(error instanceof KlError) || error.code !== 'UPLOAD_EXPIRED') throw error;
    }
  }
  const announced = await announce(service, path, archive);
  await kept.write(announced);
  return sendBy(announced, service, path, archive, kept, work, signal);
}

async function announce(
  service: Service,
  path: string,
  { sizeBytes, sha256 }: Pick<VerifiedArchive, 'sizeBytes' | 'sha256'>,
): Promise<Announced> {
  const { stageStateArchiveUpload } = await service.ask<{
    stageStateArchiveUpload: { readonly upload: Announced | null; readonly userErrors: readonly UserError[] };
  }>(DOCUMENTS.stage, { byteLength: String(sizeBytes), sha256, fileName: basename(path) });
  refuseErrors(stageStateArchiveUpload);
  const { upload } = stageStateArchiveUpload;
  if (upload !== null) return upload;
  throw failure('UNKNOWN_ANSWER', 'The service takes no upload, and says nothing of why.');
}

async function sendBy(
  { id, url }: Announced,
  service: Service,
  path: string,
  { sizeBytes }: Pick<VerifiedArchive, 'sizeBytes'>,
  kept: KeptUpload,
  work: Work,
  signal: AbortSignal,
): Promise<StagedUpload> {
  const size = Number(sizeBytes);
  let isOpen = true;
  const upload: StagedUpload = {
    id,
    async use() {
      isOpen = false;
      await kept.forget();
    },
    leave() {
      isOpen = false;
    },
    async [Symbol.asyncDispose]() {
      if (!isOpen || signal.aborted) return;
      await fetch(url, { method: 'DELETE', headers: TUS, signal: AbortSignal.timeout(DELETE_MS) }).catch(
        () => {
          // It is forgotten after a day in any case.
        },
      );
      await kept.forget();
    },
  };
  try {
    for (let offset = -1; offset < size; ) {
      offset = await service.patiently(async () => {
        const from = await receivedBytes(url, signal);
        if (from === size) return from;
        try {
          return await send(url, path, { from, size }, work, signal);
        } catch (error) {
          // A transfer that moves is not given up, however often it is cut.
          if (signal.aborted || isOwn(error) || (await receivedBytes(url, signal)) <= from) throw error;
          return from;
        }
      });
    }
    return upload;
  } catch (error) {
    if (isPassing(error)) upload.leave();
    await upload[Symbol.asyncDispose]();
    throw error;
  }
}

function isOwn(error: unknown): boolean {
  return error instanceof KlError && error.code === 'FILE_UNUSABLE';
}

/** How many bytes have arrived so far. */
async function receivedBytes(url: string, signal: AbortSignal): Promise<number> {
  const response = await reach(
    url,
    { method: 'HEAD', headers: TUS, signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]) },
    signal,
  );
  return offsetIn(response);
}

/** Sends the rest by one request. @returns how many bytes have arrived then. */
async function send(
  url: string,
  path: string,
  { from, size }: { readonly from: number; readonly size: number },
  work: Work,
  signal: AbortSignal,
): Promise<number> {
  const stall = new AbortController();
  const timer = setTimeout(() => stall.abort(new DOMException('stalled', 'TimeoutError')), STALL_MS);
  let done = from;
  let cut: KlError | null = null;
  async function* rest(): AsyncGenerator<Buffer, void, void> {
    for await (const chunk of createReadStream(path, { start: from, end: size - 1 })) {
      yield chunk as Buffer;
      // Asked for the next, somebody has taken this one.
      timer.refresh();
      done += (chunk as Buffer).length;
      work.show({ step: 'sending', bytes: { done, total: size } });
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
    signal: AbortSignal.any([signal, stall.signal]),
  };
  try {
    return offsetIn(await reach(url, request, signal));
  } catch (error) {
    throw cut ?? error;
  } finally {
    clearTimeout(timer);
  }
}

/** What an answer of the upload's address says has arrived. */
function offsetIn(response: Response): number {
  const offset = response.headers.get('upload-offset');
  // The bodies of answers are empty, or say what the status does.
  void response.body?.cancel();
  if (response.ok && offset !== null && /^\d{1,15}$/.test(offset)) return Number(offset);
  switch (response.status) {
    case 404:
    case 410:
      throw new KlError(
        'UPLOAD_EXPIRED',
        'The service no longer waits for the file: the upload has expired.',
      );
    case 413:
      throw new KlError('PAYLOAD_TOO_LARGE', 'The file was changed while it was being sent: it is larger.');
    default:
      throw failure('UNREACHABLE', `The upload was answered with status ${response.status}.`);
  }
}
