import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { connectDatabase } from '../../src/database/connection.ts';
import { findDatabaseProblem } from '../../src/database/readiness.ts';
import type { Caller } from '../../src/history/states.ts';
import { type Backend, createCaller, openBackend, runExport } from '../operations/support/backend.ts';
import { postTerraformHistory } from '../operations/support/histories.ts';
import { doWholeJob } from './support/whole-job.ts';

let backend: Backend;
let caller: Caller;
/** The history digest of the Terraform history where nothing is set. */
let digest: string;
/** An administrator's connection, which nothing that is set here concerns. */
let admin: pg.Client;

beforeAll(async () => {
  backend = await openBackend();
  caller = await createCaller(backend);
  await postTerraformHistory(backend.database, caller, 'app');
  digest = (await runExport(backend, caller, 'app')).archive?.historyDigest ?? '';
  admin = new pg.Client({ connectionString: backend.connectionString });
  await admin.connect();
});

afterAll(async () => {
  await admin.end();
  await backend.close();
});

const name = () =>
  pg.escapeIdentifier(decodeURIComponent(new URL(backend.connectionString).pathname.slice(1)));

const wholeJob = (connectionString = backend.connectionString) =>
  doWholeJob(backend, caller, digest, connectionString);

describe('a whole history travels whatever is set', () => {
  afterEach(() => admin.query(`alter database ${name()} reset all`));

  test('for the database: time zones, styles, encodings, null arrays, isolation', async () => {
    for (const [setting, value] of [
      ['TimeZone', 'Asia/Kathmandu'],
      ['DateStyle', 'German, DMY'],
      ['IntervalStyle', 'sql_standard'],
      ['extra_float_digits', '-15'],
      ['bytea_output', 'escape'],
      ['client_encoding', 'LATIN1'],
      ['standard_conforming_strings', 'off'],
      ['escape_string_warning', 'off'],
      ['array_nulls', 'off'],
      ['transform_null_equals', 'on'],
      ['default_transaction_isolation', 'serializable'],
      ['default_transaction_deferrable', 'on'],
      ['row_security', 'off'],
      ['search_path', ''],
    ] as const) {
      // PostgreSQL 19 knows no other way to write strings.
      await admin
        .query(`alter database ${name()} set ${setting} to ${pg.escapeLiteral(value)}`)
        .catch((error: Error) => expect(error.message).toContain('standard_conforming_strings'));
    }
    await wholeJob();
  });

  test('for time limits: 300 ms a statement, 50 ms between two, 100 ms a lock', async () => {
    for (const [setting, value] of [
      ['statement_timeout', '300ms'],
      ['idle_in_transaction_session_timeout', '50ms'],
      ['lock_timeout', '100ms'],
    ]) {
      await admin.query(`alter database ${name()} set ${setting} to '${value}'`);
    }
    const database = connectDatabase({ connectionString: backend.connectionString });
    try {
      const slow = database
        .for('read')
        .selectNoFrom((select) => select.fn('pg_sleep', [select.val(0.6)]).as('x'));
      await slow.execute();
    } finally {
      await database.close();
    }
    await wholeJob();
  });

  test('for names: a schema of the role’s own name that holds a table, and a function, for each of Kilolock’s', async () => {
    const { rows } = await admin.query(
      `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`,
    );
    await admin.query('create schema postgres');
    try {
      for (const { name: table } of rows)
        await admin.query(`create table postgres.${table} (like public.${table})`);
      await admin.query(
        `create function postgres.starts_with(text, text) returns boolean language sql return false`,
      );
      await admin.query(`create function postgres.sha256(bytea) returns bytea language sql return ''::bytea`);
      await wholeJob();
      await wholeJob(`${backend.connectionString}?options=-c%20search_path%3Dpostgres,pg_catalog`);
      for (const { name: table } of rows) {
        expect((await admin.query(`select from postgres.${table}`)).rowCount).toBe(0);
      }
    } finally {
      await admin.query('drop schema postgres cascade');
    }
  });
});

describe('rows that a policy hides from the role are never left out:', () => {
  const role = `hidden_${process.pid}`;
  const as = () => {
    const url = new URL(backend.connectionString);
    url.username = role;
    url.password = 'x';
    return url.href;
  };

  beforeAll(async () => {
    await admin.query(`create role ${role} login password 'x'`);
    for (const schema of ['public', 'state_archive']) {
      await admin.query(`grant usage on schema ${schema} to ${role}`);
      await admin.query(`grant all on all tables in schema ${schema} to ${role}`);
    }
    await admin.query(`alter table state_version_tags enable row level security;
      create policy p on state_version_tags using (tag <> 'ab') with check (true)`);
  });

  afterAll(async () => {
    await admin.query(
      'alter table state_version_tags disable row level security; drop policy p on state_version_tags',
    );
    await admin.query(`drop owned by ${role}; drop role ${role}`);
  });

  test('the service says so in one line, and an export fails', async () => {
    const database = connectDatabase({ connectionString: as() });
    try {
      const problem = await findDatabaseProblem(database);
      expect(problem).toMatch(
        /^Row-level security would hide rows of public\.state_version_tags from the role hidden_/,
      );
      const operation = await runExport(backend, { ...caller, database }, 'app');
      expect(operation.status).toBe('FAILED');
      expect(operation.archive).toBeNull();
    } finally {
      await database.close();
    }
  });
});
