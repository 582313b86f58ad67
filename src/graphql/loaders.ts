import DataLoader from 'dataloader';
import type { Kysely } from 'kysely';
import type { KilolockDatabase } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import { type DigestBudget, DigestsMissingError } from '../history/digest-budget.ts';
import { historyOf, isDigested } from '../history/history.ts';
import { HistoryInconsistentError } from '../history/inconsistent.ts';
import { type ManifestPreview, previewOf, readManifestPreviews } from '../history/manifest-preview.ts';
import { StateAmbiguousError } from '../history/namespace.ts';
import type { StateAtOnce } from '../history/state-at-once.ts';
import { type Caller, findStatesById, findStatesByLabel, may, type StateRecord } from '../history/states.ts';
import {
  countVersions,
  findLockHolders,
  findVersions,
  listOutputNames,
  listTags,
  listVersions,
  type RawStateFacts,
  readRawStateFacts,
  readVersionContents,
  type TagRecord,
  type VersionContents,
  type VersionRecord,
} from '../history/versions.ts';
import {
  findLastSuccesses,
  findOperations,
  listOperations,
  type OperationPosition,
  type OperationRecord,
} from '../operations/operation-records.ts';
import type { RawStateBudget, ReadRawState } from './raw-state-budget.ts';

/**
 * Reads of one request, gathered so that a field costs one statement for all the entities that ask for it. What the
 * caller may see is decided by the loaders of states and operations; the others take what these have let through.
 */
export interface Loaders {
  readonly stateById: DataLoader<string, StateRecord | null>;
  readonly stateByLabel: DataLoader<string, StateRecord | null>;
  readonly operationById: DataLoader<string, OperationRecord | null>;
  readonly operationPage: DataLoader<OperationPage, readonly OperationRecord[], string>;
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
  readonly rawState: DataLoader<string, ReadRawState | null>;
}

/** A page of a state's versions, newest serial first. */
export interface VersionPage {
  readonly stateId: string;
  /** Serials below this one; null: from the highest. */
  readonly before: bigint | null;
  readonly limit: number;
}

/** A page of a state's operations, newest first. */
export interface OperationPage {
  readonly stateId: string;
  /** Operations after this one; null: from the newest. */
  readonly after: OperationPosition | null;
  readonly limit: number;
}

/** A version by its state and serial. */
export interface VersionSerial {
  readonly stateId: string;
  readonly serial: bigint;
}

/**
 * Makes the loaders of one request for one environment.
 *
 * @param digests what the request may have digested, in all its environments.
 */
