import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';
import { mayAddressState } from '../auth/principal.ts';
import { present } from '../base/invariant.ts';
import { isStorableText } from '../base/text.ts';
import { isUuid } from '../base/uuid.ts';
import { microsecondTime } from '../database/connection.ts';
import { DatabaseUnusableError } from '../database/errors.ts';
import type { Database, OperationKind, OperationStatus } from '../database/types.ts';
import { labelOf, labelSql, type StateNamespace } from '../history/namespace.ts';
import { type Caller, may, mayAddressSql } from '../history/states.ts';
import type { RestoreReport } from '../restore/report.ts';
import type { Idempotency } from './idempotency.ts';
import { readReport, writeReport } from './stored-report.ts';
import type { UserError, UserErrorCode } from './user-error.ts';

/** One row of `state_archive.operation`. */
export interface OperationRecord {
  readonly id: string;
  readonly kind: OperationKind;
  readonly status: OperationStatus;
  /** The exported state, or the restored one; null while there is none. */
  readonly stateId: string | null;
  /** The label exported or restored under, as whoever reads the record knows the state. */
  readonly label: string;
  readonly actor: string;
  readonly subject: string;
  readonly progress: {
    readonly versionsDone: bigint;
    readonly versionsTotal: bigint | null;
    readonly bytesDone: bigint;
    readonly bytesTotal: bigint | null;
  };
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly expiresAt: string | null;
  readonly archive: ArchiveRecord | null;
  /** Null also where a later release recorded what this one cannot tell. */
  readonly report: RestoreReport | null;
  /** The export that was taken of the history an import replaced. */
  readonly replacedOperationId: string | null;
  readonly error: UserError | null;
}

/** The archive an export made, or an import was given. */
export interface ArchiveRecord {
  readonly sha256: string;
  readonly sizeBytes: bigint;
  readonly historyDigest: string;
  readonly fileName: string;
  /** Its key in the archive store; null for an import's. */
  readonly objectKey: string | null;
}

/** What an operation is recorded with before it begins. */
export interface NewOperation {
  readonly id: string;
  readonly kind: OperationKind;
  readonly label: string;
  /** The stored name of the state. */
  readonly stateName: string;
  readonly stateId: string | null;
  /** The digest of the file an import was given; null for an export. */
  readonly archiveSha256: string | null;
  readonly requestId: string;
  readonly idempotency: Idempotency | null;
}

/** How long an operation is believed to be at work after its process was last heard of. */
const LEASE_SECONDS = 60;

const lease = sql<string>`clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})`;
const now = sql<string>`clock_timestamp()`;
const hasLapsed = sql<boolean>`coalesce(operation.lease_until < ${now}, false)`;

