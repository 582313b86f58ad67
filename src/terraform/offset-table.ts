const MIN_ROWS = 64;
const KEPT_ROWS = 65_536;

/** Of a column in which nothing but zeros stands. */
const ZEROS = new Int32Array(0);

/** Rows of positions in a document, a few integers each, kept outside the JavaScript heap: what is 0 in every row takes none. */
export class OffsetTable {
  readonly #columns: Int32Array<ArrayBuffer>[];
  /** How many rows there is room for. */
  #room: number;
  #rows = 0;

  /** @param rows how many there will be, as far as that can be known. */
  constructor(width: number, rows = 0) {
    this.#columns = Array.from({ length: width }, () => ZEROS);
    this.#room = Math.max(rows, MIN_ROWS);
  }

  /** The number of rows. */
  get length(): number {
    return this.#rows;
  }

  /** Adds a row of zeros and returns its number. */
  add(): number {
    if (this.#rows === this.#room) this.#grow();
    return this.#rows++;
  }

  /** Makes `row` the same as a row of `other`, a table of the same width. */
  copy(row: number, other: OffsetTable, otherRow: number): void {
    for (let column = 0; column < this.#columns.length; column++) {
      this.set(row, column, other.get(otherRow, column));
    }
  }

  /** Sorts the rows from `first` on, in a table of one column; equal ones keep their order. */
  sortFrom(first: number, compare: (a: number, b: number) => number): void {
    this.#columns[0]?.subarray(first, this.#rows).sort(compare);
  }

  /** Forgets the rows from `length` on. An empty table gives back what a large one took. */
  truncate(length: number): void {
    if (length === 0 && this.#rows > KEPT_ROWS) {
      this.#columns.fill(ZEROS);
      this.#room = MIN_ROWS;
    } else for (const cells of this.#columns) cells.fill(0, length, this.#rows);
    this.#rows = length;
  }

  get(row: number, column: number): number {
    return this.#columns[column]?.[row] ?? 0;
  }

  set(row: number, column: number, value: number): void {
    let cells = this.#columns[column] ?? ZEROS;
    if (cells === ZEROS) {
      if (value === 0) return;
      cells = new Int32Array(this.#room);
      this.#columns[column] = cells;
    }
    cells[row] = value;
  }

  #grow(): void {
    this.#room *= 2;
    for (const [column, cells] of this.#columns.entries()) {
      if (cells === ZEROS) continue;
      const grown = new Int32Array(this.#room);
      grown.set(cells);
      this.#columns[column] = grown;
    }
  }
}
