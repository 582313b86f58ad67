import { ResourceLifecycle } from '../terraform/lifecycle.ts';
import type { ResourcesByAddress } from '../terraform/projection.ts';

/**
 * Derives the resource spans of a history so that the rows left open are those of its current version, wherever that
 * stands (data model 3.7 and 10, trap 13).
 *
 * Up to the current version this is Kilolock's own rule. Versions after it are a branch: what they share with the
 * current version is covered by the open rows; what differs gets rows that close with the branch. An instance that is
 * missing from a later version cannot be told apart there, because its row has to stay open.
 */
export class SpanDerivation {
  readonly #currentSerial: bigint;
  readonly #trunk = new Line();
  readonly #branch = new Line();
  /** Hash of each instance of the current version, by address. */
  #current: ReadonlyMap<string, string> = new Map();
  #lastSerial = 0n;

  constructor(currentSerial: bigint) {
    this.#currentSerial = currentSerial;
  }

  /** How many spans there are so far. */
  get count(): number {
    return this.#trunk.count + this.#branch.count;
  }

  /** Takes the next version, in serial order. */
  apply(serial: bigint, resources: ResourcesByAddress): void {
    this.#lastSerial = serial;
    if (serial > this.#currentSerial) {
      const differing = [...resources].filter(
        ([address, resource]) => this.#current.get(address) !== resource.attributesHash,
      );
      this.#branch.apply(serial, new Map(differing));
      return;
    }
    if (serial === this.#currentSerial) {
      this.#current = new Map(
        [...resources].map(([address, resource]) => [address, resource.attributesHash]),
      );
    }
    this.#trunk.apply(serial, resources);
  }

  /** Ends the branch, when there is one. To be called once, after the last version. */
  finish(): void {
    this.#branch.apply(this.#lastSerial + 1n, new Map());
  }

  /** Whether a span of `address` begins at `serial`. To be asked after `finish`. */
  beginsAt(address: string, serial: bigint): boolean {
    return this.#lineOf(serial).beginsAt(address, serial);
  }

  /** The serial at which the span of `address` that began at `createSerial` ends, or null when it lasts. */
  endOf(address: string, createSerial: bigint): bigint | null {
    return this.#lineOf(createSerial).endOf(address, createSerial);
  }

  #lineOf(serial: bigint): Line {
    return serial > this.#currentSerial ? this.#branch : this.#trunk;
  }
}

/** One run of versions, and where its spans end. */
class Line {
  readonly #lifecycle = new ResourceLifecycle();
  readonly #openSince = new Map<string, bigint>();
  readonly #ends = new Map<string, Map<bigint, bigint>>();
  count = 0;

  apply(serial: bigint, resources: ResourcesByAddress): void {
    const { opened, closed } = this.#lifecycle.apply(serial, resources);
    for (const address of closed) this.#close(address, serial);
    for (const { address } of opened) this.#openSince.set(address, serial);
    this.count += opened.length;
  }

  beginsAt(address: string, serial: bigint): boolean {
    return this.#openSince.get(address) === serial || this.endOf(address, serial) !== null;
  }

  endOf(address: string, createSerial: bigint): bigint | null {
    return this.#ends.get(address)?.get(createSerial) ?? null;
  }

  #close(address: string, serial: bigint): void {
    const createSerial = this.#openSince.get(address);
    if (createSerial === undefined) return;
    this.#openSince.delete(address);
    const ends = this.#ends.get(address) ?? new Map<bigint, bigint>();
    this.#ends.set(address, ends.set(createSerial, serial));
  }
}
