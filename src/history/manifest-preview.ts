import type { KilolockDatabase } from '../database/connection.ts';
import { type DigestBudget, DigestsMissingError } from './digest-budget.ts';
import { digestHistory, isDigested, readDigestedHistories, type StateHistory } from './history.ts';

/** What an export taken now would say of itself. */
export type ManifestPreview = Readonly<NonNullable<ReturnType<typeof makePreview>>>;

/**
 * Previews of `stateIds`, by id; a state without a version has none. The number of statements does not grow with
 * states, versions or tags: one when all digests are on record. Missing ones are
 * made first; a state whose digests the budget does not reach to has the error in its place.
 *
 * @throws HistoryInconsistentError when a state's rows contradict each other.
 */
export async function readManifestPreviews(
  database: KilolockDatabase,
  stateIds: readonly string[],
  budget: DigestBudget,
): Promise<Map<string, ManifestPreview | DigestsMissingError>> {
  const previews = new Map<string, ManifestPreview | DigestsMissingError>();
  for (const [stateId, history] of await readDigestedHistories(database, stateIds, budget)) {
    const preview = isDigested(history) ? previewOf(history) : new DigestsMissingError();
    if (preview !== null) previews.set(stateId, preview);
  }
  return previews;
}

/** The previews of histories that are known: to digest one takes longer than to read it. */
const known = new WeakMap<StateHistory, ManifestPreview | null>();

/**
 * What a history whose digests are all on record comes to; null for one without a version.
 *
 * @throws HistoryInconsistentError when a raw state is longer than any an archive holds.
 */
export function previewOf(history: StateHistory): ManifestPreview | null {
  const preview = known.get(history) ?? makePreview(history);
  known.set(history, preview);
  return preview;
}

function makePreview(history: StateHistory) {
  const first = history.versions.at(0);
  const last = history.versions.at(-1);
  if (history.current === null || first === undefined || last === undefined) return null;
  const createdAt = history.versions.map((version) => version.createdAt).sort();
  return {
    lineage: history.lineage,
    currentSerial: history.current.serial,
    currentVersionId: history.current.versionId,
    firstSerial: first.serial,
    lastSerial: last.serial,
    versionCount: history.versions.length,
    tagCount: history.tags.length,
    eventCount: history.eventCount,
    resourceSpanCount: history.spanCount,
    ...digestHistory(history),
    // Distinct, in ascending order.
    sources: distinct(history.versions.map((version) => version.source)),
    // The same; versions that recorded none are left out.
    terraformVersions: distinct(history.versions.map((version) => version.terraformVersion)),
    // Equal in length and in UTC, so that the order of the texts is the order in time.
    firstCreatedAt: createdAt.at(0) ?? first.createdAt,
    lastCreatedAt: createdAt.at(-1) ?? last.createdAt,
  };
}

function distinct(values: readonly (string | null)[]): string[] {
  return [...new Set(values.filter((value) => value !== null))].sort();
}
