import type { ManifestPreview } from '../history/manifest-preview.ts';
import type { StateRecord } from '../history/states.ts';
import type { ArchiveRecord, OperationRecord } from '../operations/operation-records.ts';

/** What resolvers of `State` are given: the id another subgraph knows the state by. */
export interface StateParent {
  readonly id: string;
}

/** What resolvers of `StateArchiveManifest` are given. */
export interface ManifestParent {
  readonly state: StateRecord;
  readonly preview: ManifestPreview;
}

/** What resolvers of `StateArchiveOperationProgress` are given. */
export type ProgressParent = OperationRecord['progress'];

/** What resolvers of `StateArchiveFile` are given. */
export interface FileParent {
  readonly operation: OperationRecord;
  readonly archive: ArchiveRecord;
}
