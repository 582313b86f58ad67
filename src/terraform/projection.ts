import { present } from '../base/invariant.ts';
import { attributesHash } from './attributes-hash.ts';
import type { ResourceInstance, StateDocument } from './document.ts';
import { goJson } from './go-json.ts';
import { INSTANCE } from './state-index.ts';
import { TerraformLayout } from './terraform-layout.ts';

export { type AttributesHashFields, attributesHash } from './attributes-hash.ts';

/**
 * Which spelling of `attributes` and `sensitive_attributes` is hashed (data model 3.6 and 3.9):
 *
 * - `as-written`: the bytes of the document, as Kilolock does with an uploaded one;
 * - `terraform`: the bytes Terraform would have uploaded, recovered from jsonb's text.
 *
 * For a document as Terraform writes it, both give the same hashes.
 */
export type AttributeLayout = 'as-written' | 'terraform';

/** What is known of a resource without a look into its document; it keeps no document alive. */
export interface ResourceSummary {
  readonly address: string;
  /** Lowercase hex SHA-256 (data model 3.5). */
  readonly attributesHash: string;
  readonly schemaVersion: number;
}

/** An instance as a row of `resources`. Its `attributes` stay the document's bytes under either layout. */
export interface ProjectedResource extends ResourceInstance, ResourceSummary {
  /** Text for the `dependencies_raw` column: the list in Go's compact JSON, order kept. */
  readonly dependenciesRaw: string;
}

/** Resources of one version by address, in document order. */
export interface ResourcesByAddress<Resource extends ResourceSummary = ResourceSummary> {
  readonly size: number;
  has(address: string): boolean;
  get(address: string): Resource | undefined;
  [Symbol.iterator](): Iterator<[address: string, resource: Resource]>;
}

/**
 * The resources of one version. Of several instances with one address the last counts, so that a deposed object hides the
 * current one, as it does in Kilolock (data model 3.1).
 */
export class Projection implements ResourcesByAddress {
  readonly document: StateDocument;
  /** By the rows of the document's index. */
  readonly summaries: readonly ResourceSummary[];
  /** The addresses that have a deposed object, each once. */
  readonly deposedAddresses: readonly string[];
  /** The addresses among those that have no current object. */
  readonly deposedAlone: ReadonlySet<string>;
  /** The addresses that several instances have that are not deposed, each once. */
  readonly repeatedAddresses: readonly string[];
  /** The instances that count, as rows of the document's index. */
  readonly #rows: ReadonlyMap<string, number>;

  /**
   * @param summaries by the rows of the document's index.
   * @param former the projection of the version before; most versions have the same addresses.
   */
  constructor(document: StateDocument, summaries: readonly ResourceSummary[], former: Projection | null) {
    this.document = document;
    this.summaries = summaries;
    this.#rows = former !== null && this.#hasAddressesOf(former) ? former.#rows : this.#rowsByAddress();
    const shared = this.#sharedAddresses();
    const deposed = new Set<string>();
    const current = new Set<string>();
    const repeated = new Set<string>();
    for (const row of shared.size > 0 ? document.rows() : []) {
      const { address } = this.#summaryAt(row);
      if (!shared.has(address)) continue;
      if (this.#isDeposed(row)) deposed.add(address);
      else if (current.has(address)) repeated.add(address);
      else current.add(address);
    }
    this.deposedAddresses = [...deposed];
    this.deposedAlone = new Set(this.deposedAddresses.filter((address) => !current.has(address)));
    this.repeatedAddresses = [...repeated];
  }

  /** How many resources there are. */
  get size(): number {
    return this.#rows.size;
  }

  has(address: string): boolean {
    return this.#rows.has(address);
  }

  get(address: string): ResourceSummary | undefined {
    const row = this.#rows.get(address);
    return row === undefined ? undefined : this.summaries[row];
  }

  *[Symbol.iterator](): Generator<[address: string, resource: ResourceSummary]> {
    for (const [address, row] of this.#rows) yield [address, this.#summaryAt(row)];
  }

  /** The whole row of a resource, read from the document, whose bytes must not have changed. */
  row(address: string): ProjectedResource | undefined {
    const row = this.#rows.get(address);
    return row === undefined ? undefined : this.#rowAt(row);
  }

  /** The whole rows of all resources, in document order. */
  *rows(): Generator<ProjectedResource> {
    for (const row of this.#rows.values()) yield this.#rowAt(row);
  }

  #rowAt(row: number): ProjectedResource {
    const { attributesHash } = this.#summaryAt(row);
    return { ...withDependencies(this.document.instanceAt(row)), attributesHash };
  }

  #summaryAt(row: number): ResourceSummary {
    return present(this.summaries[row], 'every instance has a summary');
  }

  #isDeposed(row: number): boolean {
    return this.document.index.instances.get(row, INSTANCE.deposed) !== 0;
  }

  #rowsByAddress(): Map<string, number> {
    const rows = new Map<string, number>();
    for (const row of this.document.rows()) rows.set(this.#summaryAt(row).address, row);
    return rows;
  }

  /** Whether the same addresses stand at the same rows. */
  #hasAddressesOf(former: Projection): boolean {
    return (
      this.summaries.length === former.summaries.length &&
      this.document.hasRowsInOrder &&
      former.document.hasRowsInOrder &&
      this.summaries.every(({ address }, row) => address === former.summaries[row]?.address)
    );
  }

  /** The addresses that more than one instance may have: those of deposed instances, and of those that do not count. */
  #sharedAddresses(): Set<string> {
    const shared = new Set<string>();
    const hasHidden = this.#rows.size < this.document.instanceCount;
    for (const row of this.document.rows()) {
      if (!hasHidden && !this.#isDeposed(row)) continue;
      const { address } = this.#summaryAt(row);
      if (this.#isDeposed(row) || this.#rows.get(address) !== row) shared.add(address);
    }
    return shared;
  }
}

/** The resources of one version. For a whole history, a `StateHistoryReader` is much faster. */
export function projectResources(document: StateDocument, layout: AttributeLayout): Projection {
  return new Projector(layout).project(document, null);
}

/** Projects documents. One object serves any number of them. */
export class Projector {
  readonly #hash: (fields: HashedResource) => string;

  constructor(layout: AttributeLayout) {
    const terraform = new TerraformLayout();
    this.#hash =
      layout === 'as-written'
        ? attributesHash
        : (fields) => attributesHash(fields, (text, write) => terraform.render(text, write));
  }

  /** @param former the projection of the document that `document` was read after; null: it was read alone. */
  project(document: StateDocument, former: Projection | null): Projection {
    const { instances } = document.index;
    const summaries = new Array<ResourceSummary>(instances.length);
    for (const row of document.rows()) {
      const known = former?.summaries[instances.get(row, INSTANCE.from) - 1];
      if (known !== undefined) summaries[row] = known;
      else {
        const instance = document.instanceAt(row);
        const { address, schemaVersion } = instance;
        summaries[row] = { address, attributesHash: this.#hash(withDependencies(instance)), schemaVersion };
      }
    }
    return new Projection(document, summaries, former);
  }
}

type HashedResource = Omit<ProjectedResource, 'attributesHash'>;

function withDependencies(instance: ResourceInstance): HashedResource {
  return { ...instance, dependenciesRaw: goJson(instance.dependencies) };
}
