/** What a generated history looks like. Two histories of one shape are the same, byte for byte. */
export interface HistoryShape {
  /** Names the history: its database, its archive, its rows in the report. */
  readonly name: string;
  readonly versions: number;
  /** Elements of a document's `resources`, about 860 bytes each with one instance that has `contents: 'whole'`. */
  readonly resources: number;
  /** Instances of each resource. */
  readonly instances: number;
  /** What an instance holds: what a provider stores, or an id alone, for histories of many small rows. */
  readonly contents: 'whole' | 'id';
  /**
   * What a version changes: three instances, with a resource added or removed now and then; or every instance, so that nothing
   * is as it was in the version before.
   */
  readonly changes: 'few' | 'everything';
}

const USUAL = { resources: 1160, instances: 1, contents: 'whole', changes: 'few' } as const;

/** The history that the goals are stated for: versions of about 1 MB that differ little from one to the next. */
export function usualHistory(versions: number): HistoryShape {
  return { name: `usual_${versions}`, versions, ...USUAL };
}

/** Many versions, of about 250 kB, that differ little from one to the next. */
export function manyVersions(versions: number): HistoryShape {
  return { name: `many_${versions}`, versions, ...USUAL, resources: 290 };
}

/** Versions of about as many megabytes as told. */
export function largeVersions(versions: number, megabytes: number): HistoryShape {
  const resources = Math.round(USUAL.resources * megabytes);
  return { name: `large_${versions}x${megabytes}mb`, versions, ...USUAL, resources };
}

/** Versions that have nothing in common. */
export function changingHistory(versions: number): HistoryShape {
  return { name: `changing_${versions}`, versions, ...USUAL, changes: 'everything' };
}

/** About as many resource spans as told: versions with many small instances that all change every time. */
export function manySpans(spans: number): HistoryShape {
  const versions = 20;
  const instances = Math.ceil(spans / versions);
  return { name: `spans_${spans}`, versions, resources: 1, instances, contents: 'id', changes: 'everything' };
}
