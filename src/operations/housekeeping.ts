import { type Kysely, sql } from 'kysely';
import { NIL } from 'uuid';
import { describeError } from '../base/error-log.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { DatabaseUnavailableError } from '../database/errors.ts';
import type { Database } from '../database/types.ts';
import { RemovalRefusedError, StoreUnavailableError } from '../store/object-store.ts';
import { removeArchive } from './archive-retention.ts';
import { expireArchives, findExports, now } from './operation-lifecycle.ts';
import type { ArchiveServices } from './services.ts';
import { findAbandoned, findPieces } from './upload-records.ts';
import { removeUpload } from './uploads.ts';

/** How often each process looks after what it knows. */
export const HOUSEKEEPING_MS = 10 * 60 * 1000;
/** Six times as long as between two signs of life of a process. */
const LEFTOVERS_AGE_MS = 6 * HOUSEKEEPING_MS;
/** How long a turn is a process's own: a little shorter, so that nobody's clock makes all pass it over. */
const TURN_SECONDS = 570;
/** How many objects are looked at in one turn: what there is beyond these is for the next ones. */
const OBJECTS_A_TURN = 10_000;
/** So many archives, uploads or objects are asked about at a time. */
const PAGE = 1_000;
/** How much longer than it is kept an archive is left alone that nobody who could be asked knows. */
const UNKNOWN_ARCHIVE_GRACE_MS = 3_600_000;
/**
 * Longer than an upload lasts, and an operation waits for its turn. While there is a record, its database may be one that is not
 * open here; and it is rare that there is none: what a piece was sent for removes all that is under its id, so that the piece has
 * to have been stored by a process that was frozen until after that.
 */
const UNKNOWN_PIECE_AGE_MS = 7 * 24 * 3_600_000;

/** What the housekeeping works with. */
type Services = Pick<ArchiveServices, 'environments' | 'logger' | 'store'>;

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
    () => inTurn(services, 'archives', (after) => sweepStore(services, 'archives', after)),
    () => inTurn(services, 'uploads', (after) => sweepStore(services, 'uploads', after)),
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
 * Removes the archives whose time is past by their records.
 *
 * @throws AggregateError when not every open database could be asked, after all the others were.
 */
export async function removeExpiredArchives(services: Services): Promise<void> {
  await askingEach(services, async (ask) => {
    for (;;) {
      const keys: string[] = [];
      await ask(async (db) => void keys.push(...(await expireArchives(db, PAGE))));
      if (keys.length === 0) return;
      await removeEach(services, 'archives', keys, (key) => removeArchive(services.store, key));
    }
  });
}

/**
 * Removes the uploads that nobody can use any more, by their records; what the store does not let go of one keeps no other.
 *
 * @throws AggregateError when not every open database could be asked, after all the others were.
 */
export async function removeAbandonedUploads(services: Services): Promise<void> {
  await askingEach(services, (ask) =>
    ask(async (db, database) => {
      let after: string | undefined = NIL;
      while (after !== undefined) {
        const ids = await findAbandoned(db, { after, limit: PAGE });
        await removeEach(services, 'uploads', ids, (id) => removeUpload(services, database, id));
        after = ids.at(-1);
      }
    }),
  );
}

/**
 * Removes from a part of the store the archives whose time is past, those of exports that ended otherwise than well, and those of
 * attempts that do not count: what a process that died between two steps left is found the next time. What no open database
 * knows, when all have been asked, may be another's: an archive goes when it is older than one is kept, and a piece of an
 * upload when it is older than one is waited for.
 *
 * @param after the key behind which the part begins.
 * @param most how many objects the part has at most.
 * @returns the key behind which the next part begins; '' when this was the last.
 * @throws AggregateError when not every open database could be asked, after all the others were.
 */
