import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import {
  connectDatabase,
  inTransaction,
  microsecondTime,
  TransactionRolledBackError,
} from '../../src/database/connection.ts';
import { DatabaseUnusableError, isUniqueViolation } from '../../src/database/errors.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;
beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());

const insertTenant = (slug: string) => ({ slug, name: slug });
const tenantCount = async (slug: string) => {
  const { rows } = await given.database.pool.query('select from tenants where slug = $1', [slug]);
  return rows.length;
};

describe('values read', () => {
  test('bigint, timestamptz, json and jsonb come back as the text PostgreSQL has', async () => {
    const { rows } = await given.database.pool.query(`
      select 9007199254740993 as big, timestamptz '2026-03-02 11:00:00.000118+01' as time,
        '{"b": 1.50, "a": 12345678901234567890}'::jsonb as binary_json, '{"z":1.0,  "z":2}'::json as json,
        array[9007199254740993] as bigs, array[timestamptz '2026-03-02 10:00:00.000118+00'] as times,
        array['{"a": 1.0}'::jsonb] as jsons`);
    expect(rows).toEqual([
      {
        big: '9007199254740993',
        time: '2026-03-02 10:00:00.000118+00',
        binary_json: '{"a": 12345678901234567890, "b": 1.50}',
        json: '{"z":1.0,  "z":2}',
        bigs: ['9007199254740993'],
        times: ['2026-03-02 10:00:00.000118+00'],
        jsons: ['{"a": 1.0}'],
      },
    ]);
  });

  test('microsecondTime gives RFC 3339 with six digits and leaves NULL alone', async () => {
    const time = (text: string | null) => microsecondTime(sql<string | null>`${text}::timestamptz`);
    const row = await given.database
      .for('record')
      .selectNoFrom([
        time('2026-03-02 12:00:00.000118+02').as('micros'),
        time('2026-03-02 10:00:00+00').as('whole'),
        time('0001-01-01 00:00:00+00').as('early'),
        time(null).as('absent'),
      ])
      .executeTakeFirstOrThrow();
    expect(row).toEqual({
      micros: '2026-03-02T10:00:00.000118Z',
      whole: '2026-03-02T10:00:00.000000Z',
      early: '0001-01-01T00:00:00.000000Z',
      absent: null,
    });
  });

  test('microsecondTime takes the name of a column', async () => {
    const row = await given.database
      .for('record')
      .selectFrom('tenants')
      .select([
        microsecondTime('tenants.created_at').as('created'),
        microsecondTime<string | null>('lifecycle_changed_at').as('changed'),
      ])
      .executeTakeFirstOrThrow();
    expect(row.created).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(row.changed).toBeNull();
  });
});

describe('a transaction', () => {
  test('commits what the work did, through Kysely and through the client alike', async () => {
    await inTransaction(given.database, 'restore', async ({ db, client }) => {
      await db.insertInto('tenants').values(insertTenant('by-kysely')).execute();
      // Seen at once: both are the same connection.
      const { rowCount } = await client.query(
        "update public.tenants set name = 'renamed' where slug = 'by-kysely'",
      );
      expect(rowCount).toBe(1);
    });
    expect(await tenantCount('by-kysely')).toBe(1);
  });

  test('leaves nothing and throws the error of the work when the work throws', async () => {
    const cause = new Error('the work failed');
    await expect(
      inTransaction(given.database, 'restore', async ({ db }) => {
        await db.insertInto('tenants').values(insertTenant('undone')).execute();
        throw cause;
      }),
    ).rejects.toBe(cause);
    expect(await tenantCount('undone')).toBe(0);
  });

  test('whose work swallowed the failure of a statement is not reported as committed', async () => {
    await expect(
      inTransaction(given.database, 'restore', async ({ db, client }) => {
        await db.insertInto('tenants').values(insertTenant('lost')).execute();
        await client.query('select 1 / 0').catch(() => {});
      }),
    ).rejects.toBeInstanceOf(TransactionRolledBackError);
    expect(await tenantCount('lost')).toBe(0);
  });

  test('that only reads sees one state of the database and cannot write', async () => {
    await inTransaction(given.database, 'export', async ({ client }) => {
      const count = async () => (await client.query('select from public.tenants')).rows.length;
      const before = await count();
      await given.database.for('record').insertInto('tenants').values(insertTenant('meanwhile')).execute();
      expect(await count()).toBe(before);
    });
    await expect(
      inTransaction(given.database, 'export', ({ db }) =>
        db.insertInto('tenants').values(insertTenant('forbidden')).execute(),
      ),
    ).rejects.toThrow(DatabaseUnusableError);
  });

  test('whose connection is cut throws that, and the pool goes on with another connection', async () => {
    await expect(
      inTransaction(given.database, 'restore', async ({ db, client }) => {
        await db.insertInto('tenants').values(insertTenant('cut')).execute();
        const { rows } = await client.query('select pg_backend_pid() as pid');
        await Promise.all([
          client.query('select pg_sleep(60)'),
          given.database.pool.query('select pg_terminate_backend($1)', [rows[0].pid]),
        ]);
      }),
    ).rejects.toMatchObject({ reason: 'unreachable', cause: { code: '57P01' } });
    expect(await tenantCount('cut')).toBe(0);
  });
});

describe('a session', () => {
  test('is refused to whoever keeps it past its end', async () => {
    const { db } = await inTransaction(given.database, 'record', async (session) => session);
    await expect(db.selectFrom('tenants').select('id').execute()).rejects.toThrow('session has ended');
  });

  test('that is discarded ends its connection, and the pool opens another', async () => {
    const database = connectDatabase({ connectionString: given.connectionString, maxConnections: 1 });
    try {
      const pid = () => database.pool.query('select pg_backend_pid() as pid').then(({ rows }) => rows[0].pid);
      const first = await pid();
      await inTransaction(database, 'read', async (session) => session.discard(new Error('stuck')));
      expect(await pid()).not.toBe(first);
    } finally {
      await database.close();
    }
  });
});

test('a unique violation is known by its constraint', async () => {
  const error = await given.database
    .for('record')
    .insertInto('tenants')
    .values(insertTenant('self-hosted'))
    .execute()
    .catch((failure: unknown) => failure);
  expect(isUniqueViolation(error)).toBe(true);
  expect(isUniqueViolation(error, 'tenants_slug_key')).toBe(true);
  expect(isUniqueViolation(error, 'states_tenant_name_key')).toBe(false);
  expect(isUniqueViolation(new Error('23505'))).toBe(false);
});
