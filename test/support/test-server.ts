import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { connectDatabase } from '../../src/database/connection.ts';
import { prepareControlDatabase } from '../../src/database/prepare.ts';
import { type EmbeddedServer, startEmbeddedServer } from '../../src/development/embedded-server.ts';
import { createKilolockTables } from '../../src/development/kilolock-tables.ts';

/** What the test processes need to know of the server, passed on in the environment variable `STATE_ARCHIVE_TEST_SERVER`. */
export interface TestServerAddress {
  /** A PostgreSQL URI of a database from which others can be created. */
  readonly administration: string;
  /** A prepared database without connections. */
  readonly template: string;
}

/** The server of one test run. */
export interface TestServer {
  readonly address: TestServerAddress;
  stop(): Promise<void>;
}

/** The same server, another database. */
export function onDatabase(connectionString: string, database: string): string {
  const url = new URL(connectionString);
  url.pathname = `/${encodeURIComponent(database)}`;
  return url.href;
}

/** Runs one statement of administration. */
export async function administer(administration: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: administration });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/**
 * The server of this test run, with a template database prepared on it: an embedded one under the system's temporary
 * directory, or the one that `TEST_DATABASE_URL` names.
 */
export async function startTestServer(): Promise<TestServer> {
  const given = process.env.TEST_DATABASE_URL;
  return given === undefined ? startEmbedded() : useGiven(given);
}

async function startEmbedded(): Promise<TestServer> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'state-archive-test-'));
  const removeDirectory = () => rm(dataDirectory, { recursive: true, force: true });
  let server: EmbeddedServer;
  try {
    server = await startEmbeddedServer({ dataDirectory, durable: false });
  } catch (error) {
    await removeDirectory();
    throw error;
  }
  const address = { administration: server.connectionString('postgres'), template: 'prepared' };
  await createTemplate(address);
  return {
    address,
    async stop() {
      await server.stop();
      await removeDirectory();
    },
  };
}

async function useGiven(administration: string): Promise<TestServer> {
  const address = { administration, template: `state_archive_test_template_${process.pid}_${Date.now()}` };
  await createTemplate(address);
  return {
    address,
    stop: () =>
      administer(administration, `drop database ${pg.escapeIdentifier(address.template)} with (force)`),
  };
}

async function createTemplate({ administration, template }: TestServerAddress): Promise<void> {
  await administer(administration, `create database ${pg.escapeIdentifier(template)}`);
  const database = connectDatabase({ connectionString: onDatabase(administration, template) });
  try {
    await createKilolockTables(database);
    await prepareControlDatabase(database);
  } finally {
    await database.close();
  }
}
