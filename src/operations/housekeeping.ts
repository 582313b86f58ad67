import { type Kysely, sql } from 'kysely';
import { describeError } from '../base/error-log.ts';
import type { Database } from '../database/types.ts';
import { removeExpiredArchives, sweepArchives } from './downloads.ts';
import { now } from './operation-lifecycle.ts';
import { removeAbandonedUploads, sweepPieces } from './received-uploads.ts';
import type { ArchiveServices } from './services.ts';
import { partOf } from './store-parts.ts';

/** How often each process looks after what it knows. */
export const HOUSEKEEPING_MS = 10 * 60 * 1000;
/** Six times as long as between two signs of life of a process. */
const LEFTOVERS_AGE_MS = 6 * HOUSEKEEPING_MS;
/** How long a turn is a process's own: a little shorter, so that nobody's clock makes all pass it over. */
const TURN_SECONDS = 570;

/**
 * Removes what is past its time, and what a process that died left half done. What records tell of every process sees to, in the
 * databases it has open. The store, whose lists cost money, is looked through by one process at a time, a bounded part in
 * each turn: nothing but what no record leads to is found there.
 */
export async function housekeep(services: ArchiveServices): Promise<void> {
  const { store, scratch, logger } = services;
  for (const work of [
    () => removeExpiredArchives(services),
    () => removeAbandonedUploads(services),
    () => scratch.removeLeftovers(LEFTOVERS_AGE_MS),
    () =>
      inTurn(services, 'archives', (after) =>
        sweepArchives(services, partOf(store.archives.list('', after))),
      ),
    () =>
      inTurn(services, 'uploads', (after) => sweepPieces(services, partOf(store.uploads.list('', after)))),
    () =>
      inTurn(services, 'leftovers', async () => {
        for (const area of [store.archives, store.uploads]) await area.removeLeftovers(LEFTOVERS_AGE_MS);
        return '';
      }),
  ]) {
    await work().catch((error: unknown) => {
      logger.warn({ error: describeError(error) }, 'housekeeping failed; it is tried again later');
    });
  }
}

/**
 * Does a task, unless it is another process's turn, which the control database tells. A process that dies, or fails, leaves its
 * part to the next turn.
 *
 * @param work is told where to begin, and tells where it has stopped.
 */
async function inTurn(
  { environments }: Pick<ArchiveServices, 'environments'>,
  task: string,
  work: (after: string) => Promise<string>,
): Promise<void> {
  const [control] = environments.openDatabases;
  if (control === undefined) return;
  const db = control.for('housekeeping');
  const after = await takeTurn(db, task);
  if (after === null) return;
  const position = await work(after);
  await db.updateTable('state_archive.housekeeping').set({ position }).where('task', '=', task).execute();
}

/** @returns where to begin; null while the turn is another's. */
async function takeTurn(db: Kysely<Database>, task: string): Promise<string | null> {
  const { rows } = await sql<{ position: string }>`
    insert into state_archive.housekeeping as turn (task, begun_at) values (${task}, ${now})
    on conflict (task) do update set begun_at = ${now}
      where turn.begun_at <= ${now} - make_interval(secs => ${TURN_SECONDS})
    returning position`.execute(db);
  return rows[0]?.position ?? null;
}
