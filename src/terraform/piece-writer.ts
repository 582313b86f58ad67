const PIECE_SIZE = 65_536;
/** Shorter runs are copied byte by byte: asking the runtime for it would cost more than the copy. */
const LONG_RUN = 48;

const nowhere = () => {};

/** Gathers bytes and hands them on in pieces of a useful size. One object serves any number of texts. */
export class PieceWriter {
  readonly #piece = Buffer.allocUnsafe(PIECE_SIZE);
  #used = 0;
  #write: (piece: Buffer) => void = nowhere;

  /** Begins a text. `write` takes its pieces, each valid during the call only. */
  begin(write: (piece: Buffer) => void): void {
    this.#used = 0;
    this.#write = write;
  }

  /** Hands on what is left of the text. */
  end(): void {
    this.#flush();
    this.#write = nowhere;
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
  copy(from: Buffer, start: number, end: number): void {
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

  #flush(): void {
    if (this.#used > 0) this.#write(this.#piece.subarray(0, this.#used));
    this.#used = 0;
  }
}
