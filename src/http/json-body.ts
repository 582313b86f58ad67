import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { isErrno } from '../base/errno.ts';
import { HttpError } from './http-error.ts';

const gunzipped = promisify(gunzip);

/**
 * Receives a JSON body, compressed with gzip or not. Stops at the limit and leaves the rest unread.
 *
 * @param maxBytes the largest body that passes, before and after it is unpacked.
 * @throws HttpError 413 when it is larger, 415 when it is packed in another way, 400 when it is not JSON in UTF-8 or the
 *   client went away.
 */
export async function receiveJsonBody(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const isGzip = GZIP.has(codingOf(request));
  if (!isGzip) refuseCodings(request);
  const received = await receive(request, maxBytes);
  const bytes = isGzip ? await unpack(received, maxBytes) : received;
  let text: string;
  try {
    // Not Buffer.toString, which would put U+FFFD for bytes that are no UTF-8 and so change a document in silence.
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new HttpError('BAD_REQUEST', 'The body is not UTF-8.');
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body.
    throw new HttpError('BAD_REQUEST', 'The body is not JSON.');
  }
}

/** RFC 9110, section 8.4.1.3. */
const GZIP: ReadonlySet<string> = new Set(['gzip', 'x-gzip']);

function codingOf({ headers }: IncomingMessage): string {
  return headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
}

/** @throws HttpError 415 for a body that comes packed. */
export function refuseCodings(request: IncomingMessage): void {
  if (['', 'identity'].includes(codingOf(request))) return;
  throw new HttpError(
    'UNSUPPORTED_MEDIA_TYPE',
    'The content coding is not accepted: send JSON as it is or with gzip, and a file as it is.',
    { 'accept-encoding': 'gzip' },
  );
}

async function unpack(bytes: Buffer, maxBytes: number): Promise<Buffer> {
  try {
    return await gunzipped(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    if (isErrno(error, 'ERR_BUFFER_TOO_LARGE')) throw tooLarge(maxBytes);
    throw new HttpError('BAD_REQUEST', 'The body is not whole gzip.');
  }
}

function tooLarge(maxBytes: number): HttpError {
  return new HttpError('PAYLOAD_TOO_LARGE', `The body is larger than the ${maxBytes} bytes accepted.`);
}

async function receive(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    // To destroy the request on the way out would be to destroy the answer with it.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      length += chunk.length;
      if (length > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof HttpError ? error : new HttpError('BAD_REQUEST', 'The client went away.');
  }
  return Buffer.concat(chunks, length);
}
