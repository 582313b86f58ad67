import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { connectDatabase, type KilolockDatabase } from '../../src/database/connection.ts';
import { administer, onDatabase, type TestServerAddress } from './test-server.ts';

/** A database of one test file's own. */
export interface TestDatabase {
  readonly database: KilolockDatabase;
  readonly connectionString: string;
  /** Closes `database` and drops it. Call it in `afterAll`. */
  drop(): Promise<void>;
}

/** Creates a database with Kilolock's tables, the self-hosted tenant and the schema `state_archive`, and no states. */
export async function createTestDatabase(): Promise<TestDatabase> {
  return createDatabase(testServer().template);
}

/** Creates a database without any tables. */
export async function createEmptyTestDatabase(): Promise<TestDatabase> {
  return createDatabase('template0');
}

async function createDatabase(template: string): Promise<TestDatabase> {
  const { administration } = testServer();
  const name = `state_archive_test_${randomBytes(8).toString('hex')}`;
  await administer(
    administration,
    `create database ${pg.escapeIdentifier(name)} template ${pg.escapeIdentifier(template)}`,
  );
  const connectionString = onDatabase(administration, name);
  const database = connectDatabase({ connectionString });
  return {
    database,
    connectionString,
    async drop() {
      await database.close();
      await administer(administration, `drop database ${pg.escapeIdentifier(name)} with (force)`);
    },
  };
}

function testServer(): TestServerAddress {
  const address = process.env.STATE_ARCHIVE_TEST_SERVER;
  if (address === undefined)
    throw new Error('No test server: tests run under the globalSetup of jest.config.js.');
  return JSON.parse(address) as TestServerAddress;
}
