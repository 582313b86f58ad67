import { type Kysely, type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { quoted } from '../archive/errors.ts';
import { EVENT_KINDS_LEFT_BEHIND } from '../archive/event-kinds.ts';
import { DEFAULT_ARCHIVE_LIMITS, MAX_EVENT_KIND_BYTES, MAX_TEXT_BYTES } from '../archive/format.ts';
import { historyDigest } from '../archive/history-digest.ts';
import { stateTimesFault, tagFault, versionFault } from '../archive/metadata.ts';
import type { ArchivedTag, ArchivedVersion, VersionDigest } from '../archive/model.ts';
import { isArchivableTime, type KilolockDatabase, microsecondTime } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import { type DigestBudget, digestVersions } from './digest-budget.ts';
import { checkRawStateLength, HistoryInconsistentError, unarchivable } from './inconsistent.ts';

/** One state's history without its raw states: what a preview and an archive's manifest are made of. */
export interface StateHistory {
  readonly stateId: string;
  readonly lineage: string | null;
  /** Where the state's pointer stands; null when the state has no version. */
  readonly current: { readonly versionId: string; readonly serial: bigint } | null;
  /** In ascending serial order. */
  readonly versions: readonly ArchivedVersion[];
  /** By tag, in Unicode code point order. */
  readonly tags: readonly ArchivedTag[];
  /** Events that travel with the history. */
  readonly eventCount: number;
  /** Rows of `resources`. */
  readonly spanCount: number;
  /** Digests of raw states that are on record, in ascending serial order. */
  readonly digests: readonly VersionDigest[];
}

/**
 * Reads the histories of `stateIds` in one statement, so that each is one consistent cut. Raw states are not read.
 *
 * @throws HistoryInconsistentError when the current pointer or a tag points outside the state, or a row holds what no archive
 *   can: a time outside the years 0001 to 9999, a text beyond the format's bound.
 */
export async function readHistories(
  db: Kysely<Database>,
  stateIds: readonly string[],
): Promise<Map<string, StateHistory>> {
  if (stateIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('states')
    .where('states.id', 'in', stateIds)
    .select((select) => [
      'states.id as stateId',
      'states.lineage',
      'states.current_version_id as currentVersionId',
      microsecondTime('states.created_at').as('createdAt'),
      microsecondTime('states.updated_at').as('updatedAt'),
      select
        .selectFrom(
          select
            .selectFrom('state_versions as version')
            .whereRef('version.state_id', '=', 'states.id')
            .select([
              'version.id',
              'version.serial',
              'version.terraform_version',
              'version.source',
              'version.created_by',
              microsecondTime('version.created_at').as('created_at'),
              bytesOfAll('version.terraform_version', 'version.source', 'version.created_by').as(
                'text_bytes',
              ),
            ])
            .as('version'),
        )
        .leftJoin('state_archive.version_digest as digest', 'digest.state_version_id', 'version.id')
        .select(
          listOf(
            sql`json_build_array(version.id, version.serial::text, version.terraform_version, version.source,
              version.created_at, version.created_by, encode(digest.sha256, 'hex'), digest.byte_length)
              order by version.serial`,
            'version.text_bytes',
          ).as('rows'),
        )
        .as('versions'),
      select
        .selectFrom(
          select
            .selectFrom('state_version_tags as tag')
            .leftJoin('state_versions as version', (join) =>
              join
                .onRef('version.id', '=', 'tag.state_version_id')
                .onRef('version.state_id', '=', 'tag.state_id'),
            )
            .whereRef('tag.state_id', '=', 'states.id')
            .whereRef('tag.tenant_id', '=', 'states.tenant_id')
            .select([
              'tag.tag',
              'version.serial',
              'tag.description',
              'tag.actor',
              microsecondTime('tag.created_at').as('created_at'),
              microsecondTime('tag.updated_at').as('updated_at'),
              bytesOfAll('tag.description', 'tag.actor').as('text_bytes'),
            ])
            .as('tag'),
        )
        .select(
          listOf(
            sql`json_build_array(tag.tag, tag.serial::text, tag.description, tag.actor, tag.created_at, tag.updated_at)
              order by tag.tag collate "C"`,
            'tag.text_bytes',
          ).as('rows'),
        )
        .as('tags'),
      select
        .selectFrom('events as event')
        .whereRef('event.state_id', '=', 'states.id')
        .where('event.kind', '!~', EVENT_KINDS_LEFT_BEHIND)
        .select(
          sql<string>`json_build_array(count(*), min(event.id::text) filter (
            where not ${isArchivableTime('event.created_at')} or octet_length(event.kind) > ${sql.lit(MAX_EVENT_KIND_BYTES)}
              or octet_length(event.actor) > ${sql.lit(MAX_TEXT_BYTES)}))`.as('counted'),
        )
        .as('events'),
      select
        .selectFrom('resources as span')
        .whereRef('span.state_id', '=', 'states.id')
        .select(
          sql<string>`json_build_array(count(*), min(left(span.address, 200)) filter (
            where not ${isArchivableTime('span.created_at')}))`.as('counted'),
        )
        .as('spans'),
    ])
    .execute();
  return new Map(rows.map((row) => [row.stateId, historyOf(row)]));
}

/** The bytes of these texts over all rows of the query. */
function bytesOfAll(...columns: readonly string[]): RawBuilder<string> {
  const lengths = columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`);
  return sql<string>`sum(${sql.join(lengths, sql` + `)}) over ()`;
}

/**
 * A JSON list of rows; `false` in its place when their texts together are longer than the member of an archive that they
 * would go into, so that no row of this reading is longer than the driver can hold.
 */
function listOf(row: RawBuilder<unknown>, textBytes: string): RawBuilder<string | null> {
  const isWithin = sql`${sql.ref(textBytes)} <= ${sql.lit(DEFAULT_ARCHIVE_LIMITS.maxMetadataBytes)}`;
  return sql<string | null>`case when bool_and(${isWithin}) then json_agg(${row}) filter (where ${isWithin})
    when count(*) > 0 then 'false'::json end`;
}

const versionRows = z.array(
  z.tuple([
    z.string(),
    z.string(),
    z.string().nullable(),
    z.string(),
    z.string(),
    z.string().nullable(),
    z.string().nullable(),
    z.number().nullable(),
  ]),
);

const tagRows = z.array(
  z.tuple([z.string(), z.string().nullable(), z.string().nullable(), z.string(), z.string(), z.string()]),
);

/** How many rows there are, and the name of one that no archive can hold. */
const countRow = z.tuple([z.number(), z.string().nullable()]);

/** @throws HistoryInconsistentError when there are more rows than an archive holds. */
function checkCounts(counts: { versions: number; tags: number; events: number }): void {
  const { maxVersions, maxEvents } = DEFAULT_ARCHIVE_LIMITS;
  const limits = { versions: maxVersions, tags: maxVersions, events: maxEvents };
  for (const what of ['versions', 'tags', 'events'] as const) {
    if (counts[what] > limits[what]) {
      throw new HistoryInconsistentError(
        `The state has ${counts[what]} ${what}; an archive holds ${limits[what]} at most.`,
      );
    }
  }
}

function historyOf(row: {
  stateId: string;
  lineage: string | null;
  currentVersionId: string | null;
  createdAt: string;
  updatedAt: string;
  versions: string | null;
  tags: string | null;
  events: string | null;
  spans: string | null;
}): StateHistory {
  const stateFault = stateTimesFault(row);
  if (stateFault !== null) throw unarchivable('The state', stateFault);
  for (const [rows, what] of [
    [row.versions, 'versions (terraform_version, source, created_by)'],
    [row.tags, 'tags (description, actor)'],
  ] as const) {
    if (rows === 'false') {
      throw new HistoryInconsistentError(
        `The texts of the state's ${what} have more than ${DEFAULT_ARCHIVE_LIMITS.maxMetadataBytes} bytes together, which no archive holds; shorten the longest in Kilolock first.`,
      );
    }
  }
  const versions: ArchivedVersion[] = [];
  const digests: VersionDigest[] = [];
  for (const [
    id,
    serialText,
    terraformVersion,
    source,
    createdAt,
    createdBy,
    sha256,
    byteLength,
  ] of versionRows.parse(JSON.parse(row.versions ?? '[]'))) {
    const serial = BigInt(serialText);
    const version = { id, serial, terraformVersion, source, createdAt, createdBy };
    const fault = versionFault(version);
    if (fault !== null) throw unarchivable(`The version of serial ${serial}`, fault);
    versions.push(version);
    if (sha256 !== null && byteLength !== null) digests.push({ serial, sha256, byteLength });
  }
  const tags = tagRows
    .parse(JSON.parse(row.tags ?? '[]'))
    .map(([tag, serial, description, actor, createdAt, updatedAt]) => {
      if (serial === null) {
        throw new HistoryInconsistentError(
          `Tag ${quoted(tag)} points at a version of another state; set or unset the tag in Kilolock first.`,
        );
      }
      const archived = { tag, serial: BigInt(serial), description, actor, createdAt, updatedAt };
      const fault = tagFault(archived);
      if (fault !== null) throw unarchivable(`Tag ${quoted(tag)}`, fault);
      return archived;
    });
  const [eventCount, oddEvent] = countRow.parse(JSON.parse(row.events ?? '[0, null]'));
  if (oddEvent !== null) {
    throw unarchivable(
      `Event ${oddEvent}`,
      'a time outside the years 0001 to 9999, or a kind or an actor that is too long',
    );
  }
  const [spanCount, oddSpan] = countRow.parse(JSON.parse(row.spans ?? '[0, null]'));
  if (oddSpan !== null) {
    throw unarchivable(`A resource row of ${quoted(oddSpan)}`, 'a time outside the years 0001 to 9999');
  }
  checkCounts({ versions: versions.length, tags: tags.length, events: eventCount });
  const currentVersion = versions.find((version) => version.id === row.currentVersionId);
  if (currentVersion === undefined && (row.currentVersionId !== null || versions.length > 0)) {
    throw new HistoryInconsistentError(
      "The state's current pointer does not stand at a version of the state; mend it in Kilolock first.",
    );
  }
  return {
    stateId: row.stateId,
    lineage: row.lineage,
    current: currentVersion ? { versionId: currentVersion.id, serial: currentVersion.serial } : null,
    versions,
    tags,
    eventCount,
    spanCount,
    digests,
  };
}

