import { createCipheriv, createHash } from 'node:crypto';

const BLOCK_BYTES = 64 * 1024;
const ZEROS = Buffer.alloc(BLOCK_BYTES);

/** Bytes without end that a seed decides, the same on every machine, and that no compressor makes shorter. */
export class SeededRandom {
  readonly #cipher;
  #block = Buffer.alloc(0);
  #used = 0;

  constructor(seed: string) {
    const key = createHash('sha256').update(seed).digest();
    this.#cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  }

  /** The next bytes; valid until the next call. At most 64 KiB. */
  bytes(count: number): Buffer {
    if (this.#used + count > this.#block.length) {
      this.#block = this.#cipher.update(ZEROS);
      this.#used = 0;
    }
    this.#used += count;
    return this.#block.subarray(this.#used - count, this.#used);
  }

  /** An integer from 0 to `bound` - 1. */
  below(bound: number): number {
    return this.bytes(4).readUInt32LE() % bound;
  }

  /** So many bytes in lowercase hex. */
  hex(count: number): string {
    return this.bytes(count).toString('hex');
  }

  /** So many bytes in base64. */
  base64(count: number): string {
    return this.bytes(count).toString('base64');
  }
}
