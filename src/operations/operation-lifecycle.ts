import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { ObservedOutcome } from '../base/telemetry.ts';
import { isUuid } from '../base/uuid.ts';
import { inTransaction, type KilolockDatabase } from '../database/connection.ts';
import { DatabaseUnusableError } from '../database/errors.ts';
import type { Database } from '../database/types.ts';
import { type RestoreReport, writeReport } from '../restore/report.ts';
import { operationIdOf } from './archive-keys.ts';
import type { QueuedOperation } from './operation-queue.ts';
import type { ArchiveRecord, OperationRecord, OperationStatus } from './operation-records.ts';
import { environmentOf, type OperationRequest, readRequest } from './operation-request.ts';
import { interruption, type UserError, type UserErrorCode } from './user-error.ts';

/**
 * @file Every statement that changes an operation's status. The row is the truth of what became of an operation, whatever the
 * queue says: its `attempt` fences off whoever worked on it before, and its success is written in the transaction that holds
 * its effect. Nothing that looks after records waits for a lock: a row that is locked is being settled.
 */

/** After how much silence of its worker an operation is another's to take up. */
const SILENCE_SECONDS = 15;
/** An operation that was interrupted is taken up again five times. */
export const MAX_ATTEMPTS = 6;
/** For how long an operation may be recorded and not queued before somebody else queues it. */
const UNQUEUED_SECONDS = 5;
/** After how long an operation that waits is queued again, should the queue have lost it. */
const REQUEUE_SECONDS = 300;

/** The database's clock, which does not stand still within a transaction. */
export const now = sql<string>`clock_timestamp()`;
/** The same moment wherever a statement says it. */
const finishedAt = sql<string>`statement_timestamp()`;
/** Operations that are waiting or worked on; those that an earlier release began, and gave up, are not. */
export const isAtWork = sql<boolean>`(operation.status in ('PENDING', 'RUNNING')
  and (operation.lease_until is null or operation.lease_until >= ${now}))`;
/** Whether the worker of an operation, in its `heartbeat_at` or as an earlier release has it, has fallen silent. */
const isSilent = sql<boolean>`coalesce(
  operation.heartbeat_at + make_interval(secs => ${SILENCE_SECONDS}), operation.lease_until,
  operation.created_at + make_interval(secs => ${SILENCE_SECONDS})) < ${now}`;

/** The first keys of the advisory locks of operations. */
const LOCKS = { admission: 0x6b6c7361, claim: 0x6b6c7362, archives: 0x6b6c7363, hold: 0x6b6c7364 };

/**
 * Has transactions that lock the same pass one after another, until they end, over all replicas. Two keys whose hashes are
 * equal wait for each other, and nothing worse.
 */
export async function lockUntilEnd(
  db: Kysely<Database>,
  what: keyof typeof LOCKS,
  key: string,
): Promise<void> {
  await sql`select pg_advisory_xact_lock(${LOCKS[what]}::int, hashtext(${key}))`.execute(db);
}

/** One begun try at an operation: whoever holds it may record its end, unless another try has begun since. */
export interface Attempt {
  readonly id: string;
  /** 1 for the first. */
  readonly attempt: number;
}

/** An operation that was taken up, as its row tells of it. */
export interface ClaimedOperation extends Attempt {
  readonly stateId: string | null;
  readonly requestId: string;
  readonly supportReason: string | null;
  /** The trace of the request that asked for it; null when none is kept. */
  readonly traceparent: string | null;
  /** For how long it has been on record, in seconds. */
  readonly ageSeconds: number;
  readonly request: OperationRequest;
}

/** What came of the wish to work on an operation. */
export type Claim =
  | { readonly kind: 'claimed'; readonly operation: ClaimedOperation }
  /** Its turn has not come, or a later release knows how to do it. */
  | { readonly kind: 'not yet' }
  /** There is nothing to do any more. The request is null where there is none that could be read. */
  | { readonly kind: 'over'; readonly request: OperationRequest | null };

/**
 * Takes an operation up, when its turn has come: it waits, or its worker has fallen silent; no other operation on a state of its
 * name is running; and fewer of its environment are running than may. Claims of one tenant pass one after another, over
 * all replicas.
 *
 * @param options.worker what people will know the process by.
 * @param options.maxRunning how many operations of one environment may be running at a time.
 */