export async function sweepStore(
  services: Services & Pick<ArchiveServices, 'retentionSeconds'>,
  area: 'archives' | 'uploads',
  after: string,
  most = OBJECTS_A_TURN,
): Promise<string> {
  const { store, retentionSeconds } = services;
  const { findKnown, unknownAgeMs } = {
    archives: { findKnown: findExports, unknownAgeMs: retentionSeconds * 1000 + UNKNOWN_ARCHIVE_GRACE_MS },
    uploads: { findKnown: findPieces, unknownAgeMs: UNKNOWN_PIECE_AGE_MS },
  }[area];
  return askingEach(services, async (ask) => {
    const ages = new Map<string, number>();
    const sweepPage = async () => {
      const uncounted: string[] = [];
      const haveAnswered = await ask(async (db) => {
        for (const [key, mayKeep] of await findKnown(db, [...ages.keys()])) {
          ages.delete(key);
          if (!mayKeep) uncounted.push(key);
        }
      });
      await removeEach(services, area, uncounted, (key) => removeArchive(store, key));
      // What one knows that did not answer nobody else can tell.
      const old = haveAnswered ? [...ages].filter(([, ageMs]) => ageMs >= unknownAgeMs) : [];
      const names = old.map(([key]) => key);
      await removeEach(services, area, names, (key) => store[area].remove(key));
      ages.clear();
    };
    let seen = 0;
    for await (const { key, ageMs } of store[area].list('', after)) {
      ages.set(key, ageMs);
      seen += 1;
      if (ages.size === PAGE || seen === most) await sweepPage();
      if (seen === most) return key;
    }
    await sweepPage();
    return '';
  });
}

/** Puts a question to each open database, and tells whether all have answered so far. */
type AskEach = (
  question: (db: Kysely<Database>, database: KilolockDatabase) => Promise<void>,
) => Promise<boolean>;

/**
 * Does work that puts questions to each open database: one that cannot answer is asked no more, and hinders no other.
 *
 * @throws AggregateError when the work is done, unless all have answered.
 */
async function askingEach<Result>(
  { environments: { openDatabases } }: Pick<ArchiveServices, 'environments'>,
  work: (ask: AskEach) => Promise<Result>,
): Promise<Result> {
  const failures = new Map<KilolockDatabase, unknown>();
  const result = await work(async (question) => {
    for (const database of openDatabases) {
      if (failures.has(database)) continue;
      await question(database.for('housekeeping'), database).catch((error) => failures.set(database, error));
    }
    return failures.size === 0;
  });
  if (failures.size === 0) return result;
  const [cause] = failures.values();
  throw new AggregateError([...failures.values()], 'Not every database could be asked.', { cause });
}

/**
 * Removes one after the other. What the store does not let go keeps none of the others, and is told in the log: the next
 * housekeeping tries again.
 *
 * @param what they are, as the log calls them.
 * @param remove is told false of when the store keeps it until a time.
 * @throws StoreUnavailableError, DatabaseUnavailableError: then none of the others could be removed either.
 */
async function removeEach(
  { logger }: Pick<ArchiveServices, 'logger'>,
  what: 'archives' | 'uploads',
  names: readonly string[],
  remove: (name: string) => Promise<unknown>,
): Promise<void> {
  const [kept, refused]: [string[], string[]] = [[], []];
  let reason: unknown;
  for (const name of names) {
    try {
      if ((await remove(name)) === false) kept.push(name);
    } catch (error) {
      if (endsAll(error)) throw error;
      refused.push(name);
      reason ??= error;
    }
  }
  const told = (those: readonly string[]) => ({ count: those.length, first: those[0] });
  if (kept.length > 0) logger.info(told(kept), `${what} that are to go are kept by the store until a time`);
  if (refused.length === 0) return;
  const error = describeError(reason);
  logger.warn({ error, ...told(refused) }, `${what} that are to go cannot be removed`);
}

function endsAll(error: unknown): boolean {
  if (error instanceof RemovalRefusedError) return false;
  return error instanceof StoreUnavailableError || error instanceof DatabaseUnavailableError;
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
