import type { ArchivedVersion } from '../archive/model.ts';
import { ResourceLifecycle } from '../terraform/lifecycle.ts';
import type { Projection } from '../terraform/projection.ts';
import { ResourceTable } from '../terraform/resource-table.ts';
import type { RowFileWriter } from './row-file.ts';
import { addResourceRow, endResourceRow } from './spooled-rows.ts';

/**
 * Derives the resource spans of a history so that the rows left open are those of its current version, wherever that
 * stands (data model 3.7 and 10, trap 13).
 *
 * Up to the current version this is Kilolock's own rule. Versions after it are a branch: what they share with the
 * current version is covered by the open rows; what differs gets rows that close with the branch. An instance that is
 * missing from a later version cannot be told apart there, because its row has to stay open.
 *
 * Holds what is open, whatever the length of the history: each row is put aside as it begins.
 */
export class SpanDerivation {
  readonly #currentSerial: bigint;
  readonly #rows: RowFileWriter | null;
  readonly #trunk = new ResourceLifecycle();
  readonly #branch = new ResourceLifecycle();
  #current = new ResourceTable(0);
  #lastSerial = 0n;
  #count = 0;

  /** @param rows null: the spans are counted only. */
  constructor(currentSerial: bigint, rows: RowFileWriter | null) {
    this.#currentSerial = currentSerial;
    this.#rows = rows;
  }

  /** How many spans there are so far. */
  get count(): number {
    return this.#count;
  }

  /** Takes the next version, in serial order. */
  apply({ serial, createdAt }: ArchivedVersion, projection: Projection): void {
    this.#lastSerial = serial;
    const { table } = projection;
    const rows = this.#rows;
    const changes = {
      open: (row: number) => {
        this.#count += 1;
        if (rows === null) return 0;
        const resource = projection.rowAt(row);
        return addResourceRow(rows, { resource, createSerial: serial, deleteSerial: null, createdAt });
      },
      close: (row: number) => rows && endResourceRow(rows, row, serial),
    };
    if (serial <= this.#currentSerial) this.#trunk.apply(serial, table, changes);
    else {
      this.#branch.apply(serial, table, changes, (row) => this.#current.findSame(table, row) !== -1);
    }
    if (serial === this.#currentSerial) this.#current = table;
  }

  /** Ends the branch, when there is one. To be called once, after the last version. */
  finish(): void {
    const serial = this.#lastSerial + 1n;
    const close = (row: number) => this.#rows && endResourceRow(this.#rows, row, serial);
    this.#branch.apply(serial, new ResourceTable(0), { open: () => 0, close });
  }
}
