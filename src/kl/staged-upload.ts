import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import type { VerifiedArchive } from '../archive/reader.ts';
import { DOCUMENTS, type UserError } from './documents.ts';
import { failure, KlError } from './endings.ts';
import type { Work } from './progress.ts';
import { reach, refuseErrors, type Service } from './service.ts';

/** A connection that takes no byte for this long is given up, and the rest is sent by another. */
const STALL_MS = 60_000;
const ANSWER_MS = 30_000;
const PROGRESS_MS = 50;
const TUS = { 'tus-resumable': '1.0.0' };

/** A file that the service has received whole, to be imported once. */
export interface StagedUpload {
  readonly id: string;
  /** Has the service forget it; for a file that no operation came to use. */
  discard(): Promise<void>;
}

interface Announced {
  readonly id: string;
  /** A secret: whoever has it may send. */
  readonly url: string;
}

/**
 * Sends an archive's file apart from any request, going on where it stopped whenever it is cut.
 *
 * @throws KlError with what the service refused it for; UNREACHABLE when it stays away.
 */
export async function sendArchive(
  service: Service,
  path: string,
  { sizeBytes, sha256 }: Pick<VerifiedArchive, 'sizeBytes' | 'sha256'>,
  work: Work,
  signal: AbortSignal,
): Promise<StagedUpload> {
  const { stageStateArchiveUpload } = await service.ask<{
    stageStateArchiveUpload: { readonly upload: Announced | null; readonly userErrors: readonly UserError[] };
  }>(DOCUMENTS.stage, { byteLength: String(sizeBytes), sha256, fileName: basename(path) });
  refuseErrors(stageStateArchiveUpload);
  const { upload } = stageStateArchiveUpload;
  if (upload === null)
    throw failure('UNKNOWN_ANSWER', 'The service takes no upload, and says nothing of why.');
  const discard = async () => {
    await fetch(upload.url, {
      method: 'DELETE',
      headers: TUS,
      signal: AbortSignal.timeout(ANSWER_MS),
    }).catch(() => {
      // It is forgotten after a day in any case.
    });
  };
  try {
    const size = Number(sizeBytes);
    for (let offset = -1; offset < size; ) {
      offset = await service.patiently(async () => {
        const from = await receivedBytes(upload.url, signal);
        if (from === size) return from;
        try {
          return await send(upload.url, path, { from, size }, work, signal);
        } catch (error) {
          // A transfer that moves is not given up, however often it is cut.
          if (signal.aborted || (await receivedBytes(upload.url, signal)) <= from) throw error;
          return from;
        }
      });
    }
  } catch (error) {
    await discard();
    throw error;
  }
  return { id: upload.id, discard };
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
  let shown = 0;
  async function* rest(): AsyncGenerator<Buffer, void, void> {
    for await (const chunk of createReadStream(path, { start: from })) {
      yield chunk as Buffer;
      // Asked for the next, somebody has taken this one.
      timer.refresh();
      done += (chunk as Buffer).length;
      if (performance.now() - shown < PROGRESS_MS && done < size) continue;
      shown = performance.now();
      work.show({ step: 'sending', bytes: { done, total: size } });
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
