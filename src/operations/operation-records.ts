import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import { mayAddressState } from '../auth/principal.ts';
import { present } from '../base/invariant.ts';
import { isStorableText } from '../base/text.ts';
import { isUuid } from '../base/uuid.ts';
import { microsecondTime } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import { labelOf, labelSql, type StateNamespace } from '../history/namespace.ts';
import { type Caller, may, mayAddressSql } from '../history/states.ts';
import { readReport } from '../restore/report.ts';
import { now, type Retention } from './operation-lifecycle.ts';
import type { UserError, UserErrorCode } from './user-error.ts';

export type OperationKind = Database['state_archive.operation']['kind'];
export type OperationStatus = Database['state_archive.operation']['status'];

/** The operations among `ids` that the caller may see, by id: those of the caller's environment and state patterns. */
export async function findOperations(
  db: Kysely<Database>,
  caller: Caller,
  ids: readonly string[],
): Promise<Map<string, OperationRecord>> {
  const wellFormed = ids.filter(isUuid);
  if (wellFormed.length === 0) return new Map();
  const records = await readVisible(db, caller, (query) => query.where('operation.id', 'in', wellFormed));
  return new Map(records.map((record) => [record.id, record]));
}

/** A place in a list of operations, newest first. */
export interface OperationPosition {
  readonly createdAt: string;
  readonly id: string;
}

/** The operations of each state that the caller may see, newest first. */
export async function listOperations(
  db: Kysely<Database>,
  caller: Caller,
  stateIds: readonly string[],
  page: { readonly after: OperationPosition | null; readonly limit: number },
): Promise<Map<string, OperationRecord[]>> {
  const ranked = db
    .selectFrom('state_archive.operation as operation')
    .where('operation.state_id', 'in', stateIds)
    .where(comesAfter(page.after))
    .select([
      'operation.id',
      sql<string>`row_number() over (
        partition by operation.state_id order by operation.created_at desc, operation.id desc)`.as('rank'),
    ]);
  const records = await readVisible(db, caller, (query) =>
    query
      .where('operation.id', 'in', (select) =>
        select
          .selectFrom(ranked.as('ranked'))
          .where('ranked.rank', '<=', String(page.limit))
          .select('ranked.id'),
      )
      .orderBy('operation.created_at', 'desc')
      .orderBy('operation.id', 'desc'),
  );
  return Map.groupBy(records, stateIdOf);
}

function stateIdOf({ stateId }: OperationRecord): string {
  return present(stateId, 'it was looked for by the id of its state');
}

/** Which operations are listed; null leaves a question open. */
export interface OperationFilter {
  readonly kind: OperationKind | null;
  /** Any of these. */
  readonly statuses: readonly OperationStatus[] | null;
  /** What the label begins with; '' for all. */
  readonly labelPrefix: string;
  readonly actor: string | null;
  /** Asked for then or later. */
  readonly since: string | null;
}

/** The operations of the caller's environment that the caller may see, newest first, whatever has become of their states. */
export async function searchOperations(
  db: Kysely<Database>,
  caller: Caller,
  { kind, statuses, labelPrefix, actor, since }: OperationFilter,
  page: { readonly after: OperationPosition | null; readonly limit: number },
): Promise<OperationRecord[]> {
  if (!isStorableText(labelPrefix) || !isStorableText(actor ?? '')) return [];
  const label = labelSql(caller.namespace, 'operation.state_name');
  return readVisible(db, caller, (query) =>
    query
      .$if(kind !== null, (some) => some.where('operation.kind', '=', kind))
      .$if(statuses !== null, (some) => some.where(sql<boolean>`${toldStatus} = any(${statuses}::text[])`))
      .$if(labelPrefix !== '', (some) => some.where(sql<boolean>`starts_with(${label}, ${labelPrefix})`))
      .$if(actor !== null, (some) => some.where('operation.actor', '=', actor))
      .$if(since !== null, (some) => some.where('operation.created_at', '>=', since))
      .where(mayAddressSql(caller.principal, label))
      .where(comesAfter(page.after))
      .orderBy('operation.created_at', 'desc')
      .orderBy('operation.id', 'desc')
      .limit(page.limit),
  );
}