export async function claimOperation(
  database: KilolockDatabase,
  id: string,
  options: { readonly worker: string; readonly maxRunning: number },
): Promise<Claim> {
  return inTransaction(database, 'record', async ({ db }) => {
    const found = await db
      .selectFrom('state_archive.operation')
      .where('id', '=', id)
      .select(['status', 'tenant_id as tenantId', 'request'])
      .executeTakeFirst();
    // Where there is no request nobody else could do it.
    if (found === undefined || found.request === null) return { kind: 'over', request: null };
    const request = readRequest(found.request);
    if (isOver(found.status)) return { kind: 'over', request };
    if (request === null) return { kind: 'not yet' };
    await lockUntilEnd(db, 'claim', found.tenantId);
    const { rows } = await sql<Omit<ClaimedOperation, 'request'>>`
      update state_archive.operation operation
      set status = 'RUNNING', attempt = attempt + 1, worker = ${options.worker}, heartbeat_at = ${now},
        started_at = coalesce(started_at, ${now}),
        versions_done = 0, versions_total = null, bytes_done = 0, bytes_total = null
      where id = (
          select id from state_archive.operation operation
          where id = ${id} and request is not null and attempt < ${MAX_ATTEMPTS}
            and (status = 'PENDING' or status = 'RUNNING' and ${isSilent})
          for no key update skip locked)
        -- One that was running has its place already.
        and (status = 'RUNNING' or not exists (
            select from state_archive.operation other
            where other.tenant_id = operation.tenant_id and other.state_name = operation.state_name
              and other.status = 'RUNNING')
          and ${options.maxRunning} > (
            select count(*) from state_archive.operation other
            where other.tenant_id = operation.tenant_id and other.workspace_id = operation.workspace_id
              and other.environment_id = operation.environment_id and other.status = 'RUNNING'))
      returning id, attempt, state_id as "stateId", request_id as "requestId", support_reason as "supportReason",
        traceparent, extract(epoch from ${now} - created_at)::float8 as "ageSeconds"
    `.execute(db);
    const [claimed] = rows;
    if (claimed !== undefined) return { kind: 'claimed', operation: { ...claimed, request } };
    const status = await readStatus(db, id);
    return status === null || isOver(status) ? { kind: 'over', request } : { kind: 'not yet' };
  });
}

function isOver(status: OperationStatus): boolean {
  return status !== 'PENDING' && status !== 'RUNNING';
}

/** Begins an operation that is a part of another one, by its worker. It is never another's to take up. */
export async function beginPart(db: Kysely<Database>, id: string, worker: string): Promise<Attempt> {
  await db
    .updateTable('state_archive.operation')
    .set({ status: 'RUNNING', attempt: 1, worker, started_at: now, heartbeat_at: now })
    .where('id', '=', id)
    .where('status', '=', 'PENDING')
    .execute();
  return { id, attempt: 1 };
}

/**
 * Says of attempts that they are being worked on, and how far they are.
 *
 * @returns those whose operations are no longer theirs to work on: cancelled, given up, or taken up by other attempts. What is
 *   locked at this moment is being settled, and is not among them.
 */
export async function beat<Beating extends Attempt & Pick<OperationRecord, 'progress'>>(
  db: Kysely<Database>,
  heartbeats: readonly Beating[],
): Promise<Beating[]> {
  const ids = heartbeats.map(({ id }) => id);
  const { rows } = await sql<Attempt>`
    with beating as (
      select * from unnest(
        ${ids}::uuid[],
        ${heartbeats.map(({ attempt }) => attempt)}::int[],
        ${heartbeats.map(({ progress }) => String(progress.versionsDone))}::bigint[],
        ${heartbeats.map(({ progress }) => progress.versionsTotal?.toString() ?? null)}::bigint[],
        ${heartbeats.map(({ progress }) => String(progress.bytesDone))}::bigint[],
        ${heartbeats.map(({ progress }) => progress.bytesTotal?.toString() ?? null)}::bigint[]
      ) as beating (id, attempt, versions_done, versions_total, bytes_done, bytes_total)
    ), noted as (
      update state_archive.operation operation
      set heartbeat_at = ${now}, versions_done = beating.versions_done, versions_total = beating.versions_total,
        bytes_done = beating.bytes_done, bytes_total = beating.bytes_total
      from beating
      where operation.id = beating.id and operation.attempt = beating.attempt and operation.status = 'RUNNING'
        and operation.id in (
          select id from state_archive.operation where id = any(${ids}::uuid[]) for no key update skip locked)
    )
    select beating.id, beating.attempt from beating
    where not exists (
      select from state_archive.operation operation
      where operation.id = beating.id and operation.attempt = beating.attempt and operation.status = 'RUNNING')
  `.execute(db);
  return heartbeats.filter((each) =>
    rows.some((lost) => lost.id === each.id && lost.attempt === each.attempt),
  );
}

