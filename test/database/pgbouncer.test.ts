import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import pg from 'pg';
import { connectDatabase } from '../../src/database/connection.ts';
import { DeafConnectionError, Listener } from '../../src/database/notifications.ts';
import type { Caller } from '../../src/history/states.ts';
import { type Backend, createCaller, openBackend, runExport } from '../operations/support/backend.ts';
import { postTerraformHistory } from '../operations/support/histories.ts';
import { PGBOUNCER, type Pgbouncer, startPgbouncer } from '../support/pgbouncer.ts';
import { doWholeJob } from './support/whole-job.ts';

const POOL_SIZE = 4;

let backend: Backend;
let caller: Caller;
let digest: string;
let pgbouncer: Pgbouncer;
/** The same database, behind pgbouncer in transaction mode. */
let pooled: string;

/** What another client of the pooler leaves behind on every connection to the server. */
async function leaveSettingsBehind(): Promise<void> {
  await backend.database.pool.query('create schema nowhere');
  const clients = Array.from({ length: POOL_SIZE }, () => new pg.Client({ connectionString: pooled }));
  await Promise.all(clients.map((client) => client.connect()));
  // All at once, so that each has a connection of its own.
  await Promise.all(clients.map((client) => client.query('begin')));
  await Promise.all(
    clients.map((client) =>
      client.query(`set search_path to nowhere; set timezone to 'Asia/Kathmandu';
        set datestyle to 'German'; set statement_timeout to '250ms'; set row_security to on;
        set default_transaction_isolation to 'serializable'`),
    ),
  );
  await Promise.all(clients.map((client) => client.query('commit')));
  await Promise.all(clients.map((client) => client.end()));
}

(PGBOUNCER === undefined ? describe.skip : describe)(
  'behind pgbouncer in transaction mode (skipped without its program)',
  () => {
    beforeAll(async () => {
      backend = await openBackend();
      caller = await createCaller(backend);
      await postTerraformHistory(backend.database, caller, 'app');
      digest = (await runExport(backend, caller, 'app')).archive?.historyDigest ?? '';
      pgbouncer = await startPgbouncer(backend.connectionString, POOL_SIZE);
      pooled = pgbouncer.connectionString;
    });

    afterAll(async () => {
      await pgbouncer.stop();
      await backend.close();
    });

    test('a whole history travels, whatever another client has left behind', async () => {
      await leaveSettingsBehind();
      await doWholeJob(backend, caller, digest, pooled);
    });

    test('reads are answered while transactions go to one connection to the server and another', async () => {
      const database = connectDatabase({ connectionString: pooled });
      try {
        for (let round = 0; round < 20; round += 1) {
          const values = Array.from({ length: 2 * POOL_SIZE }, (_, index) => 100 * round + index);
          const read = (value: number) => sql`select ${value}::int as value`.execute(database.for('read'));
          const answers = await Promise.all(values.map(read));
          expect(answers.map(({ rows }) => rows)).toEqual(values.map((value) => [{ value }]));
        }
      } finally {
        await database.close();
      }
    });

    test('an address of the pooler is told of as one where nothing is heard', async () => {
      const deaf = Promise.withResolvers<unknown>();
      const listener = new Listener({
        database: backend.database,
        directAddress: pooled,
        channel: 'anything',
        onHeard: () => {},
        onDeaf: deaf.resolve,
      });
      expect(await deaf.promise).toBeInstanceOf(DeafConnectionError);
      await listener.close();
    });

    test('nothing is left behind for other clients', async () => {
      const database = connectDatabase({ connectionString: pooled });
      try {
        await database.for('read').selectFrom('states').select('id').execute();
        const names = ['lock_timeout', 'extra_float_digits', 'array_nulls', 'transaction_read_only'];
        const settings = async (client: pg.Pool) => {
          const { rows } = await client.query(
            `select current_setting(name) as value from unnest($1::text[]) name`,
            [names],
          );
          return rows.map(({ value }) => value);
        };
        expect(await settings(database.pool)).toEqual(await settings(backend.database.pool));
      } finally {
        await database.close();
      }
    });
  },
);
