import { type Expression, expressionBuilder, type Kysely, type RawBuilder, sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { quoted } from '../archive/errors.ts';
import { EVENT_KINDS_LEFT_BEHIND } from '../archive/event-kinds.ts';
import { DEFAULT_ARCHIVE_LIMITS, MAX_EVENT_KIND_BYTES, MAX_TEXT_BYTES } from '../archive/format.ts';
import { historyDigest } from '../archive/history-digest.ts';
import { stateTimesFault, tagFault, versionFault } from '../archive/metadata.ts';
import type { ArchivedTag, ArchivedVersion, VersionDigest } from '../archive/model.ts';
import { compiledOnce, type Placeholder } from '../database/compiled-once.ts';
import {
  isArchivableTime,
  type KilolockDatabase,
  microsecondTime,
  utcTimeOfJson,
} from '../database/connection.ts';
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
  const rows = await selectHistories(db, { stateIds });
  return new Map(rows.map((row) => [row.id, historyOf(row)]));
}

/** The characters of rows that are kept: those of some fifty histories of two hundred versions. */
const MAX_KNOWN_LENGTH = 2 * 1024 * 1024;

const selectHistories = compiledOnce((db, value: Placeholder<{ stateIds: readonly string[] }>) =>
  db
    .selectFrom('states')
    .where(({ eb, fn }) => eb('states.id', '=', fn.any(value('stateIds'))))
    .select([
      'states.id',
      'states.lineage',
      'states.current_version_id as currentVersionId',
      microsecondTime('states.created_at').as('createdAt'),
      microsecondTime('states.updated_at').as('updatedAt'),
    ])
    .select(historyColumns()),
);

/** What {@link historyOf} is made of. */
export type HistoryRow = Awaited<ReturnType<typeof selectHistories>>[number] & {
  /** The {@link markColumn} that was read with it. */
  readonly mark?: string | null;
};

/** The columns `versions`, `tags`, `events` and `spans` of a {@link HistoryRow}, of a statement that reads `states`. */
export function historyColumns() {
  return [versionsColumn().as('versions'), tagsColumn().as('tags'), ...countColumns()] as const;
}

/** Those without the lists of rows, in whose place there is their mark. */
export function markedColumns() {
  return [markColumn().as('mark'), ...countColumns()] as const;
}

/** The versions of `states`, each with the digest that is on record of it. */
function versions() {
  return expressionBuilder<Database, 'states'>()
    .selectFrom('state_versions as version')
    .leftJoin('state_archive.version_digest as digest', 'digest.state_version_id', 'version.id')
    .whereRef('version.state_id', '=', 'states.id');
}

/** The tags of `states`, each with the version of that state which it names. */
function tags() {
  return expressionBuilder<Database, 'states'>()
    .selectFrom('state_version_tags as tag')
    .leftJoin('state_versions as version', (join) =>
      join.onRef('version.id', '=', 'tag.state_version_id').onRef('version.state_id', '=', 'tag.state_id'),
    )
    .whereRef('tag.tenant_id', '=', 'states.tenant_id')
    .whereRef('tag.state_id', '=', 'states.id');
}

/** The bytes of the texts in all rows. */
const bytesOfVersions = bytesOfAll('version.terraform_version', 'version.source', 'version.created_by');
const bytesOfTags = bytesOfAll('tag.description', 'tag.actor');

type TextColumn =
  | `version.${keyof Database['state_versions']}`
  | `tag.${keyof Database['state_version_tags']}`;

