import type { KilolockDatabase } from '../../src/database/connection.ts';
import { interceptQueries } from '../operations/support/intercept-queries.ts';

/** What PostgreSQL had to do for one statement. */
export interface Effort {
  readonly statement: string;
  /** How many pages of 8 KiB it looked at, in memory or on disk. */
  readonly pages: number;
  /** The tables it read from end to end. */
  readonly readWhole: readonly string[];
}

/**
 * What PostgreSQL has to do for the statements of some work. Each is tried before it runs, by itself and in vain.
 *
 * @param work is given the database to work on.
 */
export async function effortsOf(
  database: KilolockDatabase,
  work: (database: KilolockDatabase) => Promise<unknown>,
): Promise<Effort[]> {
  const efforts: Effort[] = [];
  const explained = interceptQueries(database, async (statement, _client, values) => {
    if (!/^\s*(select|insert|update|delete|with)\b/i.test(statement)) return;
    const client = await database.pool.connect();
    try {
      await client.query('begin');
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, buffers, format json) ${statement}`,
        [...values],
      );
      const [{ Plan: plan }] = JSON.parse(rows[0]?.['QUERY PLAN'] ?? '[]') as [{ Plan: PlanNode }];
      const pages = plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
      efforts.push({ statement, pages, readWhole: [...tablesReadWhole(plan)] });
    } finally {
      await client.query('rollback');
      client.release();
    }
  });
  await work(explained);
  return efforts;
}

/** As `explain (format json)` has it. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

function* tablesReadWhole(node: PlanNode): Generator<string, void, void> {
  if (node['Node Type'] === 'Seq Scan' && node['Relation Name'] !== undefined) yield node['Relation Name'];
  for (const child of node.Plans ?? []) yield* tablesReadWhole(child);
}
