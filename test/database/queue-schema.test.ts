import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connectDatabase } from '../../src/database/connection.ts';
import { isPrepared, prepareControlDatabase, prepareDatabase } from '../../src/database/prepare.ts';
import { hasQueue, openBoss, QUEUE_SCHEMA_VERSION } from '../../src/database/queue-schema.ts';
import { createKilolockTables } from '../../src/development/kilolock-tables.ts';
import { createEmptyTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;

beforeAll(async () => {
  given = await createEmptyTestDatabase();
  await createKilolockTables(given.database);
});
afterAll(() => given.drop());

describe('the queue', () => {
  test('is made once by many replicas that start at the same moment, and then left as it is', async () => {
    const replicas = [1, 2, 3].map(() => connectDatabase({ connectionString: given.connectionString }));
    try {
      await prepareDatabase(given.database);
      expect(await isPrepared(given.database)).toBe(false);
      await Promise.all(replicas.map((replica) => prepareControlDatabase(replica)));
      expect(await isPrepared(given.database)).toBe(true);
      expect(await openBoss(given.database).schemaVersion()).toBe(QUEUE_SCHEMA_VERSION);
      await prepareControlDatabase(given.database);
    } finally {
      await Promise.all(replicas.map((replica) => replica.close()));
    }
  });

  test('of a later release is one to work with', async () => {
    const { pool } = given.database;
    await pool.query('update state_archive_queue.version set version = version + 1');
    expect(await hasQueue(given.database.for('read'))).toBe(true);
    await prepareControlDatabase(given.database);
    await pool.query('update state_archive_queue.version set version = version - 1');
  });

  test('of an earlier release, or one that is not there, is not', async () => {
    const { pool } = given.database;
    await pool.query('update state_archive_queue.version set version = version - 1');
    expect(await hasQueue(given.database.for('read'))).toBe(false);
    await pool.query('update state_archive_queue.version set version = version + 1');
    await pool.query('delete from state_archive_queue.queue');
    expect(await isPrepared(given.database)).toBe(false);
    await prepareControlDatabase(given.database);
    expect(await isPrepared(given.database)).toBe(true);
  });
});
