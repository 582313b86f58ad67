import { type Kysely, type RawBuilder, sql } from 'kysely';
import { DEFAULT_ARCHIVE_LIMITS } from '../archive/format.ts';
import { type KilolockDatabase, microsecondTime } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import { type DigestBudget, digestVersions } from './digest-budget.ts';
import { checkRawStateLength } from './inconsistent.ts';

/** One row of `state_versions`, without its raw state. */
export type VersionRecord = Awaited<ReturnType<typeof findVersions>>[number];

/** A tag and the version it names. */
export interface TagRecord {
  readonly stateId: string;
  readonly versionId: string;
  readonly serial: bigint;
  readonly tag: string;
  readonly description: string | null;
  readonly actor: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** The bytes and the digest of one raw state. */
export interface RawStateFacts {
  readonly sha256: string;
  readonly byteLength: bigint;
}

/** What a version holds, in resource instances, and how it differs from the version before it by serial. */
export interface VersionContents {
  readonly resources: number;
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
}

/** The versions of each state in descending serial order, below the serial `before` (null: from the top). */
export async function listVersions(
  db: Kysely<Database>,
  stateIds: readonly string[],
  page: { readonly before: bigint | null; readonly limit: number },
): Promise<Map<string, VersionRecord[]>> {
  const rows = await selectVersions(db)
    .innerJoinLateral(
      (lateral) =>
        lateral
          .selectFrom('state_versions as candidate')
          .select('candidate.id')
          .whereRef('candidate.state_id', '=', 'states.id')
          .$if(page.before !== null, (query) => query.where('candidate.serial', '<', String(page.before)))
          .orderBy('candidate.serial', 'desc')
          .limit(page.limit)
          .as('page'),
      (join) => join.onRef('page.id', '=', 'version.id'),
    )
    .where('states.id', 'in', stateIds)
    .orderBy('version.serial', 'desc')
    .execute();
  return Map.groupBy(rows.map(withSerial), (version) => version.stateId);
}

/** The versions with these serials; a pair that names none is absent from the result. */
export async function findVersions(
  db: Kysely<Database>,
  wanted: readonly { readonly stateId: string; readonly serial: bigint }[],
) {
  const rows = await selectVersions(db)
    .where(
      sql<boolean>`(version.state_id, version.serial) in (
        select * from unnest(${wanted.map((pair) => pair.stateId)}::uuid[], ${wanted.map((pair) => String(pair.serial))}::bigint[]))`,
    )
    .execute();
  return rows.map(withSerial);
}

/** How many versions each state has; a state without versions is absent. */
export async function countVersions(
  db: Kysely<Database>,
  stateIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('state_versions')
    .where('state_id', 'in', stateIds)
    .groupBy('state_id')
    .select((select) => ['state_id as stateId', select.fn.countAll<string>().as('count')])
    .execute();
  return new Map(rows.map((row) => [row.stateId, Number(row.count)]));
}

/** The tags of each state, by tag in Unicode code point order. Tags that point outside their state are left out. */
export async function listTags(
  db: Kysely<Database>,
  stateIds: readonly string[],
): Promise<Map<string, TagRecord[]>> {
  const rows = await db
    .selectFrom('state_version_tags as tag')
    .innerJoin('states', (join) =>
      join.onRef('states.id', '=', 'tag.state_id').onRef('states.tenant_id', '=', 'tag.tenant_id'),
    )
    .innerJoin('state_versions as version', (join) =>
      join.onRef('version.id', '=', 'tag.state_version_id').onRef('version.state_id', '=', 'tag.state_id'),
    )
    .where('tag.state_id', 'in', stateIds)
    .orderBy(sql`tag.tag collate "C"`)
    .select([
      'tag.state_id as stateId',
      'version.id as versionId',
      'version.serial',
      'tag.tag',
      shown<string | null>('tag.description').as('description'),
      shown('tag.actor').as('actor'),
      microsecondTime('tag.created_at').as('createdAt'),
      microsecondTime('tag.updated_at').as('updatedAt'),
    ])
    .execute();
  return Map.groupBy(rows.map(withSerial), (tag) => tag.stateId);
}

/**
 * The size and digest of each version's raw state, by version id; made and kept when not on record yet. A version that
 * is not there, or that the budget does not reach to, has none.
 */
export async function readRawStateFacts(
  database: KilolockDatabase,
  versions: readonly VersionRecord[],
  budget: DigestBudget,
): Promise<Map<string, RawStateFacts>> {
  const db = database.for('read');
  const known = await selectRawStateFacts(db, versions);
  const missing = versions.filter((version) => !known.has(version.id));
  if (missing.length === 0) return known;
  await digestVersions(
    database,
    missing.map((version) => version.id),
    budget,
  );
  return new Map([...known, ...(await selectRawStateFacts(db, missing))]);
}

async function selectRawStateFacts(
  db: Kysely<Database>,
  versions: readonly VersionRecord[],
): Promise<Map<string, RawStateFacts>> {
  const rows = await db
    .selectFrom('state_archive.version_digest')
    .where(
      'state_version_id',
      'in',
      versions.map((version) => version.id),
    )
    .select([
      'state_version_id as versionId',
      sql<string>`encode(sha256, 'hex')`.as('sha256'),
      'byte_length as byteLength',
    ])
    .execute();
  return new Map(
    rows.map((row) => [row.versionId, { sha256: row.sha256, byteLength: BigInt(row.byteLength) }]),
  );
}

/**
 * What each version holds, by version id. A row of `resources` is alive in a version of serial V when
 * `create_serial <= V < delete_serial` (data model 3.7); an instance is changed when another row stands for its
 * address and its attributes are others, as in Kilolock's own diff. A row of its own alone is no change: Kilolock opens
 * one for another spelling, too.
 */
export async function readVersionContents(
  db: Kysely<Database>,
  versionIds: readonly string[],
): Promise<Map<string, VersionContents>> {
  const { rows } = await sql<VersionContents & { readonly id: string }>`
    with wanted as (
      select version.id, version.state_id, version.serial, (
        select max(before.serial) from public.state_versions before
        where before.state_id = version.state_id and before.serial < version.serial
      ) as previous
      from public.state_versions version
      where version.id = any(${[...versionIds]}::uuid[])
    ), instance as (
      select wanted.id, wanted.state_id, span.address,
        max(span.create_serial) filter (
          where span.delete_serial is null or span.delete_serial > wanted.serial
        ) as here,
        max(span.create_serial) filter (where span.create_serial <= wanted.previous) as earlier
      from wanted
      join public.resources span on span.state_id = wanted.state_id
        and span.create_serial <= wanted.serial
        and (span.delete_serial is null or span.delete_serial > coalesce(wanted.previous, wanted.serial))
      group by wanted.id, wanted.state_id, span.address
    )
    select wanted.id,
      count(here)::int as resources,
      count(*) filter (where here is not null and earlier is null)::int as added,
      count(*) filter (where here <> earlier and (
        select count(distinct span.attributes::text) from public.resources span
        where span.state_id = instance.state_id and span.address = instance.address
          and span.create_serial in (here, earlier)
      ) > 1)::int as changed,
      count(*) filter (where here is null and earlier is not null)::int as removed
    from wanted
    left join instance on instance.id = wanted.id
    group by wanted.id
  `.execute(db);
  return new Map(rows.map(({ id, ...contents }) => [id, contents]));
}

/** The names of each version's outputs in Unicode code point order, by version id. Values are never read. */
export async function listOutputNames(
  db: Kysely<Database>,
  versionIds: readonly string[],
): Promise<Map<string, string[]>> {
  const rows = await db
    .selectFrom('outputs')
    .where('state_version_id', 'in', versionIds)
    .orderBy(sql`name collate "C"`)
    .select(['state_version_id as versionId', 'name'])
    .execute();
  const names = Map.groupBy(rows, (row) => row.versionId);
  return new Map([...names].map(([versionId, group]) => [versionId, group.map((row) => row.name)]));
}

/**
 * The raw state of one version, byte for byte as PostgreSQL renders the jsonb, and its length in bytes; null when the version is
 * gone. It holds secrets.
 *
 * @returns only the length when there are more than `maxBytes`.
 * @throws HistoryInconsistentError when it is longer than any that an archive holds: numbers unfold when they are printed, and
 *   the driver ends the process over a value of half a gigabyte.
 */
export async function readRawState(
  db: Kysely<Database>,
  versionId: string,
  maxBytes: number,
): Promise<{ readonly byteLength: number; readonly text: string | null } | null> {
  const most = Math.min(maxBytes, DEFAULT_ARCHIVE_LIMITS.maxVersionBytes);
  const row = await db
    .selectFrom((printed) =>
      printed
        .selectFrom('state_versions')
        .where('id', '=', versionId)
        .select(['serial', sql<string>`raw_state::text`.as('text')])
        // Printed once: PostgreSQL would copy the expression into both places that use it.
        .offset(sql.lit(0))
        .as('printed'),
    )
    .select([
      'serial',
      sql<number>`octet_length(text)`.as('byteLength'),
      sql<string | null>`case when octet_length(text) <= ${sql.lit(most)} then text end`.as('text'),
    ])
    .executeTakeFirst();
  if (row === undefined) return null;
  checkRawStateLength(BigInt(row.serial), row.byteLength);
  return { byteLength: row.byteLength, text: row.text };
}

/** Who holds the oldest lock on each state that is locked (data model 5). */
export async function findLockHolders(
  db: Kysely<Database>,
  stateIds: readonly string[],
): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('state_locks')
    .where('state_id', 'in', stateIds)
    .distinctOn('state_id')
    .orderBy('state_id')
    .orderBy('acquired_at')
    .select([
      'state_id as stateId',
      sql<string>`left(coalesce(nullif(who, ''), lock_id), ${sql.lit(MAX_SHOWN)})`.as('holder'),
    ])
    .execute();
  return new Map(rows.map((row) => [row.stateId, row.holder]));
}