/** What an archive is kept by beyond the usual time. */
export interface Retention {
  /** Until when at the least; null: for the usual time. */
  readonly retainUntil: string | null;
  /** Whether a legal hold keeps it, for as long as nobody lifts that. */
  readonly legalHold: boolean;
}

/** When the time of an archive is past. What is held is kept without end. */
function expiryOf(
  retentionSeconds: number,
  legalHold: boolean,
  finishedAt: RawBuilder<string>,
  retainUntil: RawBuilder<string>,
): RawBuilder<string> {
  return legalHold
    ? sql`'infinity'::timestamptz`
    : sql`greatest(${finishedAt} + make_interval(secs => ${retentionSeconds}), ${retainUntil})`;
}

/** What came of an operation that succeeded. */
export interface Success {
  readonly stateId: string | null;
  readonly archive: ArchiveRecord;
  readonly report: RestoreReport | null;
  readonly versions: number;
  readonly rawBytes: bigint;
  /** How long the archive is kept, the usual time and beyond it; null for an archive that is not kept. */
  readonly kept: (Retention & { readonly retentionSeconds: number }) | null;
  /** The export that was taken of the history an import replaced. */
  readonly replacedOperationId: string | null;
}

/** The operation is no longer this attempt's: it was cancelled, given up, or taken up by another worker. */
export class AttemptLostError extends Error {
  override readonly name = 'AttemptLostError';

  constructor({ id, attempt }: Attempt) {
    super(`Attempt ${attempt} at operation ${id} is over: its record is not its own any more.`);
  }
}

/**
 * Records that an operation succeeded. To be called in the transaction that holds its effect, so that either both are
 * there or neither.
 *
 * @throws AttemptLostError when the attempt is over.
 */
export async function markSucceeded(db: Kysely<Database>, attempt: Attempt, success: Success): Promise<void> {
  const { archive, report, kept } = success;
  const result = await db
    .updateTable('state_archive.operation')
    .set({
      status: 'SUCCEEDED',
      finished_at: finishedAt,
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
        kept &&
        expiryOf(kept.retentionSeconds, kept.legalHold, finishedAt, sql`${kept.retainUntil}::timestamptz`),
      retain_until: kept?.retainUntil ?? null,
    })
    .where('id', '=', attempt.id)
    .where('status', '=', 'RUNNING')
    .where('attempt', '=', attempt.attempt)
    .executeTakeFirst();
  if (result.numUpdatedRows !== 1n) throw new AttemptLostError(attempt);
}

/** What an attempt that did not succeed ends with. */
export interface Outcome {
  /** `failed`: for good; `interrupted`: the operation is another's to take up, until that has happened too often. */
  readonly kind: 'failed' | 'interrupted';
  readonly error: UserError;
}

/**
 * What became of an attempt, by the record: `undecided` while a transaction holds it whose COMMIT was never answered; `lost`
 * when it belongs to another attempt by now, or will.
 */
export type AttemptEnd = ObservedOutcome;

/** Records how an attempt ended, unless the record knows better: a COMMIT that was never answered may have succeeded. */
export async function settleAttempt(
  db: Kysely<Database>,
  { id, attempt }: Attempt,
  outcome: Outcome,
): Promise<AttemptEnd> {
  const isOwn = sql<boolean>`operation.status = 'RUNNING' and operation.attempt = ${attempt}`;
  if (outcome.kind === 'interrupted') {
    const { rows } = await sql`
      update state_archive.operation set status = 'PENDING', heartbeat_at = ${now}
      where id = (
        select id from state_archive.operation operation
        where id = ${id} and ${isOwn} and request is not null and attempt < ${MAX_ATTEMPTS}
        for no key update skip locked)
      returning id`.execute(db);
    if (rows.length > 0) return 'handed back';
  }
  if (await endOperation(db, id, { error: outcome.error }, isOwn)) return 'failed';
  const row = await db
    .selectFrom('state_archive.operation')
    .where('id', '=', id)
    .select(['status', 'attempt'])
    .executeTakeFirst();
  if (row === undefined || row.attempt !== attempt) return 'lost';
  return END_OF[row.status];
}

