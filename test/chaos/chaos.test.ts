import { expect, test } from '@jest/globals';
import { createTestDatabase } from '../support/database.ts';
import { runChaos } from './chaos.ts';

test('processes that are killed while they work leave every operation done once, and nothing else', async () => {
  const { connectionString, drop } = await createTestDatabase();
  try {
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
    await drop();
  }
});
