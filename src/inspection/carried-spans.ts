import { rmSync } from 'node:fs';
import type { ArchivedResource, ArchivedVersion } from '../archive/model.ts';
import type { Projection } from '../terraform/projection.ts';
import type { ResourceTable } from '../terraform/resource-table.ts';
import { endField, endOf, RowFileWriter, readRows, textOf } from './row-file.ts';
import { addResourceRow } from './spooled-rows.ts';

/** In place of the serial that the span over a resource ends at: it lasts; or there is none, or none but one that lasts. */
const LASTS = 0n;
const UNCOVERED = -1n;
const COVERED_BY_CURRENT = -2n;

/**
 * The resource spans an archive carries, and whether they agree with its raw states: whether each version holds, by address
 * and content, just the instances whose spans reach over it (data model 3.7 and 3.9).
 *
 * The carried hashes are not compared: one content has several spellings, and so several hashes, in a natural history
 * (data model 3.6). What is compared is the content itself, by its hash in Terraform's spelling.
 *
 * The spans stand before the versions, so they are put aside as they come, and dealt out as the versions that begin them go
 * by: one span is held at a time.
 */
export class CarriedSpans {
  readonly #path: string;
  readonly #currentSerial: bigint;
  readonly #rows: RowFileWriter | null;
  readonly #aside: RowFileWriter;
  #spans: AsyncGenerator<ArchivedResource, void, void> | null = null;
  #next: ArchivedResource | null = null;
  /** The version before, and where the span that reaches over each of its rows ends; null: no span reaches further. */
  #former: { readonly table: ResourceTable; readonly ends: BigInt64Array } | null = null;
  /** The current version, once it has gone by: the spans that last are those over its rows. */
  #current: ResourceTable | null = null;
  #disagreement: string | null = null;
  #otherHashes = 0;

  /**
   * @param path where the spans are put aside, until {@link close}.
   * @param rows where the rows of `resources` go, as long as the spans agree; null: nowhere.
   */
  constructor(path: string, currentSerial: bigint, rows: RowFileWriter | null) {
    this.#path = path;
    this.#currentSerial = currentSerial;
    this.#rows = rows;
    this.#aside = new RowFileWriter(path);
  }

  /** Why the spans do not agree with the raw states; null while they do. */
  get disagreement(): string | null {
    return this.#disagreement;
  }

  /** How many spans carry another hash than their content has in Terraform's spelling. */
  get otherHashes(): number {
    return this.#otherHashes;
  }

  /** Takes a span the archive carries, in the order they stand there. */
  add(span: ArchivedResource): void {
    const { createSerial, deleteSerial, ...rest } = span;
    const json = JSON.stringify({ ...rest, createSerial: String(createSerial) });
    this.#aside.append([endField(deleteSerial), json]);
  }

