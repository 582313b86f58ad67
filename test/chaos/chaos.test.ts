import { expect, test } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase } from '../support/database.ts';
import { runChaos } from './chaos.ts';

test('processes that are killed while they work leave every operation done once, and nothing else', async () => {
  const { connectionString, drop } = await createTestDatabase();
  // Other databases of the same server have their own transactions and locks, and are not looked at.
  const neighbour = await createTestDatabase();
  const busy = new pg.Client(neighbour.connectionString);
  try {
    await busy.connect();
    await busy.query('begin');
    await busy.query('select pg_advisory_xact_lock(1)');
    const report = await runChaos({
      connectionString,
      seed: 1,
      kills: 4,
      operations: 10,
      pauseMs: 2_000,
      versions: 10,
      store: 'file',
      pooler: 'none',
      beside: null,
      databaseCrashes: 0,
      tell: () => {},
    });
    expect(report.problems).toEqual([]);
    expect(Object.values(report.killed).reduce((sum, kills) => sum + kills)).toBe(4);
  } finally {
    await busy.end();
    await neighbour.drop();
    await drop();
  }
});
