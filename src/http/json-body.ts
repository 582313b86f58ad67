import type { IncomingMessage } from 'node:http';
import { HttpError } from './http-error.ts';

/**
 * Receives a JSON body. Stops at the limit and leaves the rest unread.
 *
 * @param maxBytes the largest body that passes.
 * @throws HttpError 413 when it is larger, 400 when it is not JSON in UTF-8 or the client went away.
 */
export async function receiveJsonBody(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const bytes = await receive(request, maxBytes);
  let text: string;
  try {
    // Not Buffer.toString, which would put U+FFFD for bytes that are no UTF-8 and so change a document in silence.
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new HttpError(400, 'BAD_REQUEST', 'The body is not UTF-8.');
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body.
    throw new HttpError(400, 'BAD_REQUEST', 'The body is not JSON.');
  }
}

function receive(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const tooLarge = () =>
    new HttpError(413, 'PAYLOAD_TOO_LARGE', `The body is larger than the ${maxBytes} bytes accepted.`);
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) return reject(tooLarge());
    const chunks: Buffer[] = [];
    let length = 0;
    // Not `for await`, which would destroy the request, and the answer with it, on the way out.
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes) return settle(() => reject(tooLarge()));
      chunks.push(chunk);
    };
    const onEnd = () => settle(() => resolve(Buffer.concat(chunks, length)));
    const onClose = () => settle(() => reject(new HttpError(400, 'BAD_REQUEST', 'The client went away.')));
    const settle = (outcome: () => void) => {
      request.pause();
      request.off('data', onData).off('end', onEnd).off('close', onClose);
      outcome();
    };
    // Kept after settling: the socket's end is no news then, and must find a listener.
    request.on('error', () => {});
    request.on('data', onData).on('end', onEnd).on('close', onClose);
  });
}
