import { open, rm } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { GraphQLError } from 'graphql';
import { Digested } from '../base/digested.ts';
import { plainFileName } from '../base/file-name.ts';
import { letGo } from '../base/let-go.ts';

/** A file on its way in, as the `Upload` scalar hands it to a resolver. */
export interface FileUpload {
  /** The name the client gave the file; never a path, never to be trusted. */
  readonly filename: string;
  /**
   * The file's bytes, once. The stream errors with UploadTooLargeError or UploadInterruptedError, and ends only when
   * the whole request body has been received and was well formed.
   */
  createReadStream(): Readable;
}

/** What was received. */
export interface SpooledUpload {
  readonly sizeBytes: bigint;
  /** Lowercase hex. */
  readonly sha256: string;
  /** The client's name for the file, without path and control characters; '' when it gave none. */
  readonly fileName: string;
}

/** The file holds more bytes than are accepted. Answered with 413 when a resolver lets it pass. */
export class UploadTooLargeError extends GraphQLError {
  override readonly name = 'UploadTooLargeError';
  /** The most that is accepted, in bytes. */
  readonly maxBytes: number;

  constructor(maxBytes: number) {
    super(`The file is larger than the ${maxBytes} bytes accepted.`, {
      extensions: { code: 'PAYLOAD_TOO_LARGE', http: { status: 413 } },
    });
    this.maxBytes = maxBytes;
  }
}

/** The upload ended before it was whole; nothing of it may be used. Answered with 400 when a resolver lets it pass. */
export class UploadInterruptedError extends GraphQLError {
  override readonly name = 'UploadInterruptedError';

  constructor(reason: string) {
    super(`The upload did not arrive whole: ${reason}.`, {
      extensions: { code: 'UPLOAD_INTERRUPTED', http: { status: 400 } },
    });
  }
}

/**
 * Receives an uploaded file into a new file of mode 0600, hashing it on the way. Whatever goes wrong, no file is left.
 *
 * @param path where to write; nothing may exist there.
 * @param options `maxBytes` is the largest size that passes; `signal` gives the upload up.
 * @throws UploadTooLargeError as soon as the file turns out larger.
 * @throws UploadInterruptedError when the client goes away, the body is malformed, or `signal` aborts.
 */
export async function spoolUpload(
  upload: Promise<FileUpload>,
  path: string,
  options: { maxBytes: number; signal: AbortSignal },
): Promise<SpooledUpload> {
  const { filename, createReadStream } = await upload;
  const source = addAbortSignal(options.signal, createReadStream());
  // Until it is read below, an error of the source has no other listener and would end the process.
  source.on('error', () => {});
  const file = await open(path, 'wx', 0o600).catch((error: unknown) => {
    source.destroy();
    throw error;
  });
  const bytes = new Digested(source);
  try {
    for await (const piece of bytes) {
      if (bytes.length > options.maxBytes) throw new UploadTooLargeError(options.maxBytes);
      await file.writeFile(piece);
      letGo(piece);
    }
  } catch (error) {
    await rm(path, { force: true });
    throw options.signal.aborted ? new UploadInterruptedError('the request was given up') : error;
  } finally {
    await file.close();
  }
  return {
    sizeBytes: BigInt(bytes.length),
    sha256: bytes.sha256(),
    fileName: plainFileName(filename),
  };
}
