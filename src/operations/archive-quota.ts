import { type Kysely, sql } from 'kysely';
import { inTransaction } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import type { Caller } from '../history/states.ts';
import { type Attempt, now } from './operation-lifecycle.ts';
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
 * Takes room for an archive that was written, or refuses it when it is larger than what is left of the environment's. The room
 * is on the operation's record for as long as that is running: nobody who counts has to wait until the archive itself is on record.
 *
 * @throws RequestRefusedError QUOTA_EXCEEDED.
 */
export async function takeRoom(
  caller: Caller,
  { maxArchiveBytesKept }: ArchiveQuota,
  { id, attempt }: Attempt,
  sizeBytes: bigint,
): Promise<void> {
  await inTransaction(caller.database, 'record', async ({ db }) => {
    const { bytes } = await sumArchives(db, caller, id);
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

/** The first key of the advisory locks under which the archives of an environment are counted. */
const ARCHIVES_LOCK = 0x6b6c7363;

/**
 * Counts under a lock, so that replicas count each other's: those who count pass one after another.
 *
 * @param exceptId whose room does not count; null: all count.
 */
async function sumArchives(
  db: Kysely<Database>,
  { namespace: { tenantId, workspace, environment } }: Caller,
  exceptId: string | null = null,
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
    .$if(exceptId !== null, (others) => others.where('id', '<>', exceptId))
    .select((select) => [
      select.fn.countAll<string>().as('count'),
      sql<string>`coalesce(sum(archive_size_bytes) filter (where ${isKept} or status = 'RUNNING'), 0)::text`.as(
        'bytes',
      ),
    ])
    .executeTakeFirstOrThrow();
  return { count: Number(count), bytes: BigInt(bytes) };
}
