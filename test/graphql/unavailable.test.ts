import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createTestDatabase } from '../support/database.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});

afterAll(() => service.stop());

test('a database that cannot be reached is UNAVAILABLE, neither INTERNAL nor an error of the service, and comes back', async () => {
  const ready = async () => (await fetch(`${service.url}/readyz`)).status;
  expect(await ready()).toBe(200);
  const { rows } = await service.database.pool.query('select current_database() as name');
  const elsewhere = await createTestDatabase();
  try {
    await elsewhere.database.pool.query(`alter database "${rows[0].name}" allow_connections false`);
    await elsewhere.database.pool.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1',
      [rows[0].name],
    );
    const before = service.log.length;
    const answer = await service.ask('{ stateArchive(name: "app") { id } }');
    expect(answer.denials).toEqual(['stateArchive: UNAVAILABLE']);
    expect(await ready()).toBe(503);
    const levels = service.log.slice(before).map((line) => JSON.parse(line).level as number);
    expect(levels.filter((level) => level >= 50)).toEqual([]);
    expect(levels).toContain(40);
  } finally {
    await elsewhere.database.pool.query(`alter database "${rows[0].name}" allow_connections true`);
    await elsewhere.drop();
  }
  expect((await service.ask('{ stateArchive(name: "app") { id } }')).errors).toEqual([]);
  expect(await ready()).toBe(200);
});
