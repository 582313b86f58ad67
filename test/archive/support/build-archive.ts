import type {
  ArchivedEvent,
  ArchivedResource,
  ArchivedState,
  ArchivedTag,
  ArchivedVersion,
  ExportRecord,
  RawState,
} from '../../../src/archive/model.ts';
import {
  type ArchiveContents,
  type WriteOptions,
  type WrittenArchive,
  writeArchive,
} from '../../../src/archive/writer.ts';

/** A history as a test writes it down: what it leaves out is filled in, the same each time. */
export interface SampleHistory {
  /** `currentSerial` is the last version's and `currentVersionId` follows from it, unless given. */
  state?: Partial<ArchivedState>;
  versions: readonly SampleVersion[];
  tags?: readonly (Partial<ArchivedTag> & { tag: string; serial: bigint })[];
  events?: readonly (Partial<ArchivedEvent> & { kind: string })[];
  /** null leaves resources.ndjson out. */
  resources?: readonly (Partial<ArchivedResource> & { address: string; createSerial: bigint })[] | null;
  exportRecord?: Partial<ExportRecord>;
}

export type SampleVersion = Partial<ArchivedVersion> & { serial: bigint; rawState: string };

/** Writes the archive of a history to `path`. */
export function buildArchive(
  history: SampleHistory,
  path: string,
  options?: WriteOptions,
): Promise<WrittenArchive> {
  return writeArchive(archiveContents(history), path, options);
}

/** The contents {@link buildArchive} writes. */
export function archiveContents(history: SampleHistory): ArchiveContents {
  const versions = history.versions.map(({ rawState: _, ...version }) => ({
    id: sampleId(1, version.serial),
    terraformVersion: '1.11.4',
    source: 'http_backend',
    createdAt: sampleTime(version.serial),
    createdBy: 'ci@runner',
    ...version,
  }));
  const currentSerial = history.state?.currentSerial ?? versions.at(-1)?.serial ?? 0n;
  return {
    state: {
      id: sampleId(0, 1n),
      label: 'team/app',
      name: 'ws_000000000000/env_000000000000/team/app',
      workspace: 'ws_000000000000',
      environment: 'env_000000000000',
      lineage: '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
      lifecycleStatus: 'active',
      createdAt: sampleTime(0n),
      updatedAt: sampleTime(59n),
      currentVersionId: versions.find(({ serial }) => serial === currentSerial)?.id ?? sampleId(1, 0n),
      exclusiveLocks: true,
      coexistenceMode: 'strict',
      ...history.state,
      currentSerial,
    },
    versions,
    tags: (history.tags ?? []).map((tag) => ({
      description: null,
      actor: 'ops@example.org',
      createdAt: sampleTime(30n),
      updatedAt: sampleTime(31n),
      ...tag,
    })),
    events: each(
      (history.events ?? []).map((event, index) => ({
        id: sampleId(2, BigInt(index)),
        serial: null,
        actor: 'ci@runner',
        payload: '{}',
        createdAt: sampleTime(BigInt(index)),
        ...event,
      })),
    ),
    resources:
      history.resources === null
        ? null
        : each(
            (history.resources ?? []).map((resource) => ({
              deleteSerial: null,
              attributesHash: '62b4a29467b43aaa266f410cb848d2f6cd660784f06d1ceeaf6d1458eddf5f59',
              schemaVersion: 0,
              createdAt: sampleTime(resource.createSerial),
              ...resource,
            })),
          ),
    exportRecord: {
      exportedAt: '2026-04-01T08:00:00.000000Z',
      exportedBy: 'support@example.org',
      source: {
        workspace: 'ws_000000000000',
        environment: 'env_000000000000',
        stateName: 'ws_000000000000/env_000000000000/team/app',
      },
      tool: { name: 'kilolock-state-archive', version: '0.1.0' },
      ...history.exportRecord,
    },
    rawStateText: null,
    longestRawState: Math.max(...history.versions.map(({ rawState }) => Buffer.byteLength(rawState))),
    rawStates: rawStates(history.versions),
  };
}

/** The items one by one, as a database hands them out. */
export async function* each<T>(items: Iterable<T>): AsyncGenerator<T, void, void> {
  yield* items;
}

/** All items of a stream. */
export async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}

async function* rawStates(versions: readonly SampleVersion[]): AsyncGenerator<RawState, void, void> {
  for (const { serial, rawState } of versions) {
    const bytes = Buffer.from(rawState);
    yield { serial, byteLength: bytes.length, content: each([bytes]) };
  }
}

function sampleId(kind: number, number: bigint): string {
  return `0000000${kind}-0000-4000-8000-${(number % 2n ** 48n).toString(16).padStart(12, '0')}`;
}

function sampleTime(second: bigint): string {
  return `2026-03-02T10:00:${String(second % 60n).padStart(2, '0')}.000118Z`;
}
