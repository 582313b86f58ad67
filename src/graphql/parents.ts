import type { StateRecord } from '../history/states.ts';
import type { VersionRecord } from '../history/versions.ts';
import type { ArchiveRecord, OperationRecord } from '../operations/operation-records.ts';
import type { Reader } from './context.ts';

/** A record, with the reader of the environment it was read in: fields that are not members of it are read with that. */
export type Read<Record> = Record & { readonly reader: Reader };

/** What resolvers of `State` are given: the id another subgraph knows the state by. */
export interface StateParent {
  readonly id: string;
}

/** What resolvers of `StateArchive` and `StateArchiveStatus` are given. */
export type StateArchiveParent = Read<StateRecord>;

/** What resolvers of `StateArchiveVersion` are given. */
export type VersionParent = Read<VersionRecord>;

/** What resolvers of `StateArchiveOperation` are given. */
export type OperationParent = Read<OperationRecord>;

/** What resolvers of `StateArchiveFile` are given: the archive, how long it is kept, and the operation it belongs to. */
export type FileParent = ArchiveRecord &
  OperationRecord['retention'] & { readonly operation: OperationParent };

/** Gives each record its reader. */
export function readBy(reader: Reader) {
  return <Record>(record: Record): Read<Record> => ({ ...record, reader });
}

/** The record that a reader finds, with the reader; null when there is no such record, or no reader. */
export async function readOne<Record>(
  reader: Reader | null,
  find: (loaders: Reader['loaders']) => Promise<Record | null>,
): Promise<Read<Record> | null> {
  const record = reader && (await find(reader.loaders));
  return record && { ...record, reader };
}