/** What an operation's status is told as: an archive may be past its time and not be swept yet. */
const toldStatus = sql<OperationStatus>`case
  when operation.status = 'SUCCEEDED' and operation.expires_at <= ${now} then 'EXPIRED' else operation.status end`;

function comesAfter(position: OperationPosition | null) {
  return position === null
    ? sql<boolean>`true`
    : sql<boolean>`(operation.created_at, operation.id) < (${position.createdAt}::timestamptz, ${position.id}::uuid)`;
}

/** The last operation of a kind that succeeded for each state; states without one are absent. */
export async function findLastSuccesses(
  db: Kysely<Database>,
  caller: Caller,
  kind: OperationKind,
  stateIds: readonly string[],
): Promise<Map<string, OperationRecord>> {
  const records = await readVisible(db, caller, (query) =>
    query
      .where('operation.state_id', 'in', stateIds)
      .where('operation.kind', '=', kind)
      .where('operation.status', 'in', ['SUCCEEDED', 'EXPIRED'])
      .distinctOn('operation.state_id')
      .orderBy('operation.state_id')
      .orderBy('operation.created_at', 'desc'),
  );
  return new Map(records.map((record) => [stateIdOf(record), record]));
}

/** An export of an environment's state that succeeded and has not expired, for whoever has proven the right to its archive. */
export async function findFinishedExport(
  db: Kysely<Database>,
  operationId: string,
  namespace: StateNamespace,
): Promise<OperationRecord | null> {
  const row = await selectOperations(db, namespace)
    .where('operation.id', '=', operationId)
    .where('operation.kind', '=', 'EXPORT')
    .where('operation.status', '=', 'SUCCEEDED')
    .where('operation.expires_at', '>', now)
    .executeTakeFirst();
  return row === undefined ? null : toRecord(row, namespace);
}

/**
 * The version mapping of an import, which version of the archive became which version of the restored state: by ascending
 * serial, above the serial `after` (null: from the first).
 */
export async function listVersionMapping(
  db: Kysely<Database>,
  operationId: string,
  page: { readonly after: bigint | null; readonly limit: number },
) {
  const rows = await db
    .selectFrom('state_archive.version_mapping')
    .where('operation_id', '=', operationId)
    .$if(page.after !== null, (query) => query.where('serial', '>', String(page.after)))
    .orderBy('serial')
    .limit(page.limit)
    .select(['serial', 'source_version_id as sourceVersionId', 'state_version_id as versionId'])
    .execute();
  return rows.map((row) => ({ ...row, serial: BigInt(row.serial) }));
}

/** A version of an archive, and the one it became. */
export type VersionMapping = Awaited<ReturnType<typeof listVersionMapping>>[number];

/** What a stored name begins with, `{workspace}/{environment}/`, as an index has it. */
const firstTwoParts = sql`(split_part(operation.state_name, '/', 1) || '/' || split_part(operation.state_name, '/', 2) || '/')`;
const TWO_PARTS = /^[^/]*\/[^/]*\/$/;

/**
 * The operations on the states of an environment. Whose an operation is, the stored name of its state decides, as it does
 * for states: in one tenant the self-hosted caller works on the states of every environment, and on states of none.
 */
