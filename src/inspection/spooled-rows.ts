import { createReadStream } from 'node:fs';
import type { StateOutput } from '../terraform/document.ts';
import type { ProjectedResource } from '../terraform/projection.ts';
import { int64Field, type RowFields, RowFileWriter, RowReader } from './row-file.ts';

/** A row of `resources` before it has an id (data model 1.4, 3.2). */
export interface ResourceRow {
  readonly resource: Omit<ProjectedResource, 'place' | 'deposed' | 'dependencies'>;
  readonly createSerial: bigint;
  readonly deleteSerial: bigint | null;
  /** The creation time of the version that created the row (data model 2.5). */
  readonly createdAt: string;
}

/** A row of `outputs` before it has an id, of the version with `serial` (data model 3.8). */
export interface OutputRow extends StateOutput {
  readonly serial: bigint;
}

/** Files that rows are put aside in, which must not exist yet; they stay, and are the caller's to remove. */
export interface RowPaths {
  readonly resources: string;
  readonly outputs: string;
}

/** No span ends at serial 0: it would have begun before. */
const LASTS = 0n;

/** Puts rows of `resources` aside in a new file; see {@link readResourceRows}. */
export class ResourceRowWriter {
  readonly #file: RowFileWriter;

  /** @throws errors of the file system. */
  constructor(path: string) {
    this.#file = new RowFileWriter(path);
  }

  /** Adds a row; returns where it is, for {@link end}. */
  add({ resource, createSerial, deleteSerial, createdAt }: ResourceRow): number {
    return this.#file.append([
      int64Field(deleteSerial ?? LASTS),
      int64Field(createSerial),
      createdAt,
      resource.address,
      resource.mode,
      resource.type,
      resource.name,
      resource.provider,
      resource.modulePath,
      resource.indexKind,
      resource.indexValue,
      resource.attributes,
      resource.sensitivePaths,
      resource.dependenciesRaw,
      resource.attributesHash,
      String(resource.schemaVersion),
    ]);
  }

  /** Says at which serial a row ends that was added as one that lasts. */
  end(row: number, deleteSerial: bigint): void {
    this.#file.overwrite(row, int64Field(deleteSerial));
  }

  close(): void {
    this.#file.close();
  }
}

/** The rows that a {@link ResourceRowWriter} put aside, in their order. */
export async function* readResourceRows(path: string): AsyncGenerator<ResourceRow, void, void> {
  for await (const fields of readRows(path)) {
    const [deleteSerial, createSerial, createdAt, address, mode, type, name, provider, ...rest] = fields;
    const [modulePath, indexKind, indexValue, attributes, sensitivePaths, dependenciesRaw, hash, version] =
      rest;
    const end = int64(deleteSerial);
    yield {
      resource: {
        address: text(address),
        mode: text(mode) as ProjectedResource['mode'],
        type: text(type),
        name: text(name),
        provider: text(provider),
        modulePath: text(modulePath),
        indexKind: text(indexKind) as ProjectedResource['indexKind'],
        indexValue: indexValue === null ? null : text(indexValue),
        attributes: bytes(attributes),
        sensitivePaths: bytes(sensitivePaths),
        dependenciesRaw: text(dependenciesRaw),
        attributesHash: text(hash),
        schemaVersion: Number(text(version)),
      },
      createSerial: int64(createSerial),
      deleteSerial: end === LASTS ? null : end,
      createdAt: text(createdAt),
    };
  }
}

/** Puts rows of `outputs` aside in a new file; see {@link readOutputRows}. */
export class OutputRowWriter {
  readonly #file: RowFileWriter;

  /** @throws errors of the file system. */
  constructor(path: string) {
    this.#file = new RowFileWriter(path);
  }

  add({ serial, name, value, type, sensitive }: OutputRow): void {
    this.#file.append([int64Field(serial), name, value, type, sensitive ? 'true' : 'false']);
  }

  close(): void {
    this.#file.close();
  }
}

/** The rows that an {@link OutputRowWriter} put aside, in their order. */
export async function* readOutputRows(path: string): AsyncGenerator<OutputRow, void, void> {
  for await (const [serial, name, value, type, sensitive] of readRows(path)) {
    yield {
      serial: int64(serial),
      name: text(name),
      value: bytes(value),
      type: bytes(type),
      sensitive: text(sensitive) === 'true',
    };
  }
}

async function* readRows(path: string): AsyncGenerator<RowFields, void, void> {
  const reader = new RowReader();
  for await (const piece of createReadStream(path)) yield* reader.push(piece);
}

function bytes(field: Buffer | null | undefined): Buffer {
  if (!field) throw new Error('A row that was put aside lacks a field.');
  return field;
}

function text(field: Buffer | null | undefined): string {
  return bytes(field).toString();
}

function int64(field: Buffer | null | undefined): bigint {
  return bytes(field).readBigInt64BE();
}
