import { closeSync, openSync, readSync, rmSync } from 'node:fs';
import type { ArchivedResource, ArchivedVersion } from '../archive/model.ts';
import type { Projection } from '../terraform/projection.ts';
import { endField, endOf, type RowFields, RowFileWriter, RowReader, textOf } from './row-file.ts';
import { SpanAgreement } from './span-agreement.ts';
import type { ResourceRowWriter } from './spooled-rows.ts';

const PIECE_BYTES = 256 * 1024;

/**
 * The resource spans an archive carries, compared with its raw states. They stand before the versions, so they are put
 * aside as they come, and dealt out as the versions that begin them go by: one span is held at a time.
 */
export class CarriedSpans {
  readonly #path: string;
  readonly #rows: ResourceRowWriter | null;
  readonly #agreement: SpanAgreement;
  #aside: RowFileWriter | null;
  #spans: Generator<ArchivedResource, void, void> | null = null;
  #next: ArchivedResource | null = null;

  /**
   * @param path where the spans are put aside, until {@link close}.
   * @param rows where the rows of `resources` go, as long as the spans agree; null: nowhere.
   */
  constructor(path: string, currentSerial: bigint, rows: ResourceRowWriter | null) {
    this.#path = path;
    this.#rows = rows;
    this.#agreement = new SpanAgreement(currentSerial);
    this.#aside = new RowFileWriter(path);
  }

  /** Why the spans do not agree with the raw states; null while they do. */
  get disagreement(): string | null {
    return this.#agreement.disagreement;
  }

  /** How many spans carry another hash than their content has in Terraform's spelling. */
  get otherHashes(): number {
    return this.#agreement.otherHashes;
  }

  /** Takes a span the archive carries, in the order they stand there. */
  add(span: ArchivedResource): void {
    const { createSerial, deleteSerial, ...rest } = span;
    const json = JSON.stringify({ ...rest, createSerial: String(createSerial) });
    this.#aside?.append([endField(deleteSerial), json]);
  }

  /** Compares the next version, in serial order. All spans have been taken before. */
  apply({ serial }: ArchivedVersion, projection: Projection): void {
    if (this.disagreement !== null) return;
    this.#agreement.check(serial, projection, this.#begunAt(serial), (span, row) => {
      if (this.#rows === null) return;
      const { attributesHash, schemaVersion, createSerial, deleteSerial, createdAt } = span;
      const resource = { ...projection.rowAt(row), attributesHash, schemaVersion };
      this.#rows.add({ resource, createSerial, deleteSerial, createdAt });
    });
  }

  /** To be called once, after the last version. */
  finish(): void {
    if (this.disagreement === null && this.#peek() !== null) {
      this.#agreement.disagree('a span begins after the last version');
    }
  }

  /** Lets go of what was put aside. */
  close(): void {
    this.#aside?.close();
    this.#spans?.return();
    rmSync(this.#path, { force: true });
  }

  *#begunAt(serial: bigint): Generator<ArchivedResource, void, void> {
    let passedOver = 0;
    for (let span = this.#peek(); span !== null && span.createSerial <= serial; span = this.#peek()) {
      this.#next = null;
      if (span.createSerial === serial) yield span;
      else passedOver += 1;
    }
    if (passedOver > 0) {
      this.#agreement.disagree(`${passedOver} spans before serial ${serial} begin at no version`);
    }
  }

  #peek(): ArchivedResource | null {
    if (this.#spans === null) {
      this.#aside?.close();
      this.#aside = null;
      this.#spans = readSpans(this.#path);
    }
    this.#next ??= this.#spans.next().value ?? null;
    return this.#next;
  }
}

function* readSpans(path: string): Generator<ArchivedResource, void, void> {
  const file = openSync(path, 'r');
  try {
    const reader = new RowReader();
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    for (let length = readSync(file, piece); length > 0; length = readSync(file, piece)) {
      for (const fields of reader.push(piece.subarray(0, length))) yield spanOf(fields);
    }
  } finally {
    closeSync(file);
  }
}

function spanOf([end, json]: RowFields): ArchivedResource {
  const span = JSON.parse(textOf(json));
  return { ...span, createSerial: BigInt(span.createSerial), deleteSerial: endOf(end) };
}
