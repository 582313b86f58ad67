import DataLoader from 'dataloader';
import type { Kysely } from 'kysely';
import type { Database } from '../database/types.ts';
import { HistoryInconsistentError } from '../history/history.ts';
import { type ManifestPreview, readManifestPreviews } from '../history/manifest-preview.ts';
import { type Caller, findStatesById, findStatesByLabel, type StateRecord } from '../history/states.ts';
import {
  countVersions,
  findLockHolders,
  findVersions,
  listOutputNames,
  listTags,
  listVersions,
  type RawStateFacts,
  readRawState,
  readRawStateFacts,
  readVersionContents,
  type TagRecord,
  type VersionContents,
  type VersionRecord,
} from '../history/versions.ts';
import { findLastSuccesses, findOperations, type OperationRecord } from '../operations/operation-records.ts';
import { canBeInLabel } from './label.ts';

/**
 * Reads of one request, gathered so that a field costs one statement for all the entities that ask for it. What the
 * caller may see is decided by the loaders of states and operations; the others take what these have let through.
 */
export interface Loaders {
  readonly stateById: DataLoader<string, StateRecord | null>;
  readonly stateByLabel: DataLoader<string, StateRecord | null>;
  readonly operationById: DataLoader<string, OperationRecord | null>;
  readonly lastExport: DataLoader<string, OperationRecord | null>;
  readonly lastImport: DataLoader<string, OperationRecord | null>;
  readonly preview: DataLoader<string, ManifestPreview | null>;
  readonly versionCount: DataLoader<string, number>;
  readonly lockHolder: DataLoader<string, string | null>;
  readonly tags: DataLoader<string, readonly TagRecord[]>;
  readonly versionPage: DataLoader<VersionPage, readonly VersionRecord[], string>;
  readonly versionBySerial: DataLoader<VersionSerial, VersionRecord | null, string>;
  readonly rawStateFacts: DataLoader<VersionRecord, RawStateFacts | null, string>;
  readonly contents: DataLoader<string, VersionContents | null>;
  readonly outputNames: DataLoader<string, readonly string[]>;
  readonly rawState: DataLoader<string, string | null>;
}

/** A page of a state's versions, newest serial first. */
export interface VersionPage {
  readonly stateId: string;
  /** Serials below this one; null: from the highest. */
  readonly before: bigint | null;
  readonly limit: number;
}

/** A version by its state and serial. */
export interface VersionSerial {
  readonly stateId: string;
  readonly serial: bigint;
}

/** Makes the loaders of one request. `caller` is asked for when the first state or operation is. */
export function createLoaders(db: Kysely<Database>, caller: () => Promise<Caller | null>): Loaders {
  const visible =
    <Found>(find: (caller: Caller, keys: readonly string[]) => Promise<ReadonlyMap<string, Found>>) =>
    async (keys: readonly string[]) => {
      const known = await caller();
      return known === null ? new Map<string, Found>() : find(known, keys);
    };
  return {
    stateById: byKey(
      visible((known, ids) => findStatesById(db, known, ids)),
      null,
    ),
    stateByLabel: byKey(
      visible((known, labels) => findStatesByLabel(db, known, labels.filter(canBeInLabel))),
      null,
    ),
    operationById: byKey(
      visible((known, ids) => findOperations(db, known, ids)),
      null,
    ),
    lastExport: byKey(
      visible((known, ids) => findLastSuccesses(db, known, 'EXPORT', ids)),
      null,
    ),
    lastImport: byKey(
      visible((known, ids) => findLastSuccesses(db, known, 'IMPORT', ids)),
      null,
    ),
    preview: new DataLoader<string, ManifestPreview | null>((ids) => loadPreviews(db, ids)),
    versionCount: byKey((ids) => countVersions(db, ids), 0),
    lockHolder: byKey((ids) => findLockHolders(db, ids), null),
    tags: byKey((ids) => listTags(db, ids), []),
    versionPage: new DataLoader((pages) => loadVersionPages(db, pages), {
      cacheKeyFn: ({ stateId, before, limit }) => `${stateId} ${before} ${limit}`,
    }),
    versionBySerial: new DataLoader(
      async (wanted) => {
        const found = new Map(
          (await findVersions(db, wanted)).map((version) => [versionKey(version), version]),
        );
        return wanted.map((version) => found.get(versionKey(version)) ?? null);
      },
      { cacheKeyFn: versionKey },
    ),
    rawStateFacts: new DataLoader(
      async (versions) => {
        const facts = await readRawStateFacts(db, versions);
        return versions.map(({ id }) => facts.get(id) ?? null);
      },
      { cacheKeyFn: ({ id }) => id },
    ),
    contents: byKey((ids) => readVersionContents(db, ids), null),
    outputNames: byKey((ids) => listOutputNames(db, ids), []),
    // One at a time: raw states may be large, and no two of them need be in memory together.
    rawState: new DataLoader(([id]) => Promise.all(id === undefined ? [] : [readRawState(db, id)]), {
      batch: false,
    }),
  };
}

/** Drops what was read, after a mutation has written: the next read of the same request sees what is there now. */
export function forgetReads(loaders: Loaders): void {
  for (const loader of Object.values(loaders)) loader.clearAll();
}

function byKey<Found, Missing>(
  find: (keys: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
  missing: Missing,
): DataLoader<string, Found | Missing> {
  return new DataLoader(async (keys) => {
    const found = await find(keys);
    return keys.map((key) => found.get(key) ?? missing);
  });
}

/** A state whose rows contradict each other has an error in its place, and takes nothing from the others. */
async function loadPreviews(
  db: Kysely<Database>,
  stateIds: readonly string[],
): Promise<(ManifestPreview | HistoryInconsistentError | null)[]> {
  try {
    const previews = await readManifestPreviews(db, stateIds);
    return stateIds.map((id) => previews.get(id) ?? null);
  } catch (error) {
    if (!(error instanceof HistoryInconsistentError)) throw error;
    if (stateIds.length === 1) return [error];
    return (await Promise.all(stateIds.map((id) => loadPreviews(db, [id])))).flat();
  }
}

async function loadVersionPages(
  db: Kysely<Database>,
  pages: readonly VersionPage[],
): Promise<(readonly VersionRecord[])[]> {
  // States of one list are asked for the same page; each different page is one statement.
  const groups = Map.groupBy(pages, ({ before, limit }) => `${before} ${limit}`);
  const results = new Map<VersionPage, readonly VersionRecord[]>();
  for (const group of groups.values()) {
    const [first] = group;
    if (first === undefined) continue;
    const found = await listVersions(
      db,
      group.map(({ stateId }) => stateId),
      first,
    );
    for (const page of group) results.set(page, found.get(page.stateId) ?? []);
  }
  return pages.map((page) => results.get(page) ?? []);
}

function versionKey({ stateId, serial }: VersionSerial): string {
  return `${stateId} ${serial}`;
}
