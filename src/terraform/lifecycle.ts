import type { ResourceTable } from './resource-table.ts';

/** In place of the number of a row that is open. */
const NOT_OPEN = -1;

/** What is done about the rows of `resources` when a version opens and closes some. */
export interface RowChanges {
  /** Opens a row with the content in this row of the version's table; gives a number to know it by, from 0. */
  open(row: number): number;
  /** Closes the row of this number. */
  close(number: number): void;
}

/**
 * Which resource rows open and close at each version of one state (data model 3.7).
 *
 * Holds the table of the version before and a number for each row of it, whatever the length of the history.
 */
export class ResourceLifecycle {
  #former: { readonly table: ResourceTable; readonly numbers: Float64Array } | null = null;
  #last: bigint | null = null;

  /**
   * Takes the next version. Where the content of an address changed, its row closes and another opens at the same serial. An
   * equal hash keeps the row open, whatever the fields it does not cover.
   *
   * @param isLeftOut rows of the table that are taken for absent.
   * @throws RangeError when `serial` does not rise from call to call.
   */
  apply(
    serial: bigint,
    table: ResourceTable,
    changes: RowChanges,
    isLeftOut: (row: number) => boolean = () => false,
  ): void {
    if (this.#last !== null && serial <= this.#last) {
      throw new RangeError(`Versions must be applied in serial order: ${serial} came after ${this.#last}`);
    }
    this.#last = serial;
    const former = this.#former;
    const numbers = new Float64Array(table.length).fill(NOT_OPEN);
    for (const row of table.rows()) {
      if (isLeftOut(row)) continue;
      const before = former?.table.findSame(table, row) ?? -1;
      const number = former?.numbers[before] ?? NOT_OPEN;
      if (former !== null && number !== NOT_OPEN) {
        former.numbers[before] = NOT_OPEN;
        numbers[row] = number;
      } else numbers[row] = changes.open(row);
    }
    for (const number of former?.numbers ?? []) if (number !== NOT_OPEN) changes.close(number);
    this.#former = { table, numbers };
  }
}