function bytesOfAll(...columns: readonly TextColumn[]): RawBuilder<number> {
  const lengths = columns.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`);
  return sql`coalesce(sum(${sql.join(lengths, sql` + `)}), 0)`;
}

/**
 * A hash of all that `versions` and `tags` are made of. Where it is the same, they are the same; where it is not, the order in which
 * the rows were met may be all that differs. Null where there is no version, or more than is kept.
 */
export function markColumn(): RawBuilder<string | null> {
  const length = (bytes: RawBuilder<number>) => sql<number>`count(*) * 100 + ${bytes}`.as('length');
  // All that has no fixed length says how long it is, so that other rows are other bytes. record_send would take half as long again.
  const versionBytes = sql`string_agg(
    uuid_send(version.id) || int8send(version.serial) || timestamptz_send(version.created_at)
    || int8send(coalesce(digest.byte_length, -1)) || coalesce(digest.sha256, '')
    || array_send(array[version.terraform_version, version.source, version.created_by]), '')`;
  const tagBytes = sql`string_agg(record_send(row(
    tag.tag, tag.state_version_id, tag.description, tag.actor, tag.created_at, tag.updated_at)), '')`;
  return sql`case when ${versions().select(length(bytesOfVersions))} + ${tags().select(length(bytesOfTags))}
    <= ${sql.lit(MAX_KNOWN_LENGTH)} then encode(sha256(
      sha256(${versions().select(versionBytes.as('bytes'))})
      || coalesce(${tags().select(tagBytes.as('bytes'))}, '')), 'hex') end`;
}

/**
 * The most bytes of texts in a list of rows: as long as the member of an archive that they would go into. `false` is in the list's
 * place when there are more, so that no row of a reading is longer than the driver can hold.
 */
const MAX_LIST_BYTES = sql.lit(DEFAULT_ARCHIVE_LIMITS.maxMetadataBytes);

/** By column: PostgreSQL looks up how to print a type once for a list, and else for each field of a row. */
function versionsColumn(): RawBuilder<string> {
  const inOrder = versions()
    .orderBy('version.serial')
    .select([
      'version.id',
      'version.serial',
      'version.terraform_version',
      'version.source',
      'version.created_at',
      'version.created_by',
      'digest.sha256',
      'digest.byte_length',
    ])
    .as('version');
  const columns = expressionBuilder<Database, 'states'>()
    .selectFrom(inOrder)
    .select(({ fn, ref, cast }) =>
      jsonArray(
        fn.jsonAgg(ref('version.id')),
        fn.jsonAgg(cast('version.serial', 'text')),
        fn.jsonAgg(ref('version.terraform_version')),
        fn.jsonAgg(ref('version.source')),
        fn.jsonAgg(ref('version.created_at')),
        fn.jsonAgg(ref('version.created_by')),
        fn.jsonAgg(fn('encode', ['version.sha256', sql.lit('hex')])),
        fn.jsonAgg(ref('version.byte_length')),
      ).as('columns'),
    );
  const bytes = versions().select(bytesOfVersions.as('bytes'));
  return sql`case when ${bytes} <= ${MAX_LIST_BYTES} then ${columns} else 'false' end`;
}

function tagsColumn(): RawBuilder<string | null> {
  const rows = tags().select(({ fn, ref, cast }) =>
    fn
      .jsonAgg(
        jsonArray(
          ref('tag.tag'),
          cast('version.serial', 'text'),
          ref('tag.description'),
          ref('tag.actor'),
          ref('tag.created_at'),
          ref('tag.updated_at'),
        ),
      )
      .orderBy('tag.tag', (order) => order.collate('C'))
      .as('rows'),
  );
  const bytes = tags().select(bytesOfTags.as('bytes'));
  return sql`case when ${bytes} <= ${MAX_LIST_BYTES} then ${rows} else 'false' end`;
}

/** How many events and resource spans there are, and the name of one that no archive can hold. */
function countColumns() {
  const states = expressionBuilder<Database, 'states'>();
  const kinds = states
    .selectFrom('events as event')
    .whereRef('event.state_id', '=', 'states.id')
    .groupBy('event.kind')
    // What travels is decided for each kind, not for each event.
    .offset(sql.lit(0))
    .select(({ fn, cast, not, or, eb }) => [
      'event.kind',
      fn.countAll().as('count'),
      fn
        .min(cast<string>('event.id', 'text'))
        .filterWhere(
          or([
            not(isArchivableTime('event.created_at')),
            eb(fn('octet_length', ['event.kind']), '>', sql.lit(MAX_EVENT_KIND_BYTES)),
            eb(fn('octet_length', ['event.actor']), '>', sql.lit(MAX_TEXT_BYTES)),
          ]),
        )
        .as('odd'),
    ])
    .as('event');
  const events = states
    .selectFrom(kinds)
    .where('event.kind', '!~', sql.lit(EVENT_KINDS_LEFT_BEHIND))
    .select(({ fn }) =>
      jsonArray(fn.coalesce(fn.sum('event.count'), sql.lit(0)), fn.min('event.odd')).as('counted'),
    );
  const spans = states
    .selectFrom('resources as span')
    .whereRef('span.state_id', '=', 'states.id')
    .select(({ fn, not }) =>
      jsonArray(
        fn.countAll(),
        fn
          .min(fn<string>('left', ['span.address', sql.lit(200)]))
          .filterWhere(not(isArchivableTime('span.created_at'))),
      ).as('counted'),
    );
  return [events.$asScalar().as('events'), spans.$asScalar().as('spans')] as const;
}

/** A JSON array, which the driver leaves as text. */
function jsonArray(...items: readonly Expression<unknown>[]): RawBuilder<string> {
  return sql`json_build_array(${sql.join(items)})`;
}

/** A column of a list of rows; null where there is none. */
const column = <Item>(item: z.ZodType<Item>) =>
  z
    .array(item)
    .nullable()
    .transform((items) => items ?? []);
const texts = column(z.string());
const textsOrNulls = column(z.string().nullable());

/** By column, which takes PostgreSQL half the time of a list of rows. */
const versionColumns = z.tuple([
  texts,
  texts,
  textsOrNulls,
  texts,
  texts,
  textsOrNulls,
  textsOrNulls,
  column(z.number().nullable()),
]);

const tagRows = z.array(
  z.tuple([z.string(), z.string().nullable(), z.string().nullable(), z.string(), z.string(), z.string()]),
);

/** How many rows there are, and the name of one that no archive can hold. */
const countRow = z.tuple([z.number(), z.string().nullable()]);

/** What is made of rows, until other rows are read of the state: most previews are of a history that has not changed. */
const known = new LRUCache<string, { readonly row: HistoryRow; readonly history: StateHistory }>({
  maxSize: MAX_KNOWN_LENGTH,
  sizeCalculation: ({ row }) => row.versions.length + (row.tags?.length ?? 0),
});

/**
 * The history that a statement has read with {@link historyColumns}.
 *
 * @throws HistoryInconsistentError as {@link readHistories} does.
 */
export function historyOf(row: HistoryRow): StateHistory {
  const earlier = known.get(row.id);
  if (earlier !== undefined && isSame(row, earlier.row)) return earlier.history;
  const history = makeHistory(row);
  known.set(row.id, { row, history });
  return history;
}

/** What a state's history was last made of; undefined when it is not kept. */
export function knownRow(stateId: string): HistoryRow | undefined {
  return known.get(stateId)?.row;
}

/** Whether all that a statement gave is as another gave it; it may have given more of the environment than the other. */
function isSame(row: HistoryRow, other: HistoryRow): boolean {
  return (Object.keys(row) as (keyof HistoryRow)[]).every((name) => row[name] === other[name]);
}

function makeHistory(row: HistoryRow): StateHistory {
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
  for (const [id, serialText, terraformVersion, source, createdAt, createdBy, sha256, byteLength] of rowsOf(
    versionColumns.parse(JSON.parse(row.versions)),
  )) {
    const serial = BigInt(serialText);
    const version = { id, serial, terraformVersion, source, createdAt: utcTimeOfJson(createdAt), createdBy };
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
      const archived = {
        tag,
        serial: BigInt(serial),
        description,
        actor,
        createdAt: utcTimeOfJson(createdAt),
        updatedAt: utcTimeOfJson(updatedAt),
      };
      const fault = tagFault(archived);
      if (fault !== null) throw unarchivable(`Tag ${quoted(tag)}`, fault);
      return archived;
    });
  const [eventCount, oddEvent] = countRow.parse(JSON.parse(row.events));
  if (oddEvent !== null) {
    throw unarchivable(
      `Event ${oddEvent}`,
      'a time outside the years 0001 to 9999, or a kind or an actor that is too long',
    );
  }
  const [spanCount, oddSpan] = countRow.parse(JSON.parse(row.spans));
  if (oddSpan !== null) {
    throw unarchivable(`A resource row of ${quoted(oddSpan)}`, 'a time outside the years 0001 to 9999');
  }
  const { maxVersions, maxEvents } = DEFAULT_ARCHIVE_LIMITS;
  for (const [what, count, most] of [
    ['versions', versions.length, maxVersions],
    ['tags', tags.length, maxVersions],
    ['events', eventCount, maxEvents],
  ] as const) {
    if (count > most) {
      throw new HistoryInconsistentError(`The state has ${count} ${what}; an archive holds ${most} at most.`);
    }
  }
  const currentVersion = versions.find((version) => version.id === row.currentVersionId);
  if (currentVersion === undefined && (row.currentVersionId !== null || versions.length > 0)) {
    throw new HistoryInconsistentError(
      "The state's current pointer does not stand at a version of the state; mend it in Kilolock first.",
    );
  }
  return {
    stateId: row.id,
    lineage: row.lineage,
    current: currentVersion ? { versionId: currentVersion.id, serial: currentVersion.serial } : null,
    versions,
    tags,
    eventCount,
    spanCount,
    digests,
  };
}

/** The rows of columns of the same length. */
function rowsOf<Columns extends readonly (readonly unknown[])[]>(
  columns: Columns,
): { [Column in keyof Columns]: Columns[Column][number] }[] {
  const [first = []] = columns;
  return first.map((_, index) => columns.map((column) => column[index])) as ReturnType<
    typeof rowsOf<Columns>
  >;
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
