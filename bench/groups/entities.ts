import type { BenchDatabase } from '../databases.ts';
import type { Group } from '../group.ts';
import { usualHistory } from '../history/shape.ts';
import { startBenchService } from '../service/service.ts';
import { median, percentile } from '../statistics.ts';

const COUNTS = [2, 100, 1_000];

const QUERY = `query ($representations: [_Any!]!) {
  _entities(representations: $representations) {
    ... on State { archive { name status { versionCount exportable lastExport { finishedAt } } } }
  }
}`;

/** How long a gateway waits for what a page of another subgraph's states asks of this one. */
export const entities: Group = {
  name: 'entities',
  minutes: { full: 1, quick: 1 },
  async run({ histories, quick, tell }) {
    const shape = usualHistory(quick ? 40 : 200);
    const rounds = quick ? 10 : 50;
    const database = await histories.copy(shape);
    const ids = await copyStates(database, Math.max(...COUNTS));
    const service = await startBenchService(database);
    const latencies = new Map<number, number[]>(COUNTS.map((count) => [count, []]));
    for (let round = 0; round <= rounds; round += 1) {
      if (round % 10 === 0) tell(`round ${round} of ${rounds}`);
      for (const [count, times] of latencies) {
        const representations = ids.slice(0, count).map((id) => ({ __typename: 'State', id }));
        const began = performance.now();
        await service.gateway.run(QUERY, { representations });
        if (round > 0) times.push(performance.now() - began);
      }
    }
    await service.stop();
    await database.drop();
    return [
      {
        title: 'References that a gateway asks for in one request',
        head: ['references', 'median', 'p99', 'each'],
        rows: [...latencies].map(([count, times]) => [
          String(count),
          `${median(times).toFixed(2)} ms`,
          `${percentile(times, 0.99).toFixed(2)} ms`,
          `${((1000 * median(times)) / count).toFixed(0)} µs`,
        ]),
        notes: [
          `One request at a time, ${rounds} of each, in turns. The statements are the same for each of them.`,
        ],
      },
    ];
  },
};

/** More states beside the one of the history, without versions; the ids of so many in all. */
async function copyStates(database: BenchDatabase, count: number): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `with copies as (
       insert into public.states (id, tenant_id, name, lineage)
       select gen_random_uuid(), tenant_id, name || '-' || n, gen_random_uuid()
       from public.states, generate_series(1, ${count - 1}) n returning id
     )
     select id from public.states union all select id from copies`,
  );
  return rows.map(({ id }) => id);
}
