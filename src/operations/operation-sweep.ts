import type { Logger } from 'pino';
import { describeError } from '../base/error-log.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { findUnqueued, giveUpAbandoned, markQueued } from './operation-lifecycle.ts';
import type { OperationQueue } from './operation-queue.ts';

const SWEEP_MS = 5_000;
/** Longer than a connection stays open that nobody uses: a database of an environment must come to rest in between. */
const SWEEPS_BETWEEN_OTHERS = 6;

/** What is looked after. */
interface SweepOptions {
  readonly queue: OperationQueue;
  /** The databases whose records are swept, the control database first. */
  readonly openDatabases: () => readonly KilolockDatabase[];
  readonly logger: Logger;
}

/**
 * Finds, every five seconds, what nobody looks after: operations that are recorded and not queued, and those whose worker has
 * fallen silent, are queued again; those that nobody takes up any more are given up. In the databases of environments it looks
 * every half a minute. Every process does so; twice does no harm. Each database is served by itself.
 *
 * @returns ends it.
 */
export function startSweep({ queue, openDatabases, logger }: SweepOptions): () => void {
  const sweeping = new Set<unknown>();
  const once = async (subject: unknown, work: () => Promise<void>) => {
    if (sweeping.has(subject)) return;
    sweeping.add(subject);
    try {
      await work();
    } catch (error) {
      logger.warn({ error: describeError(error) }, 'abandoned operations could not be looked for');
    } finally {
      sweeping.delete(subject);
    }
  };
  let sweeps = 0;
  const timer = setInterval(() => {
    void once(queue, () => queue.putBackAbandoned());
    sweeps += 1;
    const [control, ...others] = openDatabases();
    // A database without a connection is at rest, and would be kept from closing by being asked.
    const awake = sweeps % SWEEPS_BETWEEN_OTHERS === 0 ? others.filter(({ isAtRest }) => !isAtRest) : [];
    for (const database of control === undefined ? awake : [control, ...awake]) {
      void once(database, () => sweepOperations(database, queue));
    }
  }, SWEEP_MS).unref();
  return () => clearInterval(timer);
}

/** Looks after the operations that one database records. */
export async function sweepOperations(database: KilolockDatabase, queue: OperationQueue): Promise<void> {
  const db = database.for('housekeeping');
  await giveUpAbandoned(db);
  const unqueued = await findUnqueued(db);
  if (unqueued.length === 0) return;
  await queue.send(unqueued);
  await markQueued(
    db,
    unqueued.map(({ id }) => id),
  );
  await queue.announce();
}
