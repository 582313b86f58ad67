import { type Kysely, type RawBuilder, sql } from 'kysely';
import { inTransaction } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import type { StateNamespace } from '../history/namespace.ts';
import type { Caller } from '../history/states.ts';
import type { Idempotency } from './idempotency.ts';
import { type Attempt, isAtWork, lockUntilEnd, now } from './operation-lifecycle.ts';
import type { OperationKind } from './operation-records.ts';
import { type OperationRequest, writeRequest } from './operation-request.ts';
import type { ArchiveServices } from './services.ts';
import { RequestRefusedError } from './user-error.ts';

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
  /** What any worker is to do; null for a part of another operation, which whoever does that one does. */
  readonly order: OperationRequest['order'] | null;
  /** The trace of the request that asks for it; absent when none is kept. */
  readonly traceparent?: string | undefined;
  /** The import that it is a part of; absent for all that are none. */
  readonly partOf?: string;
  /** What else is recorded in the transaction that records the operation; what it throws leaves neither. */
  readonly recordedWith?: (db: Kysely<Database>, id: string) => Promise<void>;
}

/** Records an operation as PENDING; false when the caller used the idempotency key before. */
export async function insertOperation(
  db: Kysely<Database>,
  caller: Caller,
  operation: NewOperation,
): Promise<boolean> {
  const { principal, namespace, supportReason } = caller;
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
      traceparent: operation.traceparent ?? null,
      part_of: operation.partOf ?? null,
      request: operation.order === null ? null : writeRequest(caller, operation.order),
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}

/** How much a caller may have at a time in an environment, and an environment of all callers together. */
export type OperationLimits = ArchiveQuota &
  Pick<ArchiveServices, 'maxOperationsPerPrincipal' | 'maxArchivesPerPrincipal'>;

/** How many archives of an environment are kept at a time, and how many bytes of them. */
export type ArchiveQuota = Pick<ArchiveServices, 'maxArchives' | 'maxArchiveBytesKept'>;

/**
 * Records an operation unless the caller has too many at work, or there is no room for its archive. The rows are counted
 * under locks, so that replicas and requests of the same moment count each other's.
 *
 * @returns false when the idempotency key is taken.
 * @throws RequestRefusedError TOO_MANY_OPERATIONS, QUOTA_EXCEEDED; CommitUndecidedError when nobody can tell whether it is on
 *   record.
 */
export async function recordWithinLimits(
  caller: Caller,
  operation: NewOperation,
  limits: OperationLimits,
): Promise<boolean> {
  const { maxOperationsPerPrincipal, maxArchivesPerPrincipal } = limits;
  return inTransaction(caller.database, 'record', async ({ db }) => {
    await lockAdmission(db, caller);
    if (!(await insertOperation(db, caller, operation))) return false;
    await operation.recordedWith?.(db, operation.id);
    // The new one is among them.
    if ((await countAtWork(db, caller)) > maxOperationsPerPrincipal) {
      throw new RequestRefusedError(
        'TOO_MANY_OPERATIONS',
        `You have ${maxOperationsPerPrincipal} exports and imports pending or running in this environment, as many as one may. Nothing was started; ask again when one of them has ended.`,
      );
    }
    if (operation.kind !== 'EXPORT') return true;
    if ((await countKept(db, caller)) >= maxArchivesPerPrincipal) {
      throw quotaExceeded(
        `${maxArchivesPerPrincipal} archives of yours are kept of this environment, as many as one may have. Nothing was started; ask again when one of them has expired.`,
      );
    }
    await refuseWithoutRoom(db, caller, limits);
    return true;
  });
}

/** Lets the admissions of one caller in one environment pass one after another, until the transaction ends. */
export function lockAdmission(
  db: Kysely<Database>,
  { principal, namespace: { workspace, environment } }: Caller,
): Promise<void> {
  return lockUntilEnd(db, 'admission', JSON.stringify([workspace, environment, principal.subject]));
}

/** How many operations of a caller are pending or running in an environment. */
export async function countAtWork(db: Kysely<Database>, { namespace, principal }: Caller): Promise<number> {
  const isOwn = sql<boolean>`operation.subject = ${principal.subject}`;
  return (await sumIn(db, namespace, sql`${isOwn} and ${isAtWork}`)).count;
}

