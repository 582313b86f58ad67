import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { connectDatabase, type KilolockDatabase } from '../../src/database/connection.ts';
import { migrations } from '../../src/database/migrations.ts';
import {
  isPrepared,
  NotKilolockDatabaseError,
  prepareControlDatabase,
  prepareDatabase,
} from '../../src/database/prepare.ts';
import { createKilolockTables } from '../../src/development/kilolock-tables.ts';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;
beforeEach(async () => {
  given = await createEmptyTestDatabase();
});
afterEach(() => given.drop());

/** As a database of our own is prepared. */
async function prepareNew(database: KilolockDatabase): Promise<void> {
  await createKilolockTables(database);
  await prepareControlDatabase(database);
}

const relations = async (schema: string): Promise<string[]> => {
  const { rows } = await given.database.pool.query<{ relname: string }>(
    'select relname from pg_class where relnamespace = to_regnamespace($1) order by relname',
    [schema],
  );
  return rows.map((row) => row.relname);
};

test("an empty database gets Kilolock's tables and ours", async () => {
  expect(await isPrepared(given.database)).toBe(false);
  await prepareNew(given.database);
  expect(await isPrepared(given.database)).toBe(true);
  expect(await relations('public')).toContain('state_versions');
  expect(await relations('state_archive')).toEqual(
    expect.arrayContaining(['operation', 'version_mapping', 'version_digest', 'kysely_migration']),
  );
});

test('four replicas that start at once, each with one connection, all end prepared', async () => {
  const replicas = [1, 2, 3, 4].map(() =>
    connectDatabase({ connectionString: given.connectionString, maxConnections: 1 }),
  );
  try {
    await Promise.all(replicas.map((replica) => prepareNew(replica)));
    expect(await Promise.all(replicas.map(isPrepared))).toEqual([true, true, true, true]);
    const { rows } = await given.database.pool.query('select name from state_archive.kysely_migration');
    expect(rows).toEqual(Object.keys(migrations).map((name) => ({ name })));
  } finally {
    await Promise.all(replicas.map((replica) => replica.close()));
  }
});

test('preparing again changes nothing', async () => {
  await prepareNew(given.database);
  await given.database.for('record').insertInto('states').values({ name: 'kept' }).execute();
  await prepareNew(given.database);
  await prepareDatabase(given.database);
  expect(await given.database.for('record').selectFrom('states').select('name').execute()).toEqual([
    { name: 'kept' },
  ]);
});

describe('a database that is not a migrated Kilolock', () => {
  const refusal = (prepare: typeof prepareDatabase) =>
    prepare(given.database).then(
      () => undefined,
      (error: unknown) => error,
    );

  test('is refused when empty, and stays empty', async () => {
    const error = await refusal(prepareDatabase);
    expect(error).toBeInstanceOf(NotKilolockDatabaseError);
    expect(error).toHaveProperty('message', expect.stringContaining('without the tables of Kilolock'));
    expect(await relations('public')).toEqual([]);
    expect(await relations('state_archive')).toEqual([]);
  });

  test('is refused when an older Kilolock, naming what is missing, and is left as it was', async () => {
    await prepareNew(given.database);
    await given.database.pool.query('drop schema state_archive cascade');
    await given.database.pool.query('alter table resources drop column schema_version');
    await given.database.pool.query('alter table environments drop column state_lock_default_mode');
    const before = await relations('public');
    for (const prepare of [prepareDatabase, prepareNew]) {
      const error = await refusal(prepare);
      expect(error).toBeInstanceOf(NotKilolockDatabaseError);
      expect(error).toHaveProperty('missing', [
        'environments.state_lock_default_mode',
        'resources.schema_version',
      ]);
      expect(error).toHaveProperty('message', expect.stringContaining('resources.schema_version'));
    }
    expect(await relations('public')).toEqual(before);
    expect(await relations('state_archive')).toEqual([]);
  });

  test("is not given Kilolock's tables when a table of the same name is there", async () => {
    await given.database.pool.query('create table states (capital text)');
    expect(await refusal(prepareNew)).toBeInstanceOf(NotKilolockDatabaseError);
    expect(await relations('public')).toEqual(['states']);
  });
});

test('what Kilolock migrated gets nothing of ours in public', async () => {
  await prepareNew(given.database);
  await given.database.pool.query('drop schema state_archive cascade');
  const before = await relations('public');
  await prepareDatabase(given.database);
  expect(await isPrepared(given.database)).toBe(true);
  expect(await relations('public')).toEqual(before);
});

describe('the operation table', () => {
  const operation = {
    kind: 'EXPORT',
    status: 'PENDING',
    tenant_id: '00000000-0000-0000-0000-000000000000',
    workspace_id: 'ws_000000000000',
    environment_id: 'env_000000000000',
    state_name: 'app',
    state_label: 'app',
    actor: 'zoe',
    subject: 'token:1',
  } as const;

  test('takes an idempotency key once per subject and kind, and any number without one', async () => {
    const prepared = await createTestDatabase();
    try {
      const insert = (values: object) =>
        prepared.database
          .for('record')
          .insertInto('state_archive.operation')
          .values({ ...operation, ...values })
          .execute();
      await insert({ idempotency_key: 'k' });
      await expect(insert({ idempotency_key: 'k' })).rejects.toMatchObject({
        constraint: 'operation_idempotency_key',
      });
      await insert({ idempotency_key: 'k', kind: 'IMPORT' });
      await insert({ idempotency_key: 'k', subject: 'token:2' });
      await insert({});
      await insert({});
    } finally {
      await prepared.drop();
    }
  });
});
