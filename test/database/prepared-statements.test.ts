import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { sql } from 'kysely';
import { connectDatabase, type KilolockDatabase } from '../../src/database/connection.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;
/** With one connection, so that every statement runs on it. */
let database: KilolockDatabase;

beforeAll(async () => {
  given = await createTestDatabase();
  await given.database.pool.query(
    'create table public.changing (value integer); insert into public.changing values (1)',
  );
});
afterAll(() => given.drop());
beforeEach(() => {
  database = connectDatabase({ connectionString: given.connectionString, maxConnections: 1 });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await database.close();
});

/** The statements the connection holds prepared, and when each was. */
async function prepared(): Promise<{ statement: string; prepare_time: string }[]> {
  const { rows } = await database.pool.query(
    "select statement, prepare_time::text from pg_prepared_statements where name like 'state_archive_%'",
  );
  return rows;
}

async function preparedAt(statement: string): Promise<string | undefined> {
  return (await prepared()).find((one) => one.statement === statement)?.prepare_time;
}

const add = async (one: number, other: number) =>
  (await sql<{ sum: number }>`select ${one}::int + ${other}::int as sum`.execute(database.for('read')))
    .rows[0]?.sum;
const ADD = 'select $1::int + $2::int as sum';

const changing = async () =>
  (await sql<{ value: number }>`select value from public.changing`.execute(database.for('read'))).rows;

describe('a statement that reads', () => {
  test('is prepared once, what stands in front of it included, and runs with the values of each time', async () => {
    expect(await add(1, 2)).toBe(3);
    const first = await preparedAt(ADD);
    expect(first).toBeDefined();
    const count = (await prepared()).length;
    expect(await add(20, 22)).toBe(42);
    expect(await preparedAt(ADD)).toBe(first);
    expect(await prepared()).toHaveLength(count);
  });

  test('is planned anew after a minute: tables have grown meanwhile', async () => {
    await add(1, 2);
    const first = await preparedAt(ADD);
    const now = performance.now();
    jest.spyOn(performance, 'now').mockReturnValue(now + 61_000);
    expect(await add(1, 2)).toBe(3);
    expect(await preparedAt(ADD)).not.toBe(first);
  });

  test('runs behind a pooler that does not keep what was prepared, where nothing is prepared from then on', async () => {
    await add(1, 2);
    await database.pool.query('deallocate all');
    expect(await add(20, 22)).toBe(42);
    expect(await add(1, 2)).toBe(3);
    expect(await prepared()).toEqual([]);
  });

  test('runs where an earlier client of a pooler has left another of its name', async () => {
    await add(1, 2);
    const { rows } = await database.pool.query(
      'select name from pg_prepared_statements where statement = $1',
      [ADD],
    );
    const other = connectDatabase({ connectionString: given.connectionString, maxConnections: 1 });
    try {
      await other.pool.query(`prepare ${rows[0]?.name} as select $1::int * $2::int as sum`);
      const sum = await sql`select ${20}::int + ${22}::int as sum`.execute(other.for('read'));
      expect(sum.rows).toEqual([{ sum: 42 }]);
    } finally {
      await other.close();
    }
  });

  test('reads a column whose type has changed since it was prepared', async () => {
    expect(await changing()).toEqual([{ value: 1 }]);
    await given.database.pool.query("alter table public.changing alter value type text using 'one'");
    expect(await changing()).toEqual([{ value: 'one' }]);
    expect(await changing()).toEqual([{ value: 'one' }]);
  });

  test('fails with its own error, and runs the next time', async () => {
    await expect(add(2 ** 31 - 1, 1)).rejects.toThrow('integer out of range');
    expect(await add(1, 2)).toBe(3);
  });

  test('is one of thirty-two at most that a connection holds', async () => {
    for (let index = 0; index < 60; index += 1) {
      await sql`select ${sql.lit(index)}::int as value`.execute(database.for('read'));
    }
    expect((await prepared()).length).toBe(32);
    const client = await database.pool.connect();
    expect(client).toHaveProperty('connection.parsedStatements', {});
    client.release();
    expect(await add(1, 2)).toBe(3);
  });
});

test('a statement that writes is not prepared: it must not be sent a second time', async () => {
  await sql`select 1 as written`.execute(database.for('digest'));
  await sql`select 1 as written`.execute(database.for('record'));
  expect(await prepared()).toEqual([]);
});
