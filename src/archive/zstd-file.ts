import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { constants, createZstdCompress, type ZstdCompress } from 'node:zlib';
import { letGo } from '../base/let-go.ts';
import { Growth } from './growth.ts';

/** What is compressed at one time: each time is a trip to the thread pool, and ends in one small write to the file. */
const CHUNK_BYTES = 1024 * 1024;
/** What the compressor's output is allocated in. */
const OUTPUT_BYTES = 256 * 1024;

const LONG_MATCH_BYTES = 2048;

/**
 * A new file that is written as one zstd frame. Equal bytes make equal files, however they come in pieces.
 *
 * The thread pool compresses one chunk while the next is gathered: two buffers take turns, since fresh ones pile up faster
 * than they are collected.
 */
export class ZstdFile {
  /** Tells how many bytes the file has so far, and ends when it is complete. */
  readonly growth: Growth = new Growth();
  readonly #compressor: ZstdCompress;
  readonly #hash = createHash('sha256');
  #bytesWritten = 0;
  /** Settles when the file is complete and on the disk, or has failed. */
  readonly #written: Promise<void>;
  #gathered = new Uint8Array(CHUNK_BYTES);
  #other = new Uint8Array(CHUNK_BYTES);
  #length = 0;
  /** The compression of the chunk before. */
  #compressed: Promise<void> = Promise.resolve();
  #failChunk: (error: unknown) => void = () => {};

  /**
   * @param file is closed when it is complete or abandoned; after a failure what there is of it is left to the caller.
   * @param windowLog Base-2 logarithm of the window in bytes: memory of that size is held until the file is complete.
   */
  constructor(file: FileHandle, windowLog: number) {
    this.#compressor = createZstdCompress({
      params: {
        [constants.ZSTD_c_compressionLevel]: 3,
        // Successive versions are nearly equal, and a long window reaches back to the one before.
        [constants.ZSTD_c_enableLongDistanceMatching]: 1,
        // Shorter matches are those of what stands in every resource alike, and hide the one with the version before.
        [constants.ZSTD_c_ldmMinMatch]: LONG_MATCH_BYTES,
        // The longer the match, the dearer each place that is looked up: one in 2^10 is enough.
        [constants.ZSTD_c_ldmHashRateLog]: 10,
        [constants.ZSTD_c_windowLog]: windowLog,
        [constants.ZSTD_c_checksumFlag]: 1,
      },
      chunkSize: OUTPUT_BYTES,
    });
    this.#written = this.#writeTo(file);
    // A chunk that is being compressed then is never answered by zlib.
    this.#written.catch((error) => this.#failChunk(error));
  }

  /**
   * Adds bytes. They are copied: the caller may use their memory again at once.
   *
   * @returns a promise where there is something to wait for before more is added; it rejects with what the file system or
   *   zlib throws.
   */
  write(bytes: Uint8Array): Promise<void> | undefined {
    if (this.#length + bytes.length >= CHUNK_BYTES) return this.#writeOver(bytes);
    this.#gathered.set(bytes, this.#length);
    this.#length += bytes.length;
    return undefined;
  }

  /**
   * Completes the frame and flushes the file to the disk.
   *
   * @returns digest (lower-case hex) and size of the file.
   * @throws what the file system or zlib throws.
   */
  async end(): Promise<{ sha256: string; sizeBytes: bigint }> {
    await this.#compressGathered();
    // Ended while it is still at work on its last chunk, zlib would now and then close the frame in one block less.
    await this.#compressed;
    this.#compressor.end();
    await this.#written;
    this.growth.complete(this.#bytesWritten);
    return { sha256: this.#hash.digest('hex'), sizeBytes: BigInt(this.#bytesWritten) };
  }

  /** Lets go of an unfinished file, and has those who follow its growth learn why. Resolves when it is closed. */
  async abandon(reason: unknown): Promise<void> {
    this.growth.fail(reason);
    this.#compressor.destroy();
    await this.#written.catch(() => {});
  }

  async #writeTo(file: FileHandle): Promise<void> {
    try {
      for await (const piece of this.#compressor) {
        this.#hash.update(piece);
        await file.writeFile(piece);
        this.#bytesWritten += piece.length;
        letGo(piece);
      }
      await file.sync();
    } finally {
      await file.close();
    }
  }

  async #writeOver(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const taken = bytes.subarray(at, at + CHUNK_BYTES - this.#length);
      this.#gathered.set(taken, this.#length);
      this.#length += taken.length;
      at += taken.length;
      if (this.#length === CHUNK_BYTES) await this.#compressGathered();
    }
  }

  /** Hands over what was gathered, once the other buffer is free. */
  async #compressGathered(): Promise<void> {
    await this.#compressed;
    if (this.#length === 0) return;
    const chunk = this.#gathered.subarray(0, this.#length);
    [this.#gathered, this.#other] = [this.#other, this.#gathered];
    this.#length = 0;
    this.#compressed = this.#compress(chunk);
    // Awaited before the next chunk, or never.
    this.#compressed.catch(() => {});
  }

  async #compress(chunk: Uint8Array): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#failChunk = reject;
      this.#compressor.write(chunk, (error) => {
        if (!error) resolve();
        // What is written to after it has failed says only that; the writing knows why.
        else this.#written.then(() => reject(error), reject);
      });
    });
    this.growth.reach(this.#bytesWritten);
  }
}
