const MIN_ROWS = 64;

/** Rows of positions in a document, a few integers each, kept outside the JavaScript heap. */
export class OffsetTable {
  readonly #width: number;
  #cells: Int32Array;
  #rows = 0;

  /** @param rows how many there will be, as far as that can be known. */
  constructor(width: number, rows = 0) {
    this.#width = width;
    this.#cells = new Int32Array(Math.max(rows, MIN_ROWS) * width);
  }

  /** The number of rows. */
  get length(): number {
    return this.#rows;
  }

  /** Adds a row of zeros and returns its number. */
  add(): number {
    const needed = (this.#rows + 1) * this.#width;
    if (needed > this.#cells.length) {
      const grown = new Int32Array(this.#cells.length * 2);
      grown.set(this.#cells);
      this.#cells = grown;
    }
    return this.#rows++;
  }

  /** Makes `row` the same as a row of `other`, a table of the same width. */
  copy(row: number, other: OffsetTable, otherRow: number): void {
    const width = this.#width;
    const cells = this.#cells;
    const from = other.#cells;
    for (let i = 0; i < width; i++) cells[row * width + i] = from[otherRow * width + i] ?? 0;
  }

  /** Forgets the rows from `length` on. */
  truncate(length: number): void {
    this.#cells.fill(0, length * this.#width, this.#rows * this.#width);
    this.#rows = length;
  }

  get(row: number, column: number): number {
    return this.#cells[row * this.#width + column] ?? 0;
  }

  set(row: number, column: number, value: number): void {
    this.#cells[row * this.#width + column] = value;
  }
}