function selectOperations(
  db: Kysely<Database>,
  { tenantId, workspace, environment, namePrefix, hasOwnDatabase }: StateNamespace,
) {
  return db
    .selectFrom('state_archive.operation as operation')
    .where('operation.tenant_id', '=', tenantId)
    .$if(hasOwnDatabase, (kept) =>
      kept
        .where('operation.workspace_id', '=', workspace)
        .where('operation.environment_id', '=', environment),
    )
    .$if(!hasOwnDatabase, (named) =>
      named.where(sql<boolean>`starts_with(operation.state_name, ${namePrefix})`),
    )
    .$if(!hasOwnDatabase && TWO_PARTS.test(namePrefix), (indexed) =>
      indexed.where(sql<boolean>`${firstTwoParts} = ${namePrefix}`),
    )
    .select([
      'operation.id',
      'operation.kind',
      toldStatus.as('status'),
      'operation.state_id as stateId',
      'operation.state_name as stateName',
      'operation.actor',
      'operation.subject',
      'operation.versions_done as versionsDone',
      'operation.versions_total as versionsTotal',
      'operation.bytes_done as bytesDone',
      'operation.bytes_total as bytesTotal',
      microsecondTime('operation.created_at').as('createdAt'),
      microsecondTime<string | null>('operation.started_at').as('startedAt'),
      microsecondTime<string | null>('operation.finished_at').as('finishedAt'),
      microsecondTime<string | null>('operation.expires_at').as('expiresAt'),
      microsecondTime<string | null>('operation.retain_until').as('retainUntil'),
      sql<boolean>`coalesce(operation.expires_at = 'infinity', false)`.as('legalHold'),
      sql<string | null>`encode(operation.archive_sha256, 'hex')`.as('sha256'),
      'operation.archive_size_bytes as sizeBytes',
      sql<string | null>`encode(operation.archive_history_digest, 'hex')`.as('historyDigest'),
      'operation.archive_file_name as fileName',
      'operation.archive_object_key as objectKey',
      'operation.report',
      'operation.replaced_operation_id as replacedOperationId',
      'operation.error_code as errorCode',
      'operation.error_message as errorMessage',
      'operation.error_path as errorPath',
    ]);
}

type OperationsQuery = ReturnType<typeof selectOperations>;
type OperationRow =
  OperationsQuery extends SelectQueryBuilder<infer _Tables, infer _Table, infer Row> ? Row : never;

/** Whoever may read the states of an environment sees what was done with them; whoever may not, what they did themselves. */
async function readVisible(
  db: Kysely<Database>,
  caller: Caller,
  narrow: (query: OperationsQuery) => OperationsQuery,
): Promise<OperationRecord[]> {
  const mayRead = may(caller, 'state.read');
  if (!mayRead && !may(caller, 'state.export') && !may(caller, 'state.import')) return [];
  const { principal, namespace } = caller;
  const query = narrow(
    selectOperations(db, namespace).$if(!mayRead, (own) =>
      own.where('operation.subject', '=', principal.subject),
    ),
  );
  const records = (await query.execute()).map((row) => toRecord(row, namespace));
  return records.filter((record) => mayAddressState(principal, record.label));
}

/** One row of `state_archive.operation`. */
export type OperationRecord = Readonly<ReturnType<typeof toRecord>>;

function toRecord(row: OperationRow, namespace: StateNamespace) {
  const { id, kind, status, actor, subject, createdAt, startedAt, finishedAt } = row;
  return {
    ...{ id, kind, status, actor, subject, createdAt, startedAt, finishedAt },
    /** The exported state, or the restored one; null while there is none. */
    stateId: row.stateId,
    /** The label exported or restored under, as whoever reads the record knows the state. */
    label: labelOf(namespace, row.stateName),
    progress: {
      versionsDone: BigInt(row.versionsDone),
      versionsTotal: bigintOf(row.versionsTotal),
      bytesDone: BigInt(row.bytesDone),
      bytesTotal: bigintOf(row.bytesTotal),
    },
    /** Null also while a legal hold keeps the archive. */
    expiresAt: row.legalHold ? null : row.expiresAt,
    retention: { retainUntil: row.retainUntil, legalHold: row.legalHold } satisfies Retention,
    archive: archiveOf(row),
    /** Null also where a later release recorded what this one cannot tell. */
    report: row.report === null ? null : readReport(row.report),
    /** The export that was taken of the history an import replaced. */
    replacedOperationId: row.replacedOperationId,
    error: errorOf(row),
  };
}

function bigintOf(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}

/** The archive an export made, or an import was given. */
export type ArchiveRecord = Readonly<NonNullable<ReturnType<typeof archiveOf>>>;

function archiveOf({ sha256, sizeBytes, historyDigest, fileName, objectKey }: OperationRow) {
  if (sha256 === null || sizeBytes === null || historyDigest === null || fileName === null) return null;
  return {
    sha256,
    sizeBytes: BigInt(sizeBytes),
    historyDigest,
    fileName,
    /** Its key in the archive store; null for an import's. */
    objectKey,
  };
}

function errorOf({ errorCode, errorMessage, errorPath }: OperationRow): UserError | null {
  if (errorCode === null || errorMessage === null) return null;
  return { code: errorCode as UserErrorCode, message: errorMessage, path: errorPath };
}
