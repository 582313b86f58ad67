import { type Kysely, sql } from 'kysely';
import type { Database } from '../database/types.ts';
import type { Caller } from '../history/states.ts';
import { now } from './operation-lifecycle.ts';
import type { ArchiveServices } from './services.ts';
import { RequestRefusedError } from './user-error.ts';

/** How many archives of an environment are kept at a time, and how many bytes of them. */
export type ArchiveQuota = Pick<ArchiveServices, 'maxArchives' | 'maxArchiveBytesKept'>;

/**
 * Refuses an export that is recorded in the same transaction, when the environment has no room for its archive: those that are
 * kept are counted, and those that are on their way.
 *
 * @throws RequestRefusedError QUOTA_EXCEEDED.
 */
export async function refuseWithoutRoom(
  db: Kysely<Database>,
  caller: Caller,
  { maxArchives, maxArchiveBytesKept }: ArchiveQuota,
): Promise<void> {
  const { count, bytes } = await sumArchives(db, caller);
  if (count > maxArchives) {
    throw quotaExceeded(
      `The environment keeps ${maxArchives} archives, or is about to, as many as it may (MAX_ARCHIVES). Nothing was started; ask again when one of them has expired.`,
    );
  }
  if (bytes >= BigInt(maxArchiveBytesKept)) throw bytesExceeded(maxArchiveBytesKept);
}

/**
 * Refuses an archive that was written, when it is larger than what is left of the environment's room. To be called in the
 * transaction that records that it is kept.
 *
 * @throws RequestRefusedError QUOTA_EXCEEDED.
 */
export async function refuseTooManyBytes(
  db: Kysely<Database>,
  caller: Caller,
  { maxArchiveBytesKept }: ArchiveQuota,
  sizeBytes: bigint,
): Promise<void> {
  const { bytes } = await sumArchives(db, caller);
  if (bytes + sizeBytes > BigInt(maxArchiveBytesKept)) throw bytesExceeded(maxArchiveBytesKept);
}

function bytesExceeded(maxBytes: number): RequestRefusedError {
  return quotaExceeded(
    `The archives that the environment keeps may have ${maxBytes} bytes in all (MAX_ARCHIVE_BYTES_KEPT). Nothing was kept; ask again when one of them has expired.`,
  );
}

function quotaExceeded(message: string): RequestRefusedError {
  return new RequestRefusedError('QUOTA_EXCEEDED', message);
}

/** The first key of the advisory locks under which the archives of an environment are counted. */
const ARCHIVES_LOCK = 0x6b6c7362;

/** Counts under a lock, so that replicas count each other's: those who count pass one after another. */
async function sumArchives(
  db: Kysely<Database>,
  { namespace: { tenantId, workspace, environment } }: Caller,
): Promise<{ readonly count: number; readonly bytes: bigint }> {
  const key = JSON.stringify([workspace, environment]);
  await sql`select pg_advisory_xact_lock(${ARCHIVES_LOCK}::int, hashtext(${key}))`.execute(db);
  const isKept = sql<boolean>`status = 'SUCCEEDED' and expires_at > ${now}`;
  const { count, bytes } = await db
    .selectFrom('state_archive.operation')
    .where('tenant_id', '=', tenantId)
    .where('workspace_id', '=', workspace)
    .where('environment_id', '=', environment)
    .where('kind', '=', 'EXPORT')
    .where(sql<boolean>`(status in ('PENDING', 'RUNNING') or ${isKept})`)
    .select((select) => [
      select.fn.countAll<string>().as('count'),
      sql<string>`coalesce(sum(archive_size_bytes) filter (where ${isKept}), 0)::text`.as('bytes'),
    ])
    .executeTakeFirstOrThrow();
  return { count: Number(count), bytes: BigInt(bytes) };
}