/** Records an operation as PENDING; false when the caller used the idempotency key before. */
export async function insertOperation(
  db: Kysely<Database>,
  { principal, namespace, supportReason }: Caller,
  operation: NewOperation,
): Promise<boolean> {
  const inserted = await db
    .insertInto('state_archive.operation')
    .values({
      id: operation.id,
      kind: operation.kind,
      status: 'PENDING',
      tenant_id: namespace.tenantId,
      workspace_id: namespace.workspace,
      environment_id: namespace.environment,
      state_name: operation.stateName,
      state_label: operation.label,
      state_id: operation.stateId,
      actor: principal.actor,
      subject: principal.subject,
      request_id: operation.requestId,
      support_reason: supportReason,
      archive_sha256: operation.archiveSha256 === null ? null : Buffer.from(operation.archiveSha256, 'hex'),
      idempotency_key: operation.idempotency?.key ?? null,
      request_fingerprint: operation.idempotency?.fingerprint ?? null,
      lease_until: lease,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}

/** The first key of the advisory locks under which admissions are counted; the second tells callers apart. */
const ADMISSION_LOCK = 0x6b6c7361;

/**
 * Lets the admissions of one caller in one environment pass one after another, until the transaction ends. Two callers
 * whose hashes are equal wait for each other, and nothing worse.
 */
export async function lockAdmission(
  db: Kysely<Database>,
  { principal, namespace: { workspace, environment } }: Caller,
): Promise<void> {
  const key = JSON.stringify([workspace, environment, principal.subject]);
  await sql`select pg_advisory_xact_lock(${ADMISSION_LOCK}::int, hashtext(${key}))`.execute(db);
}

/** How many operations of a caller are pending or running in an environment; those that were given up are not. */
export async function countAtWork(db: Kysely<Database>, { principal, namespace }: Caller): Promise<number> {
  const { count } = await db
    .selectFrom('state_archive.operation')
    .where('status', 'in', ['PENDING', 'RUNNING'])
    .where('lease_until', '>=', now)
    .where('tenant_id', '=', namespace.tenantId)
    .where('workspace_id', '=', namespace.workspace)
    .where('environment_id', '=', namespace.environment)
    .where('subject', '=', principal.subject)
    .select((select) => select.fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** How many archives are kept that a caller exported in an environment. */
export async function countKept(db: Kysely<Database>, { principal, namespace }: Caller): Promise<number> {
  const { count } = await db
    .selectFrom('state_archive.operation')
    .where('kind', '=', 'EXPORT')
    .where('status', '=', 'SUCCEEDED')
    .where('expires_at', '>', now)
    .where('tenant_id', '=', namespace.tenantId)
    .where('workspace_id', '=', namespace.workspace)
    .where('environment_id', '=', namespace.environment)
    .where('subject', '=', principal.subject)
    .select((select) => select.fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * The operation a caller's idempotency key stands for, and the fingerprint of the request it was first used with. One that
 * is given up, here at the latest, stands for nothing any more.
 */
export async function findByIdempotencyKey(
  db: Kysely<Database>,
  { principal, namespace, database }: Caller,
  kind: OperationKind,
  key: string,
): Promise<{ id: string; fingerprint: Buffer } | null> {
  const query = db
    .selectFrom('state_archive.operation as operation')
    .where('tenant_id', '=', namespace.tenantId)
    .where('subject', '=', principal.subject)
    .where('kind', '=', kind)
    .where('idempotency_key', '=', key)
    .select(['id', 'status', 'request_fingerprint as fingerprint', hasLapsed.as('hasLapsed')]);
  const row = await query.executeTakeFirst();
  const gaveUp = row && (await giveUpLapsed(database.for('record'), [row]));
  const stands = gaveUp ? await query.executeTakeFirst() : row;
  return stands === undefined ? null : { id: stands.id, fingerprint: stands.fingerprint ?? Buffer.alloc(0) };
}

/** Notes that work on an operation has begun. */
export async function markRunning(db: Kysely<Database>, id: string): Promise<void> {
  await db
    .updateTable('state_archive.operation')
    .set({ status: 'RUNNING', started_at: now, lease_until: lease })
    .where('id', '=', id)
    .where('status', '=', 'PENDING')
    .execute();
}

/** Notes how far operations are, and that their process is alive. What was given up stays so. Waits for no lock. */
export async function renewLeases(
  db: Kysely<Database>,
  progress: ReadonlyMap<string, OperationRecord['progress']>,
): Promise<void> {
  if (progress.size === 0) return;
  const rows = [...progress];
  await sql`
    update state_archive.operation operation
    set lease_until = ${lease}, versions_done = now.versions_done, versions_total = now.versions_total,
      bytes_done = now.bytes_done, bytes_total = now.bytes_total
    from unnest(
      ${rows.map(([id]) => id)}::uuid[],
      ${rows.map(([, now]) => String(now.versionsDone))}::bigint[],
      ${rows.map(([, now]) => now.versionsTotal?.toString() ?? null)}::bigint[],
      ${rows.map(([, now]) => String(now.bytesDone))}::bigint[],
      ${rows.map(([, now]) => now.bytesTotal?.toString() ?? null)}::bigint[]
    ) as now (id, versions_done, versions_total, bytes_done, bytes_total)
    where operation.status in ('PENDING', 'RUNNING') and operation.lease_until >= ${now}
      -- A record that is locked is being settled, and nobody else touches it.
      and operation.id = now.id and operation.id in (
        select id from state_archive.operation where id = any(${rows.map(([id]) => id)}::uuid[])
        for no key update skip locked)
  `.execute(db);
}

/** What came of an operation that succeeded. */
export interface Success {
  readonly stateId: string | null;
  readonly archive: ArchiveRecord;
  readonly report: RestoreReport | null;
  readonly versions: number;
  readonly rawBytes: bigint;
  /** How long the archive is kept; null for an archive that is not kept. */
  readonly retentionSeconds: number | null;
  /** The export that was taken of the history an import replaced. */
  readonly replacedOperationId: string | null;
}

/** The operation is no longer at work for this process: its lease ran out, and it was given up. */
export class OperationLostError extends Error {
  override readonly name = 'OperationLostError';
}

/**
 * Records that an operation succeeded. To be called in the transaction that holds its effect, so that either both are
 * there or neither.
 *
 * @throws OperationLostError when it was given up meanwhile.
 */
export async function markSucceeded(db: Kysely<Database>, id: string, success: Success): Promise<void> {
  const { archive, report } = success;
  const result = await db
    .updateTable('state_archive.operation')
    .set({
      status: 'SUCCEEDED',
      finished_at: now,
      lease_until: null,
      state_id: success.stateId,
      versions_done: String(success.versions),
      versions_total: String(success.versions),
      bytes_done: success.rawBytes,
      bytes_total: success.rawBytes,
      archive_sha256: Buffer.from(archive.sha256, 'hex'),
      archive_size_bytes: archive.sizeBytes,
      archive_history_digest: Buffer.from(archive.historyDigest, 'hex'),
      archive_file_name: archive.fileName,
      archive_object_key: archive.objectKey,
      report: report === null ? null : writeReport(report),
      replaced_operation_id: success.replacedOperationId,
      expires_at:
        success.retentionSeconds === null
          ? null
          : sql<string>`clock_timestamp() + make_interval(secs => ${success.retentionSeconds})`,
    })
    .where('id', '=', id)
    .where('status', '=', 'RUNNING')
    .where('lease_until', '>=', now)
    .executeTakeFirst();
  if (result.numUpdatedRows !== 1n) {
    throw new OperationLostError(`Operation ${id} was given up while it was at work.`);
  }
}

/** Failures after which the same request may succeed: the idempotency key they came with is free again. */
const WORTH_ASKING_AGAIN: readonly UserErrorCode[] = ['INTERNAL', 'OPERATION_INTERRUPTED', 'STATE_LOCKED'];

/**
 * Records that an operation failed, and why: in its own row, and as an event among Kilolock's, `state_export` or
 * `state_import` with the outcome `failed`. A failed import has no state to be an event of; nor has an export of a state
 * whose row somebody holds locked, which is not waited for. Where the database lets nobody write events, the row alone says
 * it: an operation that nobody can end would be at work for ever.
 *
 * @param options.onlyLapsed leaves an operation alone whose process is heard of.
 * @returns false when there was nothing to record: the operation has ended already, or its record is held by a transaction
 *   that is about to settle it.
 */
export async function markFailed(
  db: Kysely<Database>,
  id: string,
  error: UserError,
  options: { readonly onlyLapsed: boolean } = { onlyLapsed: false },
): Promise<boolean> {
  const isKeyFree = WORTH_ASKING_AGAIN.includes(error.code);
  const failed = sql`
    update state_archive.operation
    set status = 'FAILED', finished_at = ${now}, lease_until = null,
      error_code = ${error.code}, error_message = ${error.message},
      error_path = ${error.path === null ? null : [...error.path]}::text[],
      idempotency_key = case when ${isKeyFree}::boolean then null else idempotency_key end
    where id = (
      select id from state_archive.operation
      where id = ${id} and status in ('PENDING', 'RUNNING')
        and (not ${options.onlyLapsed}::boolean or lease_until < ${now})
      for no key update skip locked)
    returning *`;
  try {
    const { rows } = await sql`
      with failed as (${failed}), event as (
        insert into public.events (tenant_id, kind, state_id, actor, payload)
        select tenant_id, case kind when 'EXPORT' then 'state_export' else 'state_import' end,
          (select states.id from public.states where states.id = failed.state_id for key share skip locked), actor,
          jsonb_strip_nulls(jsonb_build_object(
            'outcome', 'failed', 'error', error_code, 'archive_id', id, 'archive_digest', encode(archive_sha256, 'hex'),
            'label', state_label, 'principal', subject, 'request_id', request_id, 'reason', support_reason))
        from failed
      )
      select id from failed`.execute(db);
    return rows.length > 0;
  } catch (problem) {
    if (!(problem instanceof DatabaseUnusableError)) throw problem;
    const { rows } = await failed.execute(db);
    return rows.length > 0;
  }
}

/** What became of an operation: settled for good, or not known yet. */
export type OperationEnd = 'succeeded' | 'failed' | 'undecided';

/**
 * Records a failure unless the record knows better: a COMMIT that was never answered may have succeeded. While a
 * transaction holds the record, nothing is decided.
 */
export async function settleFailure(
  db: Kysely<Database>,
  id: string,
  error: UserError,
): Promise<OperationEnd> {
  if (await markFailed(db, id, error)) return 'failed';
  const row = await db
    .selectFrom('state_archive.operation')
    .where('id', '=', id)
    .select('status')
    .executeTakeFirst();
  switch (row?.status) {
    case 'SUCCEEDED':
    case 'EXPIRED':
      return 'succeeded';
    case 'PENDING':
    case 'RUNNING':
      return 'undecided';
    default:
      return 'failed';
  }
}

const INTERRUPTED: UserError = {
  code: 'OPERATION_INTERRUPTED',
  message:
    'The process that ran the operation was not heard of for a minute, and the operation was given up. Nothing was written; ask again.',
  path: null,
};

/** Gives up the operations whose process has not been heard of for the length of a lease. */
export async function failInterrupted(db: Kysely<Database>): Promise<void> {
  const lapsed = await db
    .selectFrom('state_archive.operation as operation')
    .where('status', 'in', ['PENDING', 'RUNNING'])
    .where('lease_until', '<', now)
    .select(['id', 'status', hasLapsed.as('hasLapsed')])
    .execute();
  await giveUpLapsed(db, lapsed);
}

/** Gives up those whose process has not been heard of. Returns whether there was one. */
async function giveUpLapsed(
  db: Kysely<Database>,
  operations: readonly {
    readonly id: string;
    readonly status: OperationStatus;
    readonly hasLapsed: boolean;
  }[],
): Promise<boolean> {
  let gaveUp = false;
  for (const { id, status, hasLapsed } of operations) {
    if (!hasLapsed || (status !== 'PENDING' && status !== 'RUNNING')) continue;
    if (await markFailed(db, id, INTERRUPTED, { onlyLapsed: true })) gaveUp = true;
  }
  return gaveUp;
}

/** Marks the exports whose archive is past its time. */
export async function expireArchives(db: Kysely<Database>): Promise<void> {
  await db
    .updateTable('state_archive.operation')
    .set({ status: 'EXPIRED' })
    .where('kind', '=', 'EXPORT')
    .where('status', '=', 'SUCCEEDED')
    .where('expires_at', '<=', now)
    .execute();
}

/** Those of the operations that are on record here, and whether there is, or may yet be, an archive to keep for each. */
export async function findExports(
  db: Kysely<Database>,
  ids: readonly string[],
): Promise<{ readonly id: string; readonly isKept: boolean }[]> {
  const rows = await db
    .selectFrom('state_archive.operation')
    // One parameter: a statement takes 65 535 of them.
    .where(sql<boolean>`id = any(${ids.filter(isUuid)}::uuid[])`)
    .select(['id', 'status'])
    .execute();
  return rows.map(({ id, status }) => ({ id, isKept: ['PENDING', 'RUNNING', 'SUCCEEDED'].includes(status) }));
}

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

/** Which version of an archive became which version of the restored state. */
export interface VersionMapping {
  readonly serial: bigint;
  readonly sourceVersionId: string;
  readonly versionId: string;
}

/** The version mapping of an import by ascending serial, above the serial `after` (null: from the first). */
export async function listVersionMapping(
  db: Kysely<Database>,
  operationId: string,
  page: { readonly after: bigint | null; readonly limit: number },
): Promise<VersionMapping[]> {
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
    .select([
      'operation.id',
      'operation.kind',
      'operation.status',
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
      hasLapsed.as('hasLapsed'),
      sql<boolean>`coalesce(operation.expires_at <= ${now}, false)`.as('isExpired'),
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
  let rows = await query.execute();
  // What is told is what is on record: an operation that nobody works on any more is given up before.
  if (await giveUpLapsed(caller.database.for('record'), rows)) rows = await query.execute();
  const records = rows.map((row) => toRecord(row, namespace));
  return records.filter((record) => mayAddressState(principal, record.label));
}

function toRecord(row: OperationRow, namespace: StateNamespace): OperationRecord {
  return {
    id: row.id,
    kind: row.kind,
    status: statusOf(row),
    stateId: row.stateId,
    label: labelOf(namespace, row.stateName),
    actor: row.actor,
    subject: row.subject,
    progress: {
      versionsDone: BigInt(row.versionsDone),
      versionsTotal: row.versionsTotal === null ? null : BigInt(row.versionsTotal),
      bytesDone: BigInt(row.bytesDone),
      bytesTotal: row.bytesTotal === null ? null : BigInt(row.bytesTotal),
    },
    createdAt: row.createdAt,
    startedAt: row.startedAt,
    finishedAt: row.finishedAt,
    expiresAt: row.expiresAt,
    archive: archiveOf(row),
    report: row.report === null ? null : readReport(row.report),
    replacedOperationId: row.replacedOperationId,
    error: errorOf(row),
  };
}

/** The record may not have been swept yet. */
function statusOf({ status, isExpired }: OperationRow): OperationStatus {
  return status === 'SUCCEEDED' && isExpired ? 'EXPIRED' : status;
}

function archiveOf({
  sha256,
  sizeBytes,
  historyDigest,
  fileName,
  objectKey,
}: OperationRow): ArchiveRecord | null {
  if (sha256 === null || sizeBytes === null || historyDigest === null || fileName === null) return null;
  return { sha256, sizeBytes: BigInt(sizeBytes), historyDigest, fileName, objectKey };
}

function errorOf({ errorCode, errorMessage, errorPath }: OperationRow): UserError | null {
  if (errorCode === null || errorMessage === null) return null;
  return { code: errorCode as UserErrorCode, message: errorMessage, path: errorPath };
}
