import type { ArchivedEvent, ArchivedTag, ArchivedVersion } from '../archive/model.ts';
import type { StateOutput } from '../terraform/document.ts';
import type { ProjectedResource } from '../terraform/projection.ts';
import type { RestorablePayload } from './event-payload.ts';
import { bytesOf, endField, endOf, type RowFileWriter, readRows, textOf } from './row-file.ts';

/** A row of `resources` before it has an id (data model 1.4, 3.2). */
export interface ResourceRow {
  readonly resource: Omit<ProjectedResource, 'place' | 'deposed'>;
  readonly createSerial: bigint;
  readonly deleteSerial: bigint | null;
  /** The creation time of the version that created the row (data model 2.5). */
  readonly createdAt: string;
}

/** A row of `outputs` before it has an id (data model 3.8). */
export interface OutputRow extends StateOutput {
  /** The archived id of its version. */
  readonly versionId: string;
}

/** A row of `state_versions` before it has an id and its raw state. */
export interface VersionRow extends ArchivedVersion {
  /** The digest of its raw state as jsonb keeps it. */
  readonly sha256: string;
}

/** A row of `state_version_tags` before it has an id. */
export interface TagRow extends Omit<ArchivedTag, 'serial'> {
  /** The archived id of its version. */
  readonly versionId: string;
}

/** A row of `events` before it and what its payload names have their ids. */
export interface EventRow extends Omit<ArchivedEvent, 'serial' | 'payload'> {
  /** The archived id of its version. */
  readonly versionId: string | null;
  readonly payload: RestorablePayload;
}

/** Files that the rows of a document are put aside in, which must not exist yet; they stay, and are the caller's to remove. */
export interface RowPaths {
  readonly resources: string;
  readonly outputs: string;
}

/** Likewise those of a history. */
export interface HistoryRowPaths extends RowPaths {
  readonly versions: string;
  readonly tags: string;
  readonly events: string;
}

/** Puts a row of `resources` aside; returns where it is, for {@link endResourceRow}. */
export function addResourceRow(
  file: RowFileWriter,
  { resource, createSerial, deleteSerial, createdAt }: ResourceRow,
): number {
  const { attributes, sensitivePaths, dependencies, ...texts } = resource;
  const json = JSON.stringify({ ...texts, createSerial: String(createSerial), createdAt });
  return file.append([endField(deleteSerial), json, attributes, sensitivePaths, dependencies]);
}

/** Says at which serial a row ends that was put aside as one that lasts. */
export function endResourceRow(file: RowFileWriter, row: number, deleteSerial: bigint): void {
  file.overwrite(row, endField(deleteSerial));
}

/** The rows that {@link addResourceRow} put aside, in their order. */
export async function* readResourceRows(path: string): AsyncGenerator<ResourceRow, void, void> {
  for await (const [end, json, attributes, sensitivePaths, dependencies] of readRows(path)) {
    const { createSerial, createdAt, ...texts } = JSON.parse(textOf(json));
    const bytes = {
      attributes: bytesOf(attributes),
      sensitivePaths: bytesOf(sensitivePaths),
      dependencies: bytesOf(dependencies),
    };
    yield {
      resource: { ...texts, ...bytes },
      createSerial: BigInt(createSerial),
      deleteSerial: endOf(end),
      createdAt,
    };
  }
}

/** Puts rows of `outputs` aside. */
export function addOutputRow(file: RowFileWriter, { value, type, ...row }: OutputRow): void {
  file.append([JSON.stringify(row), value, type]);
}

/** The rows that {@link addOutputRow} put aside, in their order. */
export async function* readOutputRows(path: string): AsyncGenerator<OutputRow, void, void> {
  for await (const [json, value, type] of readRows(path)) {
    yield { ...JSON.parse(textOf(json)), value: bytesOf(value), type: bytesOf(type) };
  }
}

/** Puts a row of `state_versions` aside. */
export function addVersionRow(file: RowFileWriter, row: VersionRow): void {
  file.append([JSON.stringify({ ...row, serial: String(row.serial) })]);
}

/** The rows that {@link addVersionRow} put aside, in their order. */
export async function* readVersionRows(path: string): AsyncGenerator<VersionRow, void, void> {
  for await (const [json] of readRows(path)) {
    const row = JSON.parse(textOf(json));
    yield { ...row, serial: BigInt(row.serial) };
  }
}

/** Puts a row of `state_version_tags` aside. */
export function addTagRow(file: RowFileWriter, row: TagRow): void {
  file.append([JSON.stringify(row)]);
}

/** The rows that {@link addTagRow} put aside, in their order. */
export async function* readTagRows(path: string): AsyncGenerator<TagRow, void, void> {
  for await (const [json] of readRows(path)) yield JSON.parse(textOf(json));
}

/** Puts a row of `events` aside. */
export function addEventRow(file: RowFileWriter, { payload: { text, idsAt }, ...row }: EventRow): void {
  file.append([JSON.stringify({ ...row, idsAt }), text]);
}

/** The rows that {@link addEventRow} put aside, in their order. */
export async function* readEventRows(path: string): AsyncGenerator<EventRow, void, void> {
  for await (const [json, text] of readRows(path)) {
    const { idsAt, ...row } = JSON.parse(textOf(json));
    yield { ...row, payload: { text: bytesOf(text), idsAt } };
  }
}