/** What became of an attempt that has not been followed by another, by the status of its operation. */
const END_OF = {
  SUCCEEDED: 'succeeded',
  EXPIRED: 'succeeded',
  RUNNING: 'undecided',
  PENDING: 'lost',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
} as const satisfies Record<OperationStatus, AttemptEnd>;

/** Failures after which the same request may succeed: the idempotency key they came with is free again. */
const WORTH_ASKING_AGAIN: readonly UserErrorCode[] = ['INTERNAL', 'OPERATION_INTERRUPTED', 'STATE_LOCKED'];

/** Whose wish it is that an operation ends. */
interface Canceller {
  readonly actor: string;
  readonly subject: string;
}

/** Why an operation ends otherwise than well: it failed, or somebody cancelled it. */
type UnhappyEnd = { readonly error: UserError } | { readonly cancelledBy: Canceller };

/**
 * Ends an operation otherwise than well: in its own row, and as an event among Kilolock's, `state_export` or `state_import`
 * with the outcome `failed` or `cancelled`. A failed import has no state to be an event of; nor has an export of a state
 * whose row somebody holds locked, which is not waited for. Where the database lets nobody write events, the row alone says
 * it: an operation that nobody can end would be at work for ever.
 *
 * @param where whether this operation is to end so.
 * @returns false when there was nothing to record: `where` did not hold, or a transaction is about to settle the record.
 */
async function endOperation(
  db: Kysely<Database>,
  id: string,
  end: UnhappyEnd,
  where: RawBuilder<boolean>,
): Promise<boolean> {
  const error = 'error' in end ? end.error : null;
  const canceller = 'error' in end ? null : end.cancelledBy;
  const isKeyFree = error !== null && WORTH_ASKING_AGAIN.includes(error.code);
  const ended = sql`
    update state_archive.operation
    set status = ${canceller === null ? 'FAILED' : 'CANCELLED'}, finished_at = ${now}, lease_until = null,
      error_code = ${error?.code ?? null}, error_message = ${error?.message ?? null},
      error_path = ${error?.path == null ? null : [...error.path]}::text[],
      idempotency_key = case when ${isKeyFree}::boolean then null else idempotency_key end
    where id = (
      select id from state_archive.operation operation
      where id = ${id} and status in ('PENDING', 'RUNNING') and ${where}
      for no key update skip locked)
    returning *`;
  try {
    const { rows } = await sql`
      with ended as (${ended}), event as (
        insert into public.events (tenant_id, kind, state_id, actor, payload)
        select tenant_id, case kind when 'EXPORT' then 'state_export' else 'state_import' end,
          (select states.id from public.states where states.id = ended.state_id for key share skip locked),
          coalesce(${canceller?.actor ?? null}, actor),
          jsonb_strip_nulls(jsonb_build_object(
            'outcome', lower(status), 'error', error_code, 'archive_id', id, 'archive_digest', encode(archive_sha256, 'hex'),
            'label', state_label, 'principal', subject, 'request_id', request_id, 'reason', support_reason,
            'cancelled_by', ${canceller?.subject ?? null}::text))
        from ended
      )
      select id from ended`.execute(db);
    return rows.length > 0;
  } catch (problem) {
    if (!(problem instanceof DatabaseUnusableError)) throw problem;
    const { rows } = await ended.execute(db);
    return rows.length > 0;
  }
}

/**
 * Ends an operation that waits or is worked on, at once and for good: whoever works on it finds out with the next heartbeat.
 * Parts of others, and what an earlier release works on, end with those alone.
 *
 * @returns false when it has ended already, is none that can be cancelled, or is being settled at this moment.
 */
export function markCancelled(db: Kysely<Database>, id: string, cancelledBy: Canceller): Promise<boolean> {
  return endOperation(db, id, { cancelledBy }, sql<boolean>`operation.request is not null`);
}

const INTERRUPTED = interruption(
  'The process that worked on the operation was not heard of any more, and nobody can take it up again. Nothing was written; ask again.',
);

/**
 * Gives up the operations whose worker has fallen silent and that nobody takes up again: those that were taken up often
 * enough, parts of others, and those that an earlier release began.
 */
export async function giveUpAbandoned(db: Kysely<Database>): Promise<void> {
  const isGivenUp = sql<boolean>`(operation.request is null or operation.attempt >= ${MAX_ATTEMPTS}) and ${isSilent}`;
  const abandoned = await db
    .selectFrom('state_archive.operation as operation')
    .where('status', 'in', ['PENDING', 'RUNNING'])
    .where(isGivenUp)
    .select('id')
    .execute();
  for (const { id } of abandoned) await endOperation(db, id, { error: INTERRUPTED }, isGivenUp);
}