/** Keeps digests that were computed from the raw states themselves; they replace what was on record. */
export async function recordDigests(
  db: Kysely<Database>,
  digests: readonly { readonly versionId: string; readonly sha256: string; readonly byteLength: number }[],
): Promise<void> {
  await sql`
    insert into state_archive.version_digest (state_version_id, sha256, byte_length)
    select id, decode(sha256, 'hex'), byte_length
    from unnest(
      ${digests.map((digest) => digest.versionId)}::uuid[],
      ${digests.map((digest) => digest.sha256)}::text[],
      ${digests.map((digest) => digest.byteLength)}::bigint[]
    ) as computed (id, sha256, byte_length)
    on conflict (state_version_id) do update
    set sha256 = excluded.sha256, byte_length = excluded.byte_length
    where (version_digest.sha256, version_digest.byte_length) is distinct from (excluded.sha256, excluded.byte_length)
  `.execute(db);
}

/**
 * Reads histories as {@link readHistories} does, with the digest of every version: missing ones are made first, again
 * while writers keep adding versions, for as long as the budget lasts.
 *
 * @returns the histories that are there, by state; {@link isDigested} tells whether one is complete.
 */
export async function readDigestedHistories(
  database: KilolockDatabase,
  stateIds: readonly string[],
  budget: DigestBudget,
): Promise<Map<string, StateHistory>> {
  const db = database.for('read');
  const histories = await readHistories(db, stateIds);
  for (;;) {
    const undigested = [...histories.values()].filter((history) => !isDigested(history));
    if (undigested.length === 0 || budget.isSpent) return histories;
    await digestVersions(database, undigested.flatMap(undigestedVersions), budget);
    const ids = undigested.map(({ stateId }) => stateId);
    // What was deleted meanwhile is in the next reading no more.
    for (const id of ids) histories.delete(id);
    for (const [id, history] of await readHistories(db, ids)) histories.set(id, history);
  }
}