/** The most characters of a text of a row that are shown: a page of them has a bound, and people write far less. */
const MAX_SHOWN = 64 * 1024;

/** A text column, cut and marked with `…` where nobody would read to its end. An archive has all of it. */
function shown<Text extends string | null = string>(column: string): RawBuilder<Text> {
  const text = sql.ref(column);
  const most = sql.lit(MAX_SHOWN);
  // The length in bytes is known without reading the text.
  return sql<Text>`case when octet_length(${text}) <= ${most} or char_length(${text}) <= ${most} then ${text}
    else left(${text}, ${most}) || '…' end`;
}

function selectVersions(db: Kysely<Database>) {
  return db
    .selectFrom('states')
    .innerJoin('state_versions as version', 'version.state_id', 'states.id')
    .select([
      'version.id',
      'version.state_id as stateId',
      'version.serial',
      shown<string | null>('version.terraform_version').as('terraformVersion'),
      shown('version.source').as('source'),
      microsecondTime('version.created_at').as('createdAt'),
      shown<string | null>('version.created_by').as('createdBy'),
      sql<boolean>`version.id is not distinct from states.current_version_id`.as('isCurrent'),
    ]);
}

function withSerial<Row extends { serial: string }>(row: Row): Omit<Row, 'serial'> & { serial: bigint } {
  return { ...row, serial: BigInt(row.serial) };
}
