import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type pg from 'pg';
import { type DatabaseSession, inTransaction } from '../../src/database/connection.ts';
import { DatabaseUnavailableError } from '../../src/database/errors.ts';
import { askWithLongValue, type PrintedRow } from '../../src/database/long-value.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;
beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());

const within = <T>(work: (session: DatabaseSession) => Promise<T>): Promise<T> =>
  inTransaction(given.database, 'print', work);
async function rowsOf(session: DatabaseSession, text: string, value: Uint8Array): Promise<PrintedRow[]> {
  const rows: PrintedRow[] = [];
  await askWithLongValue(session, text, value, (row) => rows.push(row));
  return rows;
}
/** Of no length that a piece has. */
const LONG = Buffer.alloc(20 * 1024 * 1024 + 7);
for (let at = 0; at < LONG.length; at += 4001) LONG[at] = at % 251;

test.each([
  ['of no byte', Buffer.alloc(0)],
  ['of a byte', Buffer.from([7])],
  ['of many pieces', LONG],
])('a value %s arrives as it is', async (_length, value) => {
  const rows = await within((session) => rowsOf(session, `select encode(sha256($1), 'hex')`, value));
  expect(rows).toEqual([[createHash('sha256').update(value).digest('hex')]]);
});

test('rows come one by one, as PostgreSQL prints them', async () => {
  const text = 'select octet_length($1::bytea), nullif(at, 2) from generate_series(1, 3) at';
  const rows = await within((session) => rowsOf(session, text, LONG));
  expect(rows).toEqual(['1', null, '3'].map((at) => [String(LONG.length), at]));
});

test.each([
  ['before the value was read', 'select nothing($1)', '42883'],
  ['by the value', `select convert_from($1, 'UTF8')::jsonb::text`, '22021'],
])('a statement that fails %s says why, and the session goes on', async (_when, text, code) => {
  const answer = await within(async (session) => {
    const { client } = session;
    await client.query('savepoint before');
    const failure = await rowsOf(session, text, LONG).catch((error: unknown) => error as pg.DatabaseError);
    await client.query('rollback to before');
    return ['code' in failure && failure.code, (await client.query('select 1 as one')).rows[0].one];
  });
  expect(answer).toEqual([code, 1]);
});

test('a connection that is lost while a value is on its way is told, and nobody waits for ever', async () => {
  const asking = within(async (session) => {
    const { rows } = await session.client.query('select pg_backend_pid() as pid');
    const answer = rowsOf(session, 'select sha256($1) from pg_sleep(600)', LONG);
    await given.database.pool.query('select pg_terminate_backend($1)', [rows[0].pid]);
    return answer;
  });
  await expect(asking).rejects.toBeInstanceOf(DatabaseUnavailableError);
});
