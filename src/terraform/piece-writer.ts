const PIECE_SIZE = 65_536;
/** Shorter runs are copied byte by byte: asking the runtime for it would cost more than the copy. */
const LONG_RUN = 48;
/** No character of UTF-16 takes more bytes of UTF-8. */
const BYTES_A_CHARACTER = 3;

/** Gathers bytes and hands them on in pieces of a useful size. */
export class PieceWriter {
  readonly #piece = Buffer.allocUnsafe(PIECE_SIZE);
  readonly #write: (piece: Buffer) => void;
  #used = 0;

  /** @param write takes the pieces, each valid during the call only. */
  constructor(write: (piece: Buffer) => void) {
    this.#write = write;
  }

  /** Takes what has not been handed on yet; valid until something is added. */
  takeRest(): Buffer {
    const rest = this.#piece.subarray(0, this.#used);
    this.#used = 0;
    return rest;
  }

  byte(byte: number): void {
    if (this.#used === PIECE_SIZE) this.#flush();
    this.#piece[this.#used++] = byte;
  }

  /** Adds the same byte `count` times. */
  repeat(byte: number, count: number): void {
    let left = count;
    while (left > 0) {
      if (this.#used === PIECE_SIZE) this.#flush();
      const piece = this.#piece;
      const end = Math.min(this.#used + left, PIECE_SIZE);
      left -= end - this.#used;
      let used = this.#used;
      while (used < end) piece[used++] = byte;
      this.#used = used;
    }
  }

  /** Adds the bytes of `from` between `start` and `end`. */
  copy(from: Buffer, start = 0, end = from.length): void {
    const length = end - start;
    if (length > PIECE_SIZE - this.#used) this.#flush();
    if (length > PIECE_SIZE) this.#write(from.subarray(start, end));
    else if (length >= LONG_RUN) this.#used += from.copy(this.#piece, this.#used, start, end);
    else {
      const piece = this.#piece;
      let used = this.#used;
      for (let p = start; p < end; p++) piece[used++] = from[p] ?? 0;
      this.#used = used;
    }
  }

  /** Adds text as UTF-8. */
  text(text: string): void {
    const room = text.length * BYTES_A_CHARACTER;
    if (room > PIECE_SIZE) this.copy(Buffer.from(text));
    else {
      if (room > PIECE_SIZE - this.#used) this.#flush();
      this.#used += this.#piece.write(text, this.#used);
    }
  }

  #flush(): void {
    const rest = this.takeRest();
    if (rest.length > 0) this.#write(rest);
  }
}
