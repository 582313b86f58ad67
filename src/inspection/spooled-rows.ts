import { createReadStream } from 'node:fs';
import type { StateOutput } from '../terraform/document.ts';
import type { ProjectedResource } from '../terraform/projection.ts';
import {
  bytesOf,
  endField,
  endOf,
  int64Field,
  int64Of,
  type RowFields,
  RowFileWriter,
  RowReader,
  textOf,
} from './row-file.ts';

/** A row of `resources` before it has an id (data model 1.4, 3.2). */
export interface ResourceRow {
  readonly resource: Omit<ProjectedResource, 'place' | 'deposed'>;
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
      endField(deleteSerial),
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
      resource.dependencies,
      resource.attributesHash,
      String(resource.schemaVersion),
    ]);
  }

  /** Says at which serial a row ends that was added as one that lasts. */
  end(row: number, deleteSerial: bigint): void {
    this.#file.overwrite(row, endField(deleteSerial));
  }

  close(): void {
    this.#file.close();
  }
}

/** The rows that a {@link ResourceRowWriter} put aside, in their order. */
export async function* readResourceRows(path: string): AsyncGenerator<ResourceRow, void, void> {
  for await (const fields of readRows(path)) {
    const [deleteSerial, createSerial, createdAt, address, mode, type, name, provider, ...rest] = fields;
    const [modulePath, indexKind, indexValue, attributes, sensitivePaths, dependencies, hash, version] = rest;
    yield {
      resource: {
        address: textOf(address),
        mode: textOf(mode) as ProjectedResource['mode'],
        type: textOf(type),
        name: textOf(name),
        provider: textOf(provider),
        modulePath: textOf(modulePath),
        indexKind: textOf(indexKind) as ProjectedResource['indexKind'],
        indexValue: indexValue === null ? null : textOf(indexValue),
        attributes: bytesOf(attributes),
        sensitivePaths: bytesOf(sensitivePaths),
        dependencies: bytesOf(dependencies),
        attributesHash: textOf(hash),
        schemaVersion: Number(textOf(version)),
      },
      createSerial: int64Of(createSerial),
      deleteSerial: endOf(deleteSerial),
      createdAt: textOf(createdAt),
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
      serial: int64Of(serial),
      name: textOf(name),
      value: bytesOf(value),
      type: bytesOf(type),
      sensitive: textOf(sensitive) === 'true',
    };
  }
}

async function* readRows(path: string): AsyncGenerator<RowFields, void, void> {
  const reader = new RowReader();
  for await (const piece of createReadStream(path)) yield* reader.push(piece);
}