/** Whether every version of a history has its digest on record. */
export function isDigested(history: StateHistory): boolean {
  return history.digests.length === history.versions.length;
}

function undigestedVersions({ versions, digests }: StateHistory): string[] {
  const known = new Set(digests.map(({ serial }) => serial));
  return versions.filter(({ serial }) => !known.has(serial)).map(({ id }) => id);
}

/**
 * The history's digest by the archive format's rule, and the bytes of all raw states together.
 *
 * @throws HistoryInconsistentError when the history has no version, or one without a digest on record, or one whose raw state
 *   is longer than any an archive holds.
 */
export function digestHistory(history: StateHistory): { historyDigest: string; rawBytes: bigint } {
  if (history.current === null) throw new HistoryInconsistentError('The state has no version.');
  const digests = new Map(history.digests.map((digest) => [digest.serial, digest]));
  let rawBytes = 0n;
  const versions = history.versions.map((version) => {
    const digest = digests.get(version.serial);
    if (digest === undefined) {
      throw new HistoryInconsistentError(`Serial ${version.serial} has no digest on record.`);
    }
    checkRawStateLength(version.serial, digest.byteLength);
    rawBytes += BigInt(digest.byteLength);
    return { ...version, sha256: digest.sha256 };
  });
  return {
    historyDigest: historyDigest({
      lineage: history.lineage,
      currentSerial: history.current.serial,
      versions,
      tags: history.tags,
    }),
    rawBytes,
  };
}
