import type { ArchivedResource } from '../archive/model.ts';
import type { Projection } from '../terraform/projection.ts';
import type { ResourceTable } from '../terraform/resource-table.ts';

/** In place of the serial that the span over a resource ends at: it lasts; or there is none, or none but one that lasts. */
const LASTS = 0n;
const UNCOVERED = -1n;
const COVERED_BY_CURRENT = -2n;

/**
 * Whether the resource spans an archive carries agree with its raw states: whether each version holds, by address and
 * content, just the instances whose spans reach over it (data model 3.7 and 3.9).
 *
 * The carried hashes are not compared: one content has several spellings, and so several hashes, in a natural history
 * (data model 3.6). What is compared is the content itself, by its hash in Terraform's spelling.
 */
export class SpanAgreement {
  readonly #currentSerial: bigint;
  /** The version before, and where the span that reaches over each of its rows ends; null: no span reaches further. */
  #former: { readonly table: ResourceTable; readonly ends: BigInt64Array } | null = null;
  /** The current version, once it has gone by: the spans that last are those over its rows. */
  #current: ResourceTable | null = null;
  #disagreement: string | null = null;
  #otherHashes = 0;

  constructor(currentSerial: bigint) {
    this.#currentSerial = currentSerial;
  }

  /** Why the spans do not agree with the raw states; null while they do. */
  get disagreement(): string | null {
    return this.#disagreement;
  }

  /** How many spans carry another hash than their content has in Terraform's spelling. */
  get otherHashes(): number {
    return this.#otherHashes;
  }

  /**
   * Compares the next version, in serial order, with the spans that begin at it.
   *
   * @param take is given each of them with the row it begins with, as long as they agree.
   */
  check(
    serial: bigint,
    projection: Projection,
    begun: Iterable<ArchivedResource>,
    take: (span: ArchivedResource, row: number) => void,
  ): void {
    const { table } = projection;
    const ends = new BigInt64Array(table.length).fill(UNCOVERED);
    let covered = this.#carryOver(serial, table, ends);
    for (const span of begun) {
      const row = table.findAddress(span.address);
      if (row === -1) {
        this.disagree(`a span begins at serial ${serial} for an address that version does not hold`);
      } else if (ends[row] !== UNCOVERED) {
        this.disagree(`two spans of one address reach over serial ${serial}`);
      } else this.#compare(serial, span, projection, row);
      if (this.#disagreement !== null) return;
      ends[row] = span.deleteSerial ?? LASTS;
      covered += 1;
      take(span, row);
    }
    if (covered !== table.size) this.disagree(`serial ${serial} holds an instance that no span reaches over`);
    this.#former = { table, ends };
    if (serial === this.#currentSerial) this.#compareOpen(table, ends);
  }

  /** Notes that the spans could not be dealt out beside the versions. */
  disagree(why: string): void {
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
      const before = former?.table.find(table, row) ?? -1;
      const end = former?.ends[before] ?? UNCOVERED;
      const lasting = current?.find(table, row) ?? -1;
      if (reachesOver(end) && former?.table.hasSameContent(before, table, row)) {
        ends[row] = end;
        reaching -= 1;
      }
      if (lasting !== -1 && current?.hasSameContent(lasting, table, row)) {
        if (ends[row] !== UNCOVERED) this.disagree(`two spans of one address reach over serial ${serial}`);
        ends[row] = COVERED_BY_CURRENT;
      }
      if (ends[row] !== UNCOVERED) covered += 1;
    }
    if (reaching > 0) {
      this.disagree(`a span reaches over serial ${serial} with content that version does not hold`);
    }
    return covered;
  }

  #compare(serial: bigint, span: ArchivedResource, { document, table }: Projection, row: number): void {
    // Rows from before Kilolock knew schema versions say 0 (data model 10, trap 22).
    if (span.schemaVersion !== document.schemaVersionAt(row) && span.schemaVersion !== 0) {
      this.disagree(`a span at serial ${serial} has another schema version than its instance`);
    }
    if (span.deleteSerial === null && serial > this.#currentSerial) {
      this.disagree(`a span that lasts begins at serial ${serial}, after the current version`);
    }
    if (span.attributesHash !== table.contentHash(row)) this.#otherHashes += 1;
  }

  /** The rows left open have to be those of the current version; beyond it they stand for that one alone. */
  #compareOpen(table: ResourceTable, ends: BigInt64Array): void {
    for (const row of table.rows()) {
      if (ends[row] === LASTS) continue;
      this.disagree(
        `the spans that last are not those of the current version, serial ${this.#currentSerial}`,
      );
    }
    this.#current = table;
    this.#former = null;
  }
}
