import { parseArgs } from 'node:util';
import { createTestDatabase } from '../support/database.ts';
import { startTestServer } from '../support/test-server.ts';
import { runChaos } from './chaos.ts';

// `npm run chaos -- [--kills N] [--operations N] [--seed S] [--store file|s3] [--pooler none|pgbouncer]
// [--beside COMMIT] [--database-crashes N]`: two replicas and two workers, one of
// which is killed every few seconds while they work. Ends with 1 when anything is found that must not be.

const USAGE =
  'usage: npm run chaos -- [--kills N] [--operations N] [--seed S] [--store file|s3] [--pooler none|pgbouncer] [--beside COMMIT] [--database-crashes N]';

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '60' },
      operations: { type: 'string', default: '100' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
      store: { type: 'string', default: 'file' },
      pooler: { type: 'string', default: 'none' },
      beside: { type: 'string' },
      'database-crashes': { type: 'string', default: '2' },
    },
  });
  const { store, pooler } = values;
  const [kills, operations, seed, databaseCrashes] = [
    values.kills,
    values.operations,
    values.seed,
    values['database-crashes'],
  ].map(Number);
  const numbers = [kills, operations, seed, databaseCrashes];
  if (
    !numbers.every((number) => Number.isSafeInteger(number)) ||
    (store !== 'file' && store !== 's3') ||
    (pooler !== 'none' && pooler !== 'pgbouncer')
  ) {
    console.error(USAGE);
    return 2;
  }
  console.log(`seed ${seed}`);
  const server = await startTestServer();
  process.env.STATE_ARCHIVE_TEST_SERVER = JSON.stringify(server.address);
  try {
    const { connectionString, drop } = await createTestDatabase();
    try {
      const report = await runChaos({
        connectionString,
        seed: seed ?? 0,
        kills: kills ?? 0,
        operations: operations ?? 0,
        pauseMs: 4_000,
        versions: 40,
        store,
        pooler,
        beside: values.beside ?? null,
        databaseCrashes: databaseCrashes ?? 0,
        tell: (line) => console.log(line),
      });
      console.log(JSON.stringify(report, null, 2));
      return report.problems.length === 0 ? 0 : 1;
    } finally {
      await drop();
    }
  } finally {
    await server.stop();
  }
}

process.exit(await main());
