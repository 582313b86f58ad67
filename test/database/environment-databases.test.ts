import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { KilolockDatabase } from '../../src/database/connection.ts';
import {
  EnvironmentDatabases,
  type EnvironmentDatabasesOptions,
} from '../../src/database/environment-databases.ts';
import { NotKilolockDatabaseError } from '../../src/database/prepare.ts';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase[];
let databases: EnvironmentDatabases;
/** The databases that were announced as open. */
let announced: KilolockDatabase[];

beforeAll(async () => {
  given = await Promise.all([createTestDatabase(), createTestDatabase(), createTestDatabase()]);
});
beforeEach(() => {
  announced = [];
});
afterEach(() => databases.close());
afterAll(() => Promise.all(given.map((each) => each.drop())));

function limitedTo(maxDatabases: number, changes: Partial<EnvironmentDatabasesOptions> = {}): void {
  databases = new EnvironmentDatabases({
    maxDatabases,
    maxConnectionsEach: 2,
    onOpened: async (database) => void announced.push(database),
    ...changes,
  });
}

/** The connection string of one of the given databases. */
function address(index: number): string {
  return givenAt(index).connectionString;
}

function givenAt(index: number): TestDatabase {
  const found = given[index];
  if (found === undefined) throw new Error(`There is no database ${index}.`);
  return found;
}

function nextRemoval(pool: KilolockDatabase['pool']): Promise<void> {
  return new Promise((resolve) => pool.once('remove', () => resolve()));
}

/** Ends every connection the pool has, as being idle for a while does. */
async function idleOut(index: number, { pool }: KilolockDatabase): Promise<void> {
  const administrator = await givenAt(index).database.pool.connect();
  try {
    const gone = pool.totalCount > 0 ? nextRemoval(pool) : undefined;
    await administrator.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    );
    await gone;
    while (pool.totalCount > 0) await nextRemoval(pool);
  } finally {
    administrator.release();
  }
}

async function nameOf({ pool }: KilolockDatabase): Promise<string> {
  const { rows } = await pool.query<{ name: string }>('select current_database() as name');
  return rows[0]?.name ?? '';
}

const nameIn = (connectionString: string) => new URL(connectionString).pathname.slice(1);

describe('the database of an environment', () => {
  test('is opened once for all who ask at the same time, and kept', async () => {
    limitedTo(2);
    const opened = await Promise.all([1, 2, 3].map(() => databases.open(address(0))));
    const again = await databases.open(address(0));
    expect(new Set([...opened, again]).size).toBe(1);
    expect(announced).toEqual([again]);
    expect(databases.opened).toEqual([again]);
    expect(await nameOf(again)).toBe(nameIn(address(0)));
  });

  test('is prepared before anybody gets it, and announced after that', async () => {
    await givenAt(0).database.pool.query('drop schema state_archive cascade');
    const operations: string[] = [];
    limitedTo(1, {
      async onOpened({ pool }) {
        const { rows } = await pool.query<{ count: string }>('select count(*) from state_archive.operation');
        operations.push(rows[0]?.count ?? '');
      },
    });
    await databases.open(address(0));
    expect(operations).toEqual(['0']);
  });

  test('has no more connections than it may, however much is asked of it', async () => {
    limitedTo(1);
    const { pool } = await databases.open(address(0));
    await Promise.all(Array.from({ length: 8 }, () => pool.query('select pg_sleep(0.01)')));
    expect(pool.totalCount).toBe(2);
  });

  test('that is not Kilolock’s is refused each time, and takes no place', async () => {
    const empty = await createEmptyTestDatabase();
    try {
      limitedTo(1);
      for (const _attempt of [1, 2]) {
        await expect(databases.open(empty.connectionString)).rejects.toBeInstanceOf(NotKilolockDatabaseError);
        expect(databases.opened).toEqual([]);
      }
      expect(await nameOf(await databases.open(address(0)))).toBe(nameIn(address(0)));
      const { rows } = await empty.database.pool.query(
        `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      );
      expect(rows).toEqual([]);
    } finally {
      await empty.drop();
    }
  });

  test('that cannot be reached is told to all who wait for it, and tried again for the next', async () => {
    limitedTo(1);
    const closed = 'postgresql://kilolock:hunter2@127.0.0.1:1/kilolock';
    const attempts = await Promise.allSettled([1, 2, 3].map(() => databases.open(closed)));
    expect(attempts).toEqual(
      attempts.map(() => ({
        status: 'rejected',
        reason: expect.objectContaining({ reason: 'unreachable' }),
      })),
    );
    expect(databases.opened).toEqual([]);
    await expect(databases.open(closed)).rejects.toMatchObject({ reason: 'unreachable' });
    await databases.open(address(0));
  });

  test('is closed again when it cannot be announced, and opened anew for the next', async () => {
    const failures = [new Error('not now')];
    limitedTo(1, {
      async onOpened(database) {
        announced.push(database);
        const failure = failures.pop();
        if (failure) throw failure;
      },
    });
    await expect(databases.open(address(0))).rejects.toThrow('not now');
    expect([announced[0]?.pool.ended, databases.opened]).toEqual([true, []]);
    const second = await databases.open(address(0));
    expect(announced).toEqual([announced[0], second]);
  });

  test('is closed with all the others', async () => {
    limitedTo(2);
    const both = [await databases.open(address(0)), await databases.open(address(1))];
    await databases.close();
    expect(both.map(({ pool }) => pool.ended)).toEqual([true, true]);
    expect(databases.opened).toEqual([]);
  });
});

describe('beyond as many databases as may be open', () => {
  test('one in use is not given up: another is refused, and its address is in no message', async () => {
    limitedTo(1);
    const first = await databases.open(address(0));
    const client = await first.pool.connect();
    try {
      const refusal = await databases.open(address(1)).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: 'UNAVAILABLE', reason: 'busy' });
      expect(String(refusal)).not.toContain(nameIn(address(1)));
      expect(databases.opened).toEqual([first]);
      expect((await client.query('select 1')).rowCount).toBe(1);
    } finally {
      client.release();
    }
  });

  test('one without connections is forgotten for another, and whoever holds it goes on', async () => {
    limitedTo(1);
    const first = await databases.open(address(0));
    await idleOut(0, first);
    const second = await databases.open(address(1));
    expect(databases.opened).toEqual([second]);
    expect(await nameOf(first)).toBe(nameIn(address(0)));
    await idleOut(1, second);
    const anew = await databases.open(address(0));
    expect(anew).not.toBe(first);
    await first.close();
  });

  test('the one that was not used for longest is forgotten first', async () => {
    limitedTo(2);
    const first = await databases.open(address(0));
    const second = await databases.open(address(1));
    await idleOut(0, first);
    await idleOut(1, second);
    expect(await databases.open(address(0))).toBe(first);
    const third = await databases.open(address(2));
    expect(databases.opened).toEqual([first, third]);
    await second.close();
  });
});