/** At most so many operations are queued again at a time. */
const REQUEUED_AT_A_TIME = 500;

/**
 * The operations that should be in the queue and may not be: recorded and never queued, waiting for very long, or left by
 * a worker that has fallen silent. Queuing one twice does no harm.
 */
export async function findUnqueued(db: Kysely<Database>): Promise<QueuedOperation[]> {
  const { rows } = await sql<{ id: string; request: string }>`
    select id, request from state_archive.operation operation
    where request is not null and attempt < ${MAX_ATTEMPTS} and (
      status = 'RUNNING' and ${isSilent}
      or status = 'PENDING' and coalesce(
        heartbeat_at + make_interval(secs => ${REQUEUE_SECONDS}),
        created_at + make_interval(secs => ${UNQUEUED_SECONDS})) < ${now})
    order by created_at limit ${REQUEUED_AT_A_TIME}
  `.execute(db);
  return rows.flatMap(({ id, request }) => {
    const environment = environmentOf(request);
    return environment === undefined ? [] : { id, environment };
  });
}

/** Notes that operations are in the queue. */
export async function markQueued(db: Kysely<Database>, ids: readonly string[]): Promise<void> {
  await sql`
    update state_archive.operation set heartbeat_at = ${now}
    where id in (
      select id from state_archive.operation where id = any(${[...ids]}::uuid[]) and status = 'PENDING'
      for no key update skip locked)
  `.execute(db);
}

/** The status of an operation; null when there is none. */
export async function readStatus(db: Kysely<Database>, id: string): Promise<OperationStatus | null> {
  const row = await db
    .selectFrom('state_archive.operation')
    .where('id', '=', id)
    .select('status')
    .executeTakeFirst();
  return row?.status ?? null;
}

/**
 * Has the archive of an export be under a legal hold or not, unless its time is past.
 *
 * @returns false when there is no archive any more.
 */
export async function markHeld(
  db: Kysely<Database>,
  id: string,
  legalHold: boolean,
  retentionSeconds: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('state_archive.operation')
    .set({ expires_at: expiryOf(retentionSeconds, legalHold, sql`finished_at`, sql`retain_until`) })
    .where('id', '=', id)
    .where('kind', '=', 'EXPORT')
    .where('status', '=', 'SUCCEEDED')
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/**
 * Marks exports whose archive is past its time, a bounded number. The export of a history that was to be replaced is past it
 * when the import it was a part of is over, and did not replace anything by it: that one failed, or was begun anew.
 *
 * @returns the keys of their archives.
 */
export async function expireArchives(db: Kysely<Database>, limit: number): Promise<string[]> {
  const { rows } = await sql<{ key: string | null }>`
    update state_archive.operation set status = 'EXPIRED'
    where id = any(
      array(
        select id from state_archive.operation
        -- No index answers what may change from row to row, as clock_timestamp does.
        where kind = 'EXPORT' and status = 'SUCCEEDED' and expires_at <= statement_timestamp()
        limit ${limit} for no key update skip locked)
      || array(
        select id from state_archive.operation part
        where part_of is not null and kind = 'EXPORT' and status = 'SUCCEEDED' and expires_at < 'infinity'
          and (
            select status not in ('PENDING', 'RUNNING') and replaced_operation_id is distinct from part.id
            from state_archive.operation whole where whole.id = part.part_of)
        limit ${limit} for no key update skip locked))
    returning archive_object_key as key
  `.execute(db);
  return rows.flatMap(({ key }) => key ?? []);
}

/**
 * Those of the keys of archives whose operations are on record here, and of each whether the archive is its operation's, or may
 * yet turn out to be.
 */
export async function findExports(
  db: Kysely<Database>,
  objectKeys: readonly string[],
): Promise<Map<string, boolean>> {
  const keys = objectKeys.filter((key) => isUuid(operationIdOf(key)));
  // Two parameters: a statement takes 65 535 of them.
  const { rows } = await sql<{ key: string; mayKeep: boolean }>`
    select key, case status when 'SUCCEEDED' then archive_object_key = key
      else status in ('PENDING', 'RUNNING') end as "mayKeep"
    from unnest(${keys}::text[], ${keys.map(operationIdOf)}::uuid[]) asked (key, id)
    join state_archive.operation using (id)
  `.execute(db);
  return new Map(rows.map(({ key, mayKeep }) => [key, mayKeep]));
}
