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
 */
export class OperationSweep {
  readonly #options: SweepOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #sweeping = new Set<unknown>();
  #sweeps = 0;

  constructor(options: SweepOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #sweep(): void {
    const { queue, openDatabases } = this.#options;
    const [control, ...others] = openDatabases();
    void this.#once(queue, () => queue.putBackAbandoned());
    this.#sweeps += 1;
    // A database without a connection is at rest, and would be kept from closing by being asked.
    const awake =
      this.#sweeps % SWEEPS_BETWEEN_OTHERS === 0 ? others.filter(({ isAtRest }) => !isAtRest) : [];
    for (const database of control === undefined ? awake : [control, ...awake]) {
      void this.#once(database, () => sweepOperations(database, queue));
    }
  }

  async #once(subject: unknown, work: () => Promise<void>): Promise<void> {
    if (this.#sweeping.has(subject)) return;
    this.#sweeping.add(subject);
    try {
      await work();
    } catch (error) {
      this.#options.logger.warn(
        { error: describeError(error) },
        'abandoned operations could not be looked for',
      );
    } finally {
      this.#sweeping.delete(subject);
    }
  }
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
