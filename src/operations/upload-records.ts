import { type Kysely, sql } from 'kysely';
import { isUuid } from '../base/uuid.ts';
import { microsecondTime } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import type { StateNamespace } from '../history/namespace.ts';
import type { Caller } from '../history/states.ts';
import { now } from './operation-lifecycle.ts';

/** One row of `state_archive.upload`: a file that a caller announced, and how much of it has come. */
export interface UploadRecord {
  readonly id: string;
  /** Whose it is: nobody else may use it. */
  readonly subject: string;
  readonly fileName: string;
  /** What the whole file has to have, in lowercase hex. */
  readonly sha256: string;
  readonly byteLength: bigint;
  /** How many bytes are there, from the first on. */
  readonly receivedBytes: bigint;
  /** The operation that uses it, or used it; null while it is free. */
  readonly operationId: string | null;
  readonly expiresAt: string;
  readonly hasExpired: boolean;
}

/** A file that is announced. */
export type NewUpload = Pick<UploadRecord, 'id' | 'fileName' | 'sha256' | 'byteLength'>;

/** A part of an upload, in the store. */
export interface UploadPiece {
  readonly startByte: bigint;
  readonly byteLength: bigint;
  /** Its key among the uploads of the store. */
  readonly objectKey: string;
}

/** Records an upload that is good for so long. */
export async function insertUpload(
  db: Kysely<Database>,
  { principal, namespace }: Caller,
  { id, fileName, sha256, byteLength }: NewUpload,
  seconds: number,
): Promise<void> {
  await db
    .insertInto('state_archive.upload')
    .values({
      id,
      tenant_id: namespace.tenantId,
      workspace_id: namespace.workspace,
      environment_id: namespace.environment,
      subject: principal.subject,
      file_name: fileName,
      sha256: Buffer.from(sha256, 'hex'),
      byte_length: byteLength,
      expires_at: sql<string>`${now} + make_interval(secs => ${seconds})`,
    })
    .execute();
}

/** How many uploads of a caller an environment waits for, or keeps unused, and how many bytes they are when they are whole. */
export async function sumUnused(
  db: Kysely<Database>,
  { principal, namespace }: Caller,
): Promise<{ readonly count: number; readonly bytes: bigint }> {
  const { count, bytes } = await db
    .selectFrom('state_archive.upload')
    .where('tenant_id', '=', namespace.tenantId)
    .where('workspace_id', '=', namespace.workspace)
    .where('environment_id', '=', namespace.environment)
    .where('subject', '=', principal.subject)
    .where('operation_id', 'is', null)
    .where('expires_at', '>', now)
    .select((select) => [
      select.fn.countAll<string>().as('count'),
      sql<string>`coalesce(sum(byte_length), 0)::text`.as('bytes'),
    ])
    .executeTakeFirstOrThrow();
  return { count: Number(count), bytes: BigInt(bytes) };
}

/** An upload of an environment, used and expired ones too. */
export async function findUpload(
  db: Kysely<Database>,
  { tenantId, workspace, environment }: StateNamespace,
  id: string,
): Promise<UploadRecord | null> {
  if (!isUuid(id)) return null;
  const row = await db
    .selectFrom('state_archive.upload as upload')
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .where('workspace_id', '=', workspace)
    .where('environment_id', '=', environment)
    .select([
      'id',
      'subject',
      'file_name as fileName',
      sql<string>`encode(sha256, 'hex')`.as('sha256'),
      'byte_length as byteLength',
      'received_bytes as receivedBytes',
      'operation_id as operationId',
      microsecondTime('upload.expires_at').as('expiresAt'),
      sql<boolean>`expires_at <= ${now}`.as('hasExpired'),
    ])
    .executeTakeFirst();
  if (row === undefined) return null;
  return { ...row, byteLength: BigInt(row.byteLength), receivedBytes: BigInt(row.receivedBytes) };
}

/**
 * Records a piece that is in the store, where the upload goes on exactly there: of two requests that send the same bytes, to
 * whichever replicas, one is first.
 *
 * @returns false when it does not go on there, is used or has expired, or holds `maxPieces`.
 */
export async function addPiece(
  db: Kysely<Database>,
  id: string,
  { startByte, byteLength, objectKey }: UploadPiece,
  maxPieces: number,
): Promise<boolean> {
  const { rows } = await sql`
    with advanced as (
      update state_archive.upload
      set received_bytes = received_bytes + ${String(byteLength)}::bigint, pieces = pieces + 1
      where id = ${id} and received_bytes = ${String(startByte)}::bigint
        and received_bytes + ${String(byteLength)}::bigint <= byte_length
        and operation_id is null and expires_at > ${now} and pieces < ${maxPieces}::integer
      returning id)
    insert into state_archive.upload_piece (upload_id, start_byte, byte_length, object_key)
    select id, ${String(startByte)}::bigint, ${String(byteLength)}::bigint, ${objectKey} from advanced
    returning object_key
  `.execute(db);
  return rows.length > 0;
}

/** The keys of an upload's pieces, from its first byte on. */
export async function listPieces(db: Kysely<Database>, id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('state_archive.upload_piece')
    .where('upload_id', '=', id)
    .orderBy('start_byte')
    .select('object_key')
    .execute();
  return rows.map(({ object_key }) => object_key);
}

/** Those of the keys that are pieces of an upload. Each may be kept: its upload is removed before its record. */
export async function findPieces(
  db: Kysely<Database>,
  objectKeys: readonly string[],
): Promise<Map<string, true>> {
  const rows = await db
    .selectFrom('state_archive.upload_piece')
    .where(sql<boolean>`object_key = any(${objectKeys}::text[])`)
    .select('object_key')
    .execute();
  return new Map(rows.map(({ object_key }) => [object_key, true]));
}

/**
 * Gives an upload to an operation, once. To be called in the transaction that records the operation.
 *
 * @returns false when it is not whole, has expired, or is another operation's.
 */
export async function claimUpload(
  db: Kysely<Database>,
  { principal, namespace }: Caller,
  id: string,
  operationId: string,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('state_archive.upload')
    .set({ operation_id: operationId })
    .where('id', '=', id)
    .where('tenant_id', '=', namespace.tenantId)
    .where('subject', '=', principal.subject)
    .where('operation_id', 'is', null)
    .where('expires_at', '>', now)
    .whereRef('received_bytes', '=', 'byte_length')
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Ends the time of an upload that no operation uses: from here on none will, and nothing more of it is received. */
export async function expireUpload(db: Kysely<Database>, id: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('state_archive.upload')
    .set({ expires_at: now })
    .where('id', '=', id)
    .where('operation_id', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Forgets an upload whose pieces are gone. */
export async function deleteUpload(db: Kysely<Database>, id: string): Promise<void> {
  await db.deleteFrom('state_archive.upload').where('id', '=', id).execute();
}

/** Uploads that nobody can use any more: expired ones, and those of operations that are over. */
const abandoned = sql<{ id: string }>`
  select upload.id from state_archive.upload
  left join state_archive.operation on operation.id = upload.operation_id
  where case when upload.operation_id is null then upload.expires_at <= ${now}
    else operation.status is null or operation.status not in ('PENDING', 'RUNNING') end`;

/** Uploads that nobody can use any more, in the order of their ids, behind one of these. */
export async function findAbandoned(
  db: Kysely<Database>,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    ${abandoned} and upload.id > ${after} order by upload.id limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}

/** Whether nobody can use an upload any more. */
export async function isAbandoned(db: Kysely<Database>, id: string): Promise<boolean> {
  const { rows } = await sql`${abandoned} and upload.id = ${id}`.execute(db);
  return rows.length > 0;
}
