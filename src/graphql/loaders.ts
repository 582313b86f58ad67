import DataLoader from 'dataloader';
import { present } from '../base/invariant.ts';
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
  type VersionRecord,
} from '../history/versions.ts';
import {
  findLastSuccesses,
  findOperations,
  listOperations,
  type OperationPosition,
} from '../operations/operation-records.ts';
import type { Position } from './connection.ts';
import type { RawStateBudget } from './raw-state-budget.ts';

/**
 * Reads of one request, gathered so that a field costs one statement for all the entities that ask for it. What the
 * caller may see is decided by the loaders of states and operations; the others take what these have let through.
 */
export type Loaders = ReturnType<typeof createLoaders>;

/**
 * Makes the loaders of one request for one environment.
 *
 * @param digests what the request may have digested, in all its environments.
 */
export function createLoaders(caller: Caller, digests: DigestBudget, rawStates: RawStateBudget) {
  const { database } = caller;
  const db = database.for('read');
  const mayRead = may(caller, 'state.read');
  return {
    stateById: byId((ids) => findStatesById(db, caller, mayRead ? ids : []), null),
    stateByLabel: byKey<StateRecord>(StateAmbiguousError, (labels) =>
      findStatesByLabel(db, caller, mayRead ? labels : []),
    ),
    operationById: byId((ids) => findOperations(db, caller, ids), null),
    operationPage: byPage(
      (after: OperationPosition | null) => `${after?.createdAt} ${after?.id}`,
      (ids, page) => listOperations(db, caller, ids, page),
    ),
    lastExport: byId((ids) => findLastSuccesses(db, caller, 'EXPORT', ids), null),
    lastImport: byId((ids) => findLastSuccesses(db, caller, 'IMPORT', ids), null),
    preview: byKey<ManifestPreview>(HistoryInconsistentError, (ids) =>
      readManifestPreviews(database, ids, digests),
    ),
    versionCount: byId((ids) => countVersions(db, ids), 0),
    lockHolder: byId((ids) => findLockHolders(db, ids), null),
    tags: byId((ids) => listTags(db, ids), []),
    versionPage: byPage(
      (after: bigint | null) => String(after),
      (ids, { after: before, limit }) => listVersions(db, ids, { before, limit }),
    ),
    versionBySerial: new DataLoader(
      async (wanted: readonly VersionSerial[]) => {
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
    contents: byId((ids) => readVersionContents(db, ids), null),
    outputNames: byId((ids) => listOutputNames(db, ids), []),
    rawState: new DataLoader(
      ([id]: readonly string[]) => Promise.all([id === undefined ? null : rawStates.read(db, id)]),
      { batch: false },
    ),
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

/** By uuids, which callers may give in whichever case: they are the same in both (RFC 9562, section 4). */
function byId<Found, Missing>(
  find: (ids: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
  missing: Missing,
): DataLoader<string, Found | Missing> {
  return new DataLoader(async (given) => {
    const ids = given.map((id) => id.toLowerCase());
    const found = await find(ids);
    return ids.map((id) => found.get(id) ?? missing);
  });
}

/** What cannot be understood of one key has the error in its place, and takes nothing from the others. */
function byKey<Found>(
  problem: new (...args: never[]) => Error,
  find: (keys: readonly string[]) => Promise<ReadonlyMap<string, Found | Error>>,
): DataLoader<string, Found | null> {
  const load = async (keys: readonly string[]): Promise<(Found | Error | null)[]> => {
    try {
      const found = await find(keys);
      return keys.map((key) => found.get(key) ?? null);
    } catch (error) {
      if (!(error instanceof problem)) throw error;
      if (keys.length === 1) return [error];
      // By halves: among many keys few are like that, and each costs a handful of statements.
      const middle = keys.length >> 1;
      return (await Promise.all([keys.slice(0, middle), keys.slice(middle)].map(load))).flat();
    }
  };
  return new DataLoader(load);
}

/** States of one list are asked for the same page; each different page is one statement. */
function byPage<Key, Item>(
  textOf: (after: Key | null) => string,
  list: (stateIds: readonly string[], page: Position<Key>) => Promise<ReadonlyMap<string, readonly Item[]>>,
) {
  type Page = Position<Key> & { readonly stateId: string };
  const samePage = ({ after, limit }: Page) => `${textOf(after)} ${limit}`;
  return new DataLoader(
    async (pages: readonly Page[]) => {
      const found = new Map<string, ReadonlyMap<string, readonly Item[]>>();
      for (const [key, group] of Map.groupBy(pages, samePage)) {
        const stateIds = group.map(({ stateId }) => stateId);
        found.set(key, await list(stateIds, present(group[0], 'a group has a page')));
      }
      return pages.map((page) => found.get(samePage(page))?.get(page.stateId) ?? []);
    },
    { cacheKeyFn: (page) => `${page.stateId} ${samePage(page)}` },
  );
}

/** A version by its state and serial. */
type VersionSerial = Pick<VersionRecord, 'stateId' | 'serial'>;

function versionKey({ stateId, serial }: VersionSerial): string {
  return `${stateId} ${serial}`;
}