  /** Compares the next version, in serial order. All spans have been taken before. */
  async apply({ serial }: Pick<ArchivedVersion, 'serial'>, projection: Projection): Promise<void> {
    if (this.#disagreement !== null) return;
    const { table } = projection;
    const ends = new BigInt64Array(table.length).fill(UNCOVERED);
    let covered = this.#carryOver(serial, table, ends);
    let passedOver = 0;
    for (;;) {
      const span = await this.#peek();
      if (span === null || span.createSerial > serial) break;
      this.#next = null;
      if (span.createSerial < serial) passedOver += 1;
      else {
        const row = table.findAddress(span.address);
        if (row === -1) {
          this.#disagree(`a span begins at serial ${serial} for an address that version does not hold`);
        } else if (ends[row] !== UNCOVERED) {
          this.#disagree(`two spans of one address reach over serial ${serial}`);
        } else this.#compare(serial, span, projection, row);
        if (this.#disagreement !== null) return;
        ends[row] = span.deleteSerial ?? LASTS;
        covered += 1;
        this.#take(span, projection, row);
      }
    }
    if (passedOver > 0) this.#disagree(`${passedOver} spans before serial ${serial} begin at no version`);
    if (covered !== table.size)
      this.#disagree(`serial ${serial} holds an instance that no span reaches over`);
    this.#former = { table, ends };
    if (serial === this.#currentSerial) this.#compareOpen(table, ends);
  }

  /** To be called once, after the last version. */
  async finish(): Promise<void> {
    if (this.#disagreement === null && (await this.#peek()) !== null) {
      this.#disagree('a span begins after the last version');
    }
  }

  /** Lets go of what was put aside. */
  async close(): Promise<void> {
    if (this.#spans === null) this.#aside.close();
    else await this.#spans.return();
    rmSync(this.#path, { force: true });
  }

  async #peek(): Promise<ArchivedResource | null> {
    if (this.#spans === null) {
      this.#aside.close();
      this.#spans = readSpans(this.#path);
    }
    this.#next ??= (await this.#spans.next()).value ?? null;
    return this.#next;
  }

  #disagree(why: string): void {
    this.#disagreement ??= why;
  }

  /** Has the spans over the version before reach over this one, as far as they do; returns over how many of its rows. */
  #carryOver(serial: bigint, table: ResourceTable, ends: BigInt64Array): number {
    const former = this.#former;
    const current = this.#current;
    const reachesOver = (end: bigint) => end === LASTS || end > serial;
    let reaching = 0;
    for (const end of former?.ends ?? []) if (reachesOver(end)) reaching += 1;
    let covered = 0;
    for (const row of table.rows()) {
      const before = former?.table.findSame(table, row) ?? -1;
      const end = former?.ends[before] ?? UNCOVERED;
      if (reachesOver(end)) {
        ends[row] = end;
        reaching -= 1;
      }
      if (current !== null && current.findSame(table, row) !== -1) {
        if (ends[row] !== UNCOVERED) this.#disagree(`two spans of one address reach over serial ${serial}`);
        ends[row] = COVERED_BY_CURRENT;
      }
      if (ends[row] !== UNCOVERED) covered += 1;
    }
    if (reaching > 0) {
      this.#disagree(`a span reaches over serial ${serial} with content that version does not hold`);
    }
    return covered;
  }

  #compare(serial: bigint, span: ArchivedResource, { document, table }: Projection, row: number): void {
    // Rows from before Kilolock knew schema versions say 0 (data model 10, trap 22).
    if (span.schemaVersion !== document.schemaVersionAt(row) && span.schemaVersion !== 0) {
      this.#disagree(`a span at serial ${serial} has another schema version than its instance`);
    }
    if (span.deleteSerial === null && serial > this.#currentSerial) {
      this.#disagree(`a span that lasts begins at serial ${serial}, after the current version`);
    }
    if (span.attributesHash !== table.contentHash(row)) this.#otherHashes += 1;
  }

  #take(
    { attributesHash, schemaVersion, createSerial, deleteSerial, createdAt }: ArchivedResource,
    projection: Projection,
    row: number,
  ): void {
    if (this.#rows === null) return;
    const resource = { ...projection.rowAt(row), attributesHash, schemaVersion };
    addResourceRow(this.#rows, { resource, createSerial, deleteSerial, createdAt });
  }

  /** The rows left open have to be those of the current version; beyond it they stand for that one alone. */
  #compareOpen(table: ResourceTable, ends: BigInt64Array): void {
    for (const row of table.rows()) {
      if (ends[row] === LASTS) continue;
      this.#disagree(
        `the spans that last are not those of the current version, serial ${this.#currentSerial}`,
      );
    }
    this.#current = table;
    this.#former = null;
  }
}

async function* readSpans(path: string): AsyncGenerator<ArchivedResource, void, void> {
  for await (const [end, json] of readRows(path)) {
    const span = JSON.parse(textOf(json));
    yield { ...span, createSerial: BigInt(span.createSerial), deleteSerial: endOf(end) };
  }
}
