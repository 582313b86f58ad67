import { AttributesHasher } from '../terraform/attributes-hash.ts';
import { readStateDocument, type StateOutput } from '../terraform/document.ts';
import { SNAPSHOT_LIMITS } from '../terraform/limits.ts';
import { projectResources } from '../terraform/projection.ts';
import { type NamedDocument, RefusedDocumentError, refusing } from './errors.ts';
import { RowFileWriter } from './row-file.ts';
import {
  addOutputRow,
  addResourceRow,
  type ResourceRow,
  type RowPaths,
  readOutputRows,
  readResourceRows,
} from './spooled-rows.ts';
import { findDoubtfulRows, type Storage } from './storage.ts';

/** A document that Kilolock can hold, as Kilolock itself reads one that is posted (data model 2.5 and 3). */
export interface ReadSnapshot {
  /** As spelled in the document; '' when absent. */
  readonly lineage: string;
  readonly terraformVersion: string | null;
  /** Its managed resource instances: what quotas count. */
  readonly managedInstances: number;
  /** Its rows of `resources`, each time from the first. */
  resources(): AsyncIterable<ResourceRow['resource']> | Iterable<ResourceRow['resource']>;
  /** Its rows of `outputs`, each time from the first. */
  outputs(): AsyncIterable<StateOutput> | Iterable<StateOutput>;
}

/** How messages name such a document. */
export const SNAPSHOT: NamedDocument = { serial: null, name: 'This document' };

/**
 * Reads a document that is to be appended, in this thread.
 *
 * @throws RefusedDocumentError when Kilolock could not hold it.
 */
export async function readSnapshot(bytes: Buffer, storage: Storage): Promise<ReadSnapshot> {
  const document = refusing(SNAPSHOT, () => readStateDocument(bytes, SNAPSHOT_LIMITS));
  const projection = projectResources(document, new AttributesHasher('as-written'));
  const doubtful = findDoubtfulRows(projection);
  const fault = doubtful && (await storage.faultOf(doubtful));
  if (fault) throw new RefusedDocumentError(SNAPSHOT, fault);
  const { lineage, terraformVersion, managedInstances } = document;
  return {
    lineage,
    terraformVersion,
    managedInstances,
    resources: () => projection.rows(),
    outputs: () => document.outputs(),
  };
}

/** Puts the rows of a snapshot aside; see {@link snapshotAside}. Blocks while it writes. */
export async function putAside(read: ReadSnapshot, { resources, outputs }: RowPaths): Promise<void> {
  using files = new DisposableStack();
  const open = (path: string) => files.adopt(new RowFileWriter(path), (file) => file.close());
  const resourceRows = open(resources);
  const outputRows = open(outputs);
  // Which version it becomes is settled later, under a lock.
  for await (const resource of read.resources()) {
    addResourceRow(resourceRows, { resource, createSerial: 0n, deleteSerial: null, createdAt: '' });
  }
  for await (const output of read.outputs()) addOutputRow(outputRows, { versionId: '', ...output });
}

/** A snapshot whose rows were put aside. */
export function snapshotAside(
  found: Omit<ReadSnapshot, 'resources' | 'outputs'>,
  rows: RowPaths,
): ReadSnapshot {
  return {
    ...found,
    async *resources() {
      for await (const { resource } of readResourceRows(rows.resources)) yield resource;
    },
    outputs: () => readOutputRows(rows.outputs),
  };
}
