/**
 * Pulls wanted numbers of bytes out of a stream of chunks, holding no more than one chunk. What it gives is there until more is
 * asked for.
 */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array, unknown, undefined>;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Up to `limit` bytes, at least one; null at the end of the stream. */
  async some(limit: number): Promise<Uint8Array | null> {
    while (this.#chunk.length === 0) {
      const next = await this.#source.next();
      if (next.done === true) return null;
      this.#chunk = next.value;
    }
    return this.#take(limit);
  }

  /** `length` bytes; fewer only at the end of the stream. */
  async exactly(length: number): Promise<Uint8Array> {
    if (this.#chunk.length >= length) return this.#take(length);
    const pieces: Uint8Array[] = [];
    let missing = length;
    while (missing > 0) {
      const piece = await this.some(missing);
      if (piece === null) break;
      pieces.push(Buffer.from(piece));
      missing -= piece.length;
    }
    return Buffer.concat(pieces);
  }

  #take(limit: number): Uint8Array {
    const piece = this.#chunk.subarray(0, limit);
    this.#chunk = this.#chunk.subarray(piece.length);
    return piece;
  }

  /** Gives bytes back, to be read again before anything else. */
  unread(bytes: Uint8Array): void {
    this.#chunk = this.#chunk.length === 0 ? bytes : Buffer.concat([bytes, this.#chunk]);
  }

  /** What is left, chunk by chunk. Leaving the loop closes the source. */
  async *rest(): AsyncGenerator<Uint8Array, void, void> {
    try {
      for (let chunk = await this.some(Infinity); chunk !== null; chunk = await this.some(Infinity))
        yield chunk;
    } finally {
      await this.close();
    }
  }

  /** Ends the source early, so that it lets go of what it holds. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }
}
