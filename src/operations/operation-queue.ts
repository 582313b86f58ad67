import { sql } from 'kysely';
import type { PgBoss } from 'pg-boss';
import { z } from 'zod';
import { present } from '../base/invariant.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { Listener, type ListenerOptions, notify } from '../database/notifications.ts';
import { OPERATION_QUEUE, openBoss, QUEUE_SCHEMA } from '../database/queue-schema.ts';
import type { NamespaceSelector } from '../history/namespace.ts';

/** An operation that should be worked on, and where its record is. */
export interface QueuedOperation {
  readonly id: string;
  readonly environment: NamespaceSelector;
}

/** A queued operation that this process was given, for as long as it says so by {@link OperationQueue.hold}. */
export interface Job extends QueuedOperation {
  /** How often it was given to somebody before: what is said of a job by whoever held it then is not heard. */
  readonly retryCount: number;
}

/** The channel on which processes tell each other that something was put into the queue. */
const CHANNEL = 'state_archive_operations';

const jobData = z.object({
  environment: z.object({ workspace: z.string(), environment: z.string() }).nullable(),
});

/**
 * What carries operations from whoever records them to whoever works on them, in the control database. It says that there is
 * something to do, and nothing of what: a job is the id of an operation, which is the job's own, and where its record is.
 * Whether anything is to be done at all, the record decides.
 */
export class OperationQueue {
  readonly #database: KilolockDatabase;
  readonly #boss: PgBoss;

  /** @param database the control database, prepared. */
  constructor(database: KilolockDatabase) {
    this.#database = database;
    this.#boss = openBoss(database);
  }

  /** Puts operations into the queue. Those that are in it stay as they are. */
  async send(operations: readonly QueuedOperation[]): Promise<void> {
    const jobs = operations.map(({ id, ...data }) => ({ id, data }));
    await this.#boss.insert(OPERATION_QUEUE, jobs);
  }

  /** Tells the processes that listen that something was put into the queue. */
  async announce(): Promise<void> {
    await notify(this.#database, CHANNEL, '');
  }

  /**
   * Listens to what other processes announce.
   *
   * @param directAddress an address of the control database past every pooler.
   * @throws DsnError when it cannot be read.
   */
  listen(directAddress: string, { onHeard, onDeaf }: Pick<ListenerOptions, 'onHeard' | 'onDeaf'>): Listener {
    return new Listener({ database: this.#database, directAddress, channel: CHANNEL, onHeard, onDeaf });
  }

  /**
   * Takes at most so many operations, the oldest first: nobody else is given them meanwhile. A job that a later release put in
   * and only that can read is put back at once, and keeps nobody from the others.
   */
  async take(count: number): Promise<Job[]> {
    const taken: Job[] = [];
    for (const job of await this.#boss.fetch(OPERATION_QUEUE, { batchSize: count })) {
      const { data } = jobData.safeParse(job.data);
      if (data !== undefined) taken.push({ id: job.id, retryCount: job.retryCount, ...data });
      else await this.#boss.fail(OPERATION_QUEUE, job);
    }
    return taken;
  }

  /** Says that jobs are still in hand. */
  async hold(jobs: readonly Job[]): Promise<void> {
    if (jobs.length > 0) await this.#boss.touch(OPERATION_QUEUE, [...jobs]);
  }

  /** Puts a job back for somebody to take later: after a second at first, and after eight at most. */
  async putBack(job: Job): Promise<void> {
    await this.#boss.fail(OPERATION_QUEUE, job);
  }

  /** Removes a job whose operation is over, or another's. */
  async remove(job: Job): Promise<void> {
    await this.#boss.deleteJob(OPERATION_QUEUE, job);
  }

  /**
   * How many operations wait in the queue and are worked on, of all environments, and for how many seconds the oldest of those
   * that wait has been in it: since it was queued, however often it was tried meanwhile.
   */
  async depth(): Promise<{ waiting: number; active: number; oldestSeconds: number }> {
    const { rows } = await sql<{ waiting: number; active: number; oldestSeconds: number }>`
      select count(*) filter (where state < 'active')::int as waiting,
        count(*) filter (where state = 'active')::int as active,
        coalesce(extract(epoch from clock_timestamp() - min(created_on) filter (where state < 'active')), 0)::float8
          as "oldestSeconds"
      from ${sql.table(`${QUEUE_SCHEMA}.job`)}
      where name = ${OPERATION_QUEUE} and state < 'completed'
    `.execute(this.#database.for('probe'));
    return present(rows[0], 'a count has a row');
  }

  /** Puts back what was taken by somebody who has not been heard of for ten seconds. */
  async putBackAbandoned(): Promise<void> {
    await this.#boss.supervise(OPERATION_QUEUE);
  }
}
