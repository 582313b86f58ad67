import type { OffsetTable } from './offset-table.ts';

/**
 * Finds for the elements of a list, as they come, the one of the document before that each may repeat: the one that follows
 * the last one found, or else the one of the same identity. A wrong answer costs a comparison, a missing one a scan.
 */
export class Predecessors {
  readonly #table: OffsetTable;
  readonly #identityColumn: number;
  #begin = 0;
  #end: number;
  #next = 0;
  /** The rows of the whole table by identity, made when the first one is out of line. */
  #byIdentity: Map<number, number> | null = null;

  constructor(table: OffsetTable, length: number, identityColumn: number) {
    this.#table = table;
    this.#end = length;
    this.#identityColumn = identityColumn;
  }

  /** Looks from now on among the `count` rows from `first` on. */
  lookWithin(first: number, count: number): void {
    this.#begin = first;
    this.#next = first;
    this.#end = first + count;
  }

  /** The row that follows the last one found; -1 after the last. */
  get next(): number {
    return this.#next < this.#end ? this.#next : -1;
  }

  /** The row of this identity, which counts as found; -1 when there is none. */
  find(identity: number): number {
    const row = this.#rowOf(identity);
    if (row !== -1) this.found(row);
    return row;
  }

  found(row: number): void {
    this.#next = row + 1;
  }

  #rowOf(identity: number): number {
    const { next } = this;
    if (next !== -1 && this.#table.get(next, this.#identityColumn) === identity) return next;
    this.#byIdentity ??= this.#index();
    const row = this.#byIdentity.get(identity) ?? -1;
    return row >= this.#begin && row < this.#end ? row : -1;
  }

  #index(): Map<number, number> {
    const rows = new Map<number, number>();
    for (let row = 0; row < this.#table.length; row++) {
      rows.set(this.#table.get(row, this.#identityColumn), row);
    }
    return rows;
  }
}
