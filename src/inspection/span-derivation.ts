import type { ArchivedVersion } from '../archive/model.ts';
import { present } from '../base/invariant.ts';
import { ResourceLifecycle } from '../terraform/lifecycle.ts';
import type { Projection, ResourceSummary, ResourcesByAddress } from '../terraform/projection.ts';
import type { ResourceRowWriter } from './spooled-rows.ts';

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
  readonly #trunk: Line;
  readonly #branch: Line;
  /** Hash of each instance of the current version, by address. */
  #current: ReadonlyMap<string, string> = new Map();
  #lastSerial = 0n;

  /** @param rows null: the spans are counted only. */
  constructor(currentSerial: bigint, rows: ResourceRowWriter | null) {
    this.#currentSerial = currentSerial;
    this.#trunk = new Line(rows);
    this.#branch = new Line(rows);
  }

  /** How many spans there are so far. */
  get count(): number {
    return this.#trunk.count + this.#branch.count;
  }

  /** Takes the next version, in serial order. */
  apply(version: ArchivedVersion, projection: Projection): void {
    const { serial } = version;
    this.#lastSerial = serial;
    if (serial > this.#currentSerial) {
      const differing = [...projection].filter(
        ([address, resource]) => this.#current.get(address) !== resource.attributesHash,
      );
      this.#branch.apply(version, new Map(differing), projection);
      return;
    }
    if (serial === this.#currentSerial) {
      this.#current = new Map(
        Array.from(projection, ([address, resource]) => [address, resource.attributesHash]),
      );
    }
    this.#trunk.apply(version, projection, projection);
  }

  /** Ends the branch, when there is one. To be called once, after the last version. */
  finish(): void {
    this.#branch.end(this.#lastSerial + 1n);
  }
}

/** One run of versions. */
class Line {
  readonly #rows: ResourceRowWriter | null;
  readonly #lifecycle = new ResourceLifecycle();
  /** Where the row of each address that is open was put aside. */
  readonly #open = new Map<string, number>();
  count = 0;

  constructor(rows: ResourceRowWriter | null) {
    this.#rows = rows;
  }

  /** @param projection where the rows of `resources` are. */
  apply({ serial, createdAt }: ArchivedVersion, resources: ResourcesByAddress, projection: Projection): void {
    for (const { address } of this.#settle(serial, resources)) {
      const resource = this.#rows && present(projection.row(address), 'it opens with this version');
      if (resource === null) continue;
      const row = { resource, createSerial: serial, deleteSerial: null, createdAt };
      this.#open.set(address, this.#rows?.add(row) ?? 0);
    }
  }

  /** Ends what is open. */
  end(serial: bigint): void {
    this.#settle(serial, new Map());
  }

  /** Closes what ends at `serial`, and gives what begins there. */
  #settle(serial: bigint, resources: ResourcesByAddress): ResourceSummary[] {
    const { opened, closed } = this.#lifecycle.apply(serial, resources);
    this.count += opened.length;
    for (const address of closed) {
      const row = this.#open.get(address);
      if (row !== undefined) this.#rows?.end(row, serial);
      this.#open.delete(address);
    }
    return opened;
  }
}