const isKept = sql<boolean>`operation.status = 'SUCCEEDED' and operation.expires_at > ${now}`;

/** How many archives are kept that a caller exported in an environment. */
export async function countKept(db: Kysely<Database>, { namespace, principal }: Caller): Promise<number> {
  const isOwn = sql<boolean>`operation.subject = ${principal.subject}`;
  return (await sumIn(db, namespace, sql`${isOwn} and operation.kind = 'EXPORT' and ${isKept}`)).count;
}

/**
 * Refuses an export that is recorded in the same transaction, when the environment has no room for its archive: those that are
 * kept are counted, and those that are on their way.
 *
 * @throws RequestRefusedError QUOTA_EXCEEDED.
 */
export async function refuseWithoutRoom(
  db: Kysely<Database>,
  { namespace }: Caller,
  { maxArchives, maxArchiveBytesKept }: ArchiveQuota,
): Promise<void> {
  const { count, bytes } = await sumArchives(db, namespace, sql`true`);
  if (count > maxArchives) {
    throw quotaExceeded(
      `The environment keeps ${maxArchives} archives, or is about to, as many as it may (MAX_ARCHIVES). Nothing was started; ask again when one of them has expired.`,
    );
  }
  if (bytes >= BigInt(maxArchiveBytesKept)) throw bytesExceeded(maxArchiveBytesKept);
}

/**
 * Takes room for an archive that was written, or refuses it when it is larger than what is left of the environment's. The room
 * is on the operation's record for as long as that is running: nobody who counts has to wait until the archive itself is on record.
 *
 * @throws RequestRefusedError QUOTA_EXCEEDED.
 */
export async function takeRoom(
  { database, namespace }: Caller,
  { maxArchiveBytesKept }: ArchiveQuota,
  { id, attempt }: Attempt,
  sizeBytes: bigint,
): Promise<void> {
  await inTransaction(database, 'record', async ({ db }) => {
    const { bytes } = await sumArchives(db, namespace, sql`operation.id <> ${id}`);
    if (bytes + sizeBytes > BigInt(maxArchiveBytesKept)) throw bytesExceeded(maxArchiveBytesKept);
    await db
      .updateTable('state_archive.operation')
      .set({ archive_size_bytes: sizeBytes })
      .where('id', '=', id)
      .where('attempt', '=', attempt)
      .where('status', '=', 'RUNNING')
      .execute();
  });
}

function bytesExceeded(maxBytes: number): RequestRefusedError {
  return quotaExceeded(
    `The archives that the environment keeps may have ${maxBytes} bytes in all (MAX_ARCHIVE_BYTES_KEPT). Nothing was kept; ask again when one of them has expired.`,
  );
}

function quotaExceeded(message: string): RequestRefusedError {
  return new RequestRefusedError('QUOTA_EXCEEDED', message);
}

/** The archives of an environment that are kept, and those on their way, under a lock: those who count pass one after another. */
async function sumArchives(db: Kysely<Database>, namespace: StateNamespace, isCounted: RawBuilder<boolean>) {
  await lockUntilEnd(db, 'archives', JSON.stringify([namespace.workspace, namespace.environment]));
  return sumIn(
    db,
    namespace,
    sql`operation.kind = 'EXPORT' and (operation.status in ('PENDING', 'RUNNING') or ${isKept}) and ${isCounted}`,
  );
}

/** How many operations of an environment are counted, and how many bytes the archives of those have that are no longer pending. */
async function sumIn(
  db: Kysely<Database>,
  { tenantId, workspace, environment }: StateNamespace,
  isCounted: RawBuilder<boolean>,
): Promise<{ readonly count: number; readonly bytes: bigint }> {
  const { count, bytes } = await db
    .selectFrom('state_archive.operation as operation')
    .where('operation.tenant_id', '=', tenantId)
    .where('operation.workspace_id', '=', workspace)
    .where('operation.environment_id', '=', environment)
    .where(isCounted)
    .select((select) => [
      select.fn.countAll<string>().as('count'),
      sql<string>`coalesce(sum(archive_size_bytes) filter (where status <> 'PENDING'), 0)::text`.as('bytes'),
    ])
    .executeTakeFirstOrThrow();
  return { count: Number(count), bytes: BigInt(bytes) };
}
