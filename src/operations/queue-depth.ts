import { sql } from 'kysely';
import type { KilolockDatabase } from '../database/connection.ts';
import { OPERATION_QUEUE, QUEUE_SCHEMA } from '../database/queue-schema.ts';

/**
 * How many operations wait in the queue and are worked on, of all environments, and for how many seconds the oldest of those
 * that wait has been in it: since it was queued, however often it was tried meanwhile.
 *
 * @param database the control database.
 */
export async function readQueueDepth(
  database: KilolockDatabase,
): Promise<{ waiting: number; active: number; oldestSeconds: number }> {
  const { rows } = await sql<{ waiting: number; active: number; oldestSeconds: number }>`
    select count(*) filter (where state < 'active')::int as waiting,
      count(*) filter (where state = 'active')::int as active,
      coalesce(extract(epoch from clock_timestamp() - min(created_on) filter (where state < 'active')), 0)::float8
        as "oldestSeconds"
    from ${sql.table(`${QUEUE_SCHEMA}.job`)}
    where name = ${OPERATION_QUEUE} and state < 'completed'
  `.execute(database.for('probe'));
  const [depth] = rows;
  if (depth === undefined) throw new Error('A count has no row.');
  return depth;
}
