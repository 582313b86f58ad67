import { createHash } from 'node:crypto';

/** Bytes on their way, and what is known of them once they have gone by: their digest and their length. */
export class Digested implements AsyncIterable<Uint8Array> {
  readonly #source: AsyncIterable<Uint8Array>;
  readonly #hash = createHash('sha256');
  /** How many bytes have gone by. */
  length = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of this.#source) {
      this.#hash.update(chunk);
      this.length += chunk.length;
      yield chunk;
    }
  }

  /** The SHA-256 in lower-case hex. To be asked for once. */
  sha256(): string {
    return this.#hash.digest('hex');
  }
}
