import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connectDatabase, type KilolockDatabase } from '../../src/database/connection.ts';
import { prepareControlDatabase } from '../../src/database/prepare.ts';
import { findDatabaseProblem, NEEDED_RIGHTS, refuseUnusableDatabase } from '../../src/database/readiness.ts';
import type { Caller } from '../../src/history/states.ts';
import { OperationQueue } from '../../src/operations/operation-queue.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  runExport,
  runImport,
} from '../operations/support/backend.ts';
import { postTerraformHistory } from '../operations/support/histories.ts';

const OWNER = `kilolock_${process.pid}`;
const SERVICE = `service_${process.pid}`;
const PASSWORD = 'a long one';

/** The SQL that an owner runs, with a role of this test's own. */
const rights = readFileSync(new URL('../../docs/rights.sql', import.meta.url), 'utf8').replaceAll(
  'state_archive_service',
  SERVICE,
);

let backend: Backend;
let caller: Caller;
let service: KilolockDatabase;

function as(role: string): KilolockDatabase {
  const url = new URL(backend.connectionString);
  url.username = role;
  url.password = PASSWORD;
  return connectDatabase({ connectionString: url.href, maxConnections: 4 });
}

const asAdministrator = (statement: string) => backend.database.pool.query(statement);

beforeAll(async () => {
  backend = await openBackend();
  caller = await createCaller(backend);
  // A database as Kilolock leaves it: its tables belong to a role that is no superuser, and nothing of ours is there.
  await asAdministrator(`
    drop schema state_archive, state_archive_queue cascade;
    create role ${OWNER} login createrole password '${PASSWORD}';
    do $$ begin
      execute format('grant create on database %I to ${OWNER}', current_database());
      execute (select string_agg(format('alter table public.%I owner to ${OWNER};', relname), ' ')
        from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v'));
      alter schema public owner to ${OWNER};
    end $$`);
  service = as(SERVICE);
});

afterAll(async () => {
  await service.close();
  for (const role of [SERVICE, OWNER])
    await asAdministrator(`drop owned by ${role} cascade; drop role ${role}`);
  await backend.close();
});

test('with the rights of docs/rights.sql the owner migrates, and the service does its whole work', async () => {
  const owner = as(OWNER);
  try {
    // The second time as with a later release.
    await owner.pool.query(rights);
    await owner.pool.query(rights);
    await owner.pool.query(`alter role ${SERVICE} password '${PASSWORD}'`);
    await expect(prepareControlDatabase(service)).rejects.toThrow(
      /^The schema state_archive is not up to date, .* Run "npm run migrate" as its owner first\./,
    );
    await prepareControlDatabase(owner);
  } finally {
    await owner.close();
  }
  await prepareControlDatabase(service);
  await refuseUnusableDatabase(service);

  const who = { ...caller, database: service };
  await postTerraformHistory(service, who, 'app');
  const exported = await runExport(backend, who, 'app');
  const archive = archivePath(backend, exported);
  const { historyDigest } = exported.archive ?? {};
  for (const input of [
    { label: 'other', allowSharedLineage: true, dryRun: true },
    { label: 'other', allowSharedLineage: true },
    { onConflict: { kind: 'ARCHIVED_COPY' as const } },
    {
      onConflict: { kind: 'OVERWRITE' as const, confirmName: 'app', expectedCurrentSerial: 10n },
      allowSharedLineage: true,
    },
  ]) {
    const operation = await runImport(backend, who, archive, input);
    expect(operation).toMatchObject({ status: 'SUCCEEDED', archive: { historyDigest } });
  }
});

test('with the rights of the page the queue does all that is asked of it', async () => {
  const queue = new OperationQueue(service);
  const operation = { id: randomUUID(), environment: { workspace: 'ws', environment: 'env' } };
  await queue.send([operation]);
  await queue.send([operation]);
  const [job, ...others] = await queue.take(10);
  expect(others).toEqual([]);
  expect(job).toMatchObject(operation);
  if (job === undefined) return;
  await queue.hold([job]);
  await queue.putBackAbandoned();
  expect(await queue.take(10)).toEqual([]);
  await queue.putBack(job);
  // Whoever held it before is not heard any more.
  await service.pool.query('update state_archive_queue.job set start_after = now()');
  const [again] = await queue.take(10);
  expect(again).toMatchObject(operation);
  await queue.remove(job);
  await queue.putBackAbandoned();
  expect(await service.pool.query('select state from state_archive_queue.job')).toMatchObject({
    rows: [{ state: 'active' }],
  });
  await queue.remove(again ?? job);
  expect((await service.pool.query('select from state_archive_queue.job')).rows).toEqual([]);
});

describe('the rights of the page', () => {
  test('on Kilolock’s tables are those that are needed, and no others', async () => {
    const { rows } = await backend.database.pool.query<{ name: string; rights: string[] }>(
      `select table_schema || '.' || table_name as name, array_agg(privilege_type::text) as rights
       from information_schema.role_table_grants where grantee = $1 and table_schema = 'public' group by 1`,
      [SERVICE],
    );
    const granted = rows.map(({ name, rights }) => [name, rights.sort()]);
    const needed = Object.entries(NEEDED_RIGHTS)
      .filter(([name]) => name.startsWith('public.'))
      .map(([name, rights]) => [name, [...rights].sort()]);
    expect(granted.sort()).toEqual(needed.sort());
  });

  test('are each asked for by name when they are missing', async () => {
    for (const [table, rights] of Object.entries(NEEDED_RIGHTS)) {
      for (const right of rights) {
        await asAdministrator(`revoke ${right} on ${table} from ${SERVICE}`);
        expect(await findDatabaseProblem(service)).toBe(
          `The role ${SERVICE} lacks ${right} on ${table}. docs/rights.sql grants what the service needs.`,
        );
        await asAdministrator(`grant ${right} on ${table} to ${SERVICE}`);
      }
    }
    for (const schema of ['public', 'state_archive', 'state_archive_queue']) {
      await asAdministrator(`revoke usage on schema ${schema} from ${SERVICE}, public`);
      expect(await findDatabaseProblem(service)).toContain(`lacks USAGE on schema ${schema}`);
      await asAdministrator(`grant usage on schema ${schema} to ${SERVICE}`);
    }
    expect(await findDatabaseProblem(service)).toBeNull();
  });
});

test('a release starts on a database that a later one has migrated', async () => {
  await asAdministrator(
    `insert into state_archive.kysely_migration (name, timestamp) values ('9999-of-a-later-release', '2030-01-01T00:00:00.000Z')`,
  );
  await prepareControlDatabase(service);
  await prepareControlDatabase(backend.database);
  await refuseUnusableDatabase(service);
});

test('a database that stands still by its administrator’s wish is told in one line, and written to by nobody', async () => {
  await asAdministrator(`alter role ${SERVICE} set default_transaction_read_only to on`);
  const readOnly = as(SERVICE);
  try {
    expect(await findDatabaseProblem(readOnly)).toMatch(/^default_transaction_read_only is on /);
    await expect(
      readOnly.for('record').insertInto('tenants').values({ slug: 'no', name: 'no' }).execute(),
    ).rejects.toThrow(
      /^The database does not let this service work: cannot execute INSERT in a read-only transaction\./,
    );
  } finally {
    await readOnly.close();
    await asAdministrator(`alter role ${SERVICE} reset default_transaction_read_only`);
  }
});