export function createLoaders(caller: Caller, digests: DigestBudget, rawStates: RawStateBudget): Loaders {
  const { database } = caller;
  const db = database.for('read');
  const mayRead = may(caller, 'state.read');
  return {
    stateById: byId((ids) => findStatesById(db, caller, mayRead ? ids : [])),
    stateByLabel: new DataLoader<string, StateRecord | null>((labels) =>
      mayRead ? loadStatesByLabel(caller, labels) : Promise.resolve(labels.map(() => null)),
    ),
    operationById: byId((ids) => findOperations(db, caller, ids)),
    operationPage: new DataLoader((pages) => loadOperationPages(caller, pages), {
      cacheKeyFn: (page) => `${page.stateId} ${operationPageKey(page)}`,
    }),
    lastExport: byKey((ids) => findLastSuccesses(db, caller, 'EXPORT', ids), null),
    lastImport: byKey((ids) => findLastSuccesses(db, caller, 'IMPORT', ids), null),
    preview: new DataLoader<string, ManifestPreview | null>((ids) => loadPreviews(database, ids, digests)),
    versionCount: byKey((ids) => countVersions(db, ids), 0),
    lockHolder: byKey((ids) => findLockHolders(db, ids), null),
    tags: byKey((ids) => listTags(db, ids), []),
    versionPage: new DataLoader((pages) => loadVersionPages(db, pages), {
      cacheKeyFn: (page) => `${page.stateId} ${versionPageKey(page)}`,
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
    rawStateFacts: new DataLoader<VersionRecord, RawStateFacts | null, string>(
      async (versions) => {
        const facts = await readRawStateFacts(database, versions, digests);
        return versions.map(
          ({ id }) => facts.get(id) ?? (digests.isSpent ? new DigestsMissingError() : null),
        );
      },
      { cacheKeyFn: ({ id }) => id },
    ),
    contents: byKey((ids) => readVersionContents(db, ids), null),
    outputNames: byKey((ids) => listOutputNames(db, ids), []),
    rawState: new DataLoader(([id]) => Promise.all([id === undefined ? null : rawStates.read(db, id)]), {
      batch: false,
    }),
  };
}

/** Keeps what was read of a state together with its environment. Digests that are not on record are left to be made. */
export function keepState({ stateByLabel, preview }: Loaders, { state, history: row }: StateAtOnce): void {
  stateByLabel.prime(state.label, state);
  if (row === null) return;
  try {
    const history = historyOf(row);
    if (isDigested(history)) preview.prime(state.id, previewOf(history));
  } catch (error) {
    if (!(error instanceof HistoryInconsistentError)) throw error;
    preview.prime(state.id, error);
  }
}

/** Drops what was read, after a mutation has written: the next read of the same request sees what is there now. */
export function forgetReads(loaders: Loaders): void {
  for (const loader of Object.values(loaders)) loader.clearAll();
}

/** By ids that callers gave, in whichever case: a uuid is the same in both (RFC 9562, section 4). */
function byId<Found>(
  find: (ids: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
): DataLoader<string, Found | null> {
  return new DataLoader(async (given) => {
    const ids = given.map((id) => id.toLowerCase());
    const found = await find(ids);
    return ids.map((id) => found.get(id) ?? null);
  });
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

function loadPreviews(database: KilolockDatabase, stateIds: readonly string[], digests: DigestBudget) {
  return loadTogether(stateIds, HistoryInconsistentError, (ids) =>
    readManifestPreviews(database, ids, digests),
  );
}

function loadStatesByLabel(caller: Caller, labels: readonly string[]) {
  return loadTogether(labels, StateAmbiguousError, (some) =>
    findStatesByLabel(caller.database.for('read'), caller, some),
  );
}

/** What cannot be understood of one key has the error in its place, and takes nothing from the others. */
async function loadTogether<Found, Problem extends Error>(
  keys: readonly string[],
  problem: new (...args: never[]) => Problem,
  find: (keys: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
): Promise<(Found | Problem | null)[]> {
  try {
    const found = await find(keys);
    return keys.map((key) => found.get(key) ?? null);
  } catch (error) {
    if (!(error instanceof problem)) throw error;
    if (keys.length === 1) return [error];
    // By halves: among many keys few are like that, and each costs a handful of statements.
    const middle = keys.length >> 1;
    const halves = [keys.slice(0, middle), keys.slice(middle)];
    return (await Promise.all(halves.map((half) => loadTogether(half, problem, find)))).flat();
  }
}

function loadVersionPages(
  db: Kysely<Database>,
  pages: readonly VersionPage[],
): Promise<(readonly VersionRecord[])[]> {
  return loadPages(pages, versionPageKey, (stateIds, page) => listVersions(db, stateIds, page));
}

function loadOperationPages(
  caller: Caller,
  pages: readonly OperationPage[],
): Promise<(readonly OperationRecord[])[]> {
  return loadPages(pages, operationPageKey, (stateIds, page) =>
    listOperations(caller.database.for('read'), caller, stateIds, page),
  );
}

/** States of one list are asked for the same page; each different page is one statement. */
async function loadPages<Page extends { readonly stateId: string }, Item>(
  pages: readonly Page[],
  keyOf: (page: Page) => string,
  list: (stateIds: readonly string[], page: Page) => Promise<ReadonlyMap<string, readonly Item[]>>,
): Promise<(readonly Item[])[]> {
  const results = new Map<Page, readonly Item[]>();
  for (const group of Map.groupBy(pages, keyOf).values()) {
    const [first] = group;
    if (first === undefined) continue;
    const found = await list(
      group.map(({ stateId }) => stateId),
      first,
    );
    for (const page of group) results.set(page, found.get(page.stateId) ?? []);
  }
  return pages.map((page) => results.get(page) ?? []);
}

/** What the states of one list are asked for alike. */
function versionPageKey({ before, limit }: VersionPage): string {
  return `${before} ${limit}`;
}

function operationPageKey({ after, limit }: OperationPage): string {
  return `${after?.createdAt} ${after?.id} ${limit}`;
}

function versionKey({ stateId, serial }: VersionSerial): string {
  return `${stateId} ${serial}`;
}
