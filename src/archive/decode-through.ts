import { pipeline, type Transform } from 'node:stream';
import { types } from 'node:util';
import { letGo } from '../base/let-go.ts';
import { ArchiveError } from './errors.ts';

/** Size of the pieces that decoders hand out: few round trips to the thread pool, little memory. */
export const DECODED_CHUNK_BYTES = 512 * 1024;

/**
 * The output of a decoder fed from `source`: each piece is there until the next is asked for. An error of the source comes out
 * as it is; one of the decoder as ARCHIVE_CORRUPT. Leaving the loop ends the decoder and the source.
 */
export async function* decodeThrough(
  source: AsyncIterable<Uint8Array>,
  decoder: Transform,
): AsyncGenerator<Uint8Array, void, void> {
  const settled = new Promise<void>((resolve) => pipeline(source, decoder, () => resolve()));
  try {
    for await (const chunk of decoder) {
      yield chunk;
      letGo(chunk);
    }
  } catch (error) {
    if (!isZlibError(error)) throw error;
    const message = `the compressed data is damaged (${error.code})`;
    throw new ArchiveError('ARCHIVE_CORRUPT', message, null, { cause: error });
  } finally {
    decoder.destroy();
    await settled;
  }
}

/** Errors of node:zlib carry the library's own name of what went wrong, such as `ZSTD_error_checksum_wrong`. */
function isZlibError(error: unknown): error is Error & { code: string } {
  return types.isNativeError(error) && 'code' in error && /^(?:Z|ZSTD)_/.test(String(error.code));
}
