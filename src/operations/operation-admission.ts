import { type Kysely, type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Database } from '../database/types.ts';
import type { Caller } from '../history/states.ts';
import type { Idempotency } from './idempotency.ts';
import { isAtWork, now } from './operation-lifecycle.ts';
import type { OperationKind } from './operation-records.ts';
import { type OperationRequest, writeRequest } from './operation-request.ts';

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
  /** The import that it is a part of; absent for all that are none. */
  readonly partOf?: string;
  /** What else is recorded in the transaction that records the operation; what it throws leaves neither. */
  readonly recordedWith?: (db: Kysely<Database>) => Promise<void>;
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
      part_of: operation.partOf ?? null,
      request: operation.order === null ? null : writeRequest(caller, operation.order),
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

/** How many operations of a caller are pending or running in an environment. */
export function countAtWork(db: Kysely<Database>, caller: Caller): Promise<number> {
  return countOwn(db, caller, isAtWork);
}

/** How many archives are kept that a caller exported in an environment. */
export function countKept(db: Kysely<Database>, caller: Caller): Promise<number> {
  return countOwn(
    db,
    caller,
    sql`operation.kind = 'EXPORT' and operation.status = 'SUCCEEDED' and operation.expires_at > ${now}`,
  );
}

async function countOwn(
  db: Kysely<Database>,
  { principal, namespace }: Caller,
  isCounted: RawBuilder<SqlBool>,
): Promise<number> {
  const { count } = await db
    .selectFrom('state_archive.operation as operation')
    .where('operation.tenant_id', '=', namespace.tenantId)
    .where('operation.workspace_id', '=', namespace.workspace)
    .where('operation.environment_id', '=', namespace.environment)
    .where('operation.subject', '=', principal.subject)
    .where(isCounted)
    .select((select) => select.fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The operation a caller's idempotency key stands for, and the fingerprint of the request it was first used with. */
export async function findByIdempotencyKey(
  db: Kysely<Database>,
  { principal, namespace }: Caller,
  kind: OperationKind,
  key: string,
): Promise<{ id: string; fingerprint: Buffer } | null> {
  const row = await db
    .selectFrom('state_archive.operation')
    .where('tenant_id', '=', namespace.tenantId)
    .where('subject', '=', principal.subject)
    .where('kind', '=', kind)
    .where('idempotency_key', '=', key)
    .select(['id', 'request_fingerprint as fingerprint'])
    .executeTakeFirst();
  return row === undefined ? null : { id: row.id, fingerprint: row.fingerprint ?? Buffer.alloc(0) };
}
