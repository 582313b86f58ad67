import type { ArchivedResource } from '../archive/model.ts';
import type { ResourceSummary, ResourcesByAddress } from '../terraform/projection.ts';

/**
 * Whether the resource spans an archive carries agree with its raw states: whether each version holds, by address and
 * content, just the instances whose spans reach over it (data model 3.7 and 3.9).
 *
 * The carried hashes are not compared: one content has several spellings, and so several hashes, in a natural history
 * (data model 3.6). What is compared is the content itself, by its hash in Terraform's spelling.
 */
export class SpanAgreement {
  readonly #currentSerial: bigint;
  /** The spans that reach over the version at hand; beyond the current version without those that last. */
  readonly #alive = new Set<AliveSpan>();
  /** The content of the spans that last, by address; none before the current version has gone by. */
  #lasting: ReadonlyMap<string, string> = new Map();
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

  /** Compares the next version, in serial order, with the spans that begin at it. */
  check(serial: bigint, begun: readonly ArchivedResource[], resources: ResourcesByAddress): void {
    if (this.#disagreement !== null) return;
    for (const span of this.#alive) {
      if (span.deleteSerial !== null && span.deleteSerial <= serial) this.#alive.delete(span);
    }
    for (const span of begun) this.#begin(serial, span, resources.get(span.address));
    this.#compare(serial, resources);
  }

  /** Notes that the spans could not be dealt out beside the versions. */
  disagree(why: string): void {
    this.#disagreement ??= why;
  }

  #begin(serial: bigint, span: ArchivedResource, resource: ResourceSummary | undefined): void {
    if (resource === undefined) {
      this.disagree(`a span begins at serial ${serial} for an address that version does not hold`);
      return;
    }
    // Rows from before Kilolock knew schema versions say 0 (data model 10, trap 22).
    if (span.schemaVersion !== resource.schemaVersion && span.schemaVersion !== 0) {
      this.disagree(`a span at serial ${serial} has another schema version than its instance`);
    }
    if (span.deleteSerial === null && serial > this.#currentSerial) {
      this.disagree(`a span that lasts begins at serial ${serial}, after the current version`);
    }
    if (span.attributesHash !== resource.attributesHash) this.#otherHashes += 1;
    const { address, deleteSerial } = span;
    this.#alive.add({ address, deleteSerial, content: resource.attributesHash });
  }

  #compare(serial: bigint, resources: ResourcesByAddress): void {
    const covered = new Set<string>();
    for (const { address, content } of this.#alive) {
      if (resources.get(address)?.attributesHash === content) {
        if (covered.has(address)) this.disagree(`two spans of one address reach over serial ${serial}`);
        covered.add(address);
      } else {
        this.disagree(`a span reaches over serial ${serial} with content that version does not hold`);
      }
    }
    // Looked up and not gone through: a current version of a million instances may have thousands of small ones behind it.
    for (const [address, { attributesHash }] of resources) {
      if (this.#lasting.get(address) !== attributesHash) continue;
      if (covered.has(address)) this.disagree(`two spans of one address reach over serial ${serial}`);
      covered.add(address);
    }
    if (covered.size !== resources.size) {
      this.disagree(`serial ${serial} holds an instance that no span reaches over`);
    }
    if (serial === this.#currentSerial) this.#compareOpen(resources);
  }

  /** The rows left open have to be those of the current version; beyond it they stand for that one alone. */
  #compareOpen(resources: ResourcesByAddress): void {
    const open = [...this.#alive].filter(({ deleteSerial }) => deleteSerial === null);
    if (open.length !== resources.size) {
      this.disagree(
        `the spans that last are not those of the current version, serial ${this.#currentSerial}`,
      );
    }
    this.#lasting = new Map(open.map(({ address, content }) => [address, content]));
    for (const span of open) this.#alive.delete(span);
  }
}

interface AliveSpan {
  readonly address: string;
  readonly deleteSerial: bigint | null;
  /** The hash of the content in Terraform's spelling. */
  readonly content: string;
}
