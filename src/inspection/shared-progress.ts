import type { HistoryProgress } from '../archive/model.ts';

const CELL = { serial: 0, versions: 1, bytes: 2, count: 3 } as const;
/** In place of a serial. */
const NONE = -1n;

/**
 * How far a thread is with an archive, kept where another can look at any time: to tell of each of a hundred thousand
 * versions would take longer than the versions do.
 */
export class SharedProgress {
  /** To be handed to the other thread. */
  readonly memory: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  /** @param memory that of the progress to share; without it there is a new one. */
  constructor(
    memory: SharedArrayBuffer = new SharedArrayBuffer(CELL.count * BigInt64Array.BYTES_PER_ELEMENT),
  ) {
    this.memory = memory;
    this.#cells = new BigInt64Array(memory);
    this.restart();
  }

  /** The serial of the version at hand; null before the first. */
  get serial(): bigint | null {
    const serial = Atomics.load(this.#cells, CELL.serial);
    return serial === NONE ? null : serial;
  }

  get passed(): HistoryProgress {
    return {
      versions: Number(Atomics.load(this.#cells, CELL.versions)),
      bytes: Atomics.load(this.#cells, CELL.bytes),
    };
  }

  /** Notes that the archive is read from its beginning. */
  restart(): void {
    Atomics.store(this.#cells, CELL.serial, NONE);
    Atomics.store(this.#cells, CELL.versions, 0n);
    Atomics.store(this.#cells, CELL.bytes, 0n);
  }

  /** Notes which version is at hand. */
  begin(serial: bigint): void {
    Atomics.store(this.#cells, CELL.serial, serial);
  }

  /** Notes that it has passed. */
  end(byteLength: number): void {
    Atomics.add(this.#cells, CELL.versions, 1n);
    Atomics.add(this.#cells, CELL.bytes, BigInt(byteLength));
  }
}
