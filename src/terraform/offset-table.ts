const MIN_ROWS = 64;
const KEPT_ROWS = 65_536;

/**
 * Rows of positions in a document, a few integers each, kept outside the JavaScript heap. In a column that a table lacks stands
 * 0, whatever is set there: what nobody will ask for takes no memory.
 */
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

  /** Sorts the rows from `first` on, in a table of one column; equal ones keep their order. */
  sortFrom(first: number, compare: (a: number, b: number) => number): void {
    this.#cells.subarray(first, this.#rows).sort(compare);
  }

  /** Forgets the rows from `length` on. An empty table gives back what a large one took. */
  truncate(length: number): void {
    if (length === 0 && this.#rows > KEPT_ROWS) this.#cells = new Int32Array(MIN_ROWS * this.#width);
    else this.#cells.fill(0, length * this.#width, this.#rows * this.#width);
    this.#rows = length;
  }

  get(row: number, column: number): number {
    return column < this.#width ? (this.#cells[row * this.#width + column] ?? 0) : 0;
  }

  set(row: number, column: number, value: number): void {
    if (column < this.#width) this.#cells[row * this.#width + column] = value;
  }
}
