import type { AttributesHasher } from './attributes-hash.ts';
import type { ResourceInstance, StateDocument } from './document.ts';
import { ResourceTable } from './resource-table.ts';
import { INSTANCE } from './state-index.ts';

/** An instance as a row of `resources`. Its JSON stays as the document spells it, whatever was hashed. */
export interface ProjectedResource extends ResourceInstance {
  /** Lowercase hex SHA-256 (data model 3.5). */
  readonly attributesHash: string;
}

/** An address that several instances have, or one that is deposed. */
export interface SharedAddress {
  readonly address: string;
  /** Whether one of its instances is deposed. */
  readonly isDeposed: boolean;
  /** How many of its instances are not. */
  readonly current: number;
}

/** An address of more characters than this is long. */
export const LONG_ADDRESS = 800;

/** The resources of one version. */
export class Projection {
  readonly document: StateDocument;
  /** By the rows of the document's index; it may be kept when the document is not. */
  readonly table: ResourceTable;
  /** The rows of instances with a {@link LONG_ADDRESS} that were not taken over from the document before. */
  readonly newLongAddresses: readonly number[];

  constructor(document: StateDocument, table: ResourceTable, newLongAddresses: readonly number[]) {
    this.document = document;
    this.table = table;
    this.newLongAddresses = newLongAddresses;
  }

  /** The rows of all resources, in document order. */
  *rows(): Generator<ProjectedResource> {
    for (const row of this.table.rows()) yield this.rowAt(row);
  }

  /** The instance of a row of the index as a row of `resources`. */
  rowAt(row: number): ProjectedResource {
    return { ...this.document.instanceAt(row), attributesHash: this.table.contentHash(row) };
  }

  /** The addresses that several instances have, or one that is deposed, each once. */
  *sharedAddresses(): Generator<SharedAddress> {
    const { document, table } = this;
    const isDeposed = (row: number) => document.index.instances.get(row, INSTANCE.deposed) !== 0;
    const shared = new Map<number, { isDeposed: boolean; current: number }>();
    for (const row of document.rows()) {
      if (table.counts(row) && !isDeposed(row)) continue;
      shared.set(table.find(table, row), { isDeposed: false, current: 0 });
    }
    if (shared.size === 0) return;
    for (const row of document.rows()) {
      const address = shared.get(table.find(table, row));
      if (address === undefined) continue;
      if (isDeposed(row)) address.isDeposed = true;
      else address.current += 1;
    }
    for (const [row, found] of shared) yield { address: document.instanceAt(row).address, ...found };
  }
}

/**
 * The resources of one version. For a whole history, a `StateHistoryReader` is much faster.
 *
 * @param hasher one may serve any number of documents.
 * @param former the projection of the document that `document` was read after, hashed in the same layout; null: it was read
 *   alone.
 */
export function projectResources(
  document: StateDocument,
  hasher: AttributesHasher,
  former: Projection | null = null,
): Projection {
  const { instances } = document.index;
  const table = new ResourceTable(instances.length);
  const newLongAddresses: number[] = [];
  for (const row of document.rows()) {
    const from = instances.get(row, INSTANCE.from) - 1;
    if (former !== null && from !== -1) table.copy(row, former.table, from);
    else {
      const instance = document.instanceAt(row);
      table.add(row, instance.address, hasher.hash(instance));
      if (instance.address.length > LONG_ADDRESS) newLongAddresses.push(row);
    }
  }
  return new Projection(document, table, newLongAddresses);
}
