import { type Kysely, sql } from 'kysely';
import { isUuid } from '../base/uuid.ts';
import { DatabaseUnusableError } from '../database/errors.ts';
import type { Database, OperationStatus } from '../database/types.ts';
import type { RestoreReport } from '../restore/report.ts';
import type { ArchiveRecord, OperationRecord } from './operation-records.ts';
import { writeReport } from './stored-report.ts';
import type { UserError, UserErrorCode } from './user-error.ts';

/** How long an operation is believed to be at work after its process was last heard of. */
const LEASE_SECONDS = 60;

/** Until when an operation is believed at work that was heard of just now. */
export const lease = sql<string>`clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})`;
/** The database's clock, which does not stand still within a transaction. */
export const now = sql<string>`clock_timestamp()`;
/** Whether the process of an `operation` has not been heard of for the length of a lease. */
export const hasLapsed = sql<boolean>`coalesce(operation.lease_until < ${now}, false)`;

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
export async function giveUpLapsed(
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

/** An export on record. */
export interface ExportRecord {
  readonly id: string;
  /** Whether the archive under a key is the export's, or may yet turn out to be. */
  readonly mayKeep: (objectKey: string) => boolean;
}

/** Those of the operations that are on record here. */
export async function findExports(db: Kysely<Database>, ids: readonly string[]): Promise<ExportRecord[]> {
  const rows = await db
    .selectFrom('state_archive.operation')
    // One parameter: a statement takes 65 535 of them.
    .where(sql<boolean>`id = any(${ids.filter(isUuid)}::uuid[])`)
    .select(['id', 'status', 'archive_object_key as archiveKey'])
    .execute();
  return rows.map(({ id, status, archiveKey }) => ({
    id,
    mayKeep: (objectKey) =>
      status === 'SUCCEEDED' ? objectKey === archiveKey : status === 'PENDING' || status === 'RUNNING',
  }));
}
