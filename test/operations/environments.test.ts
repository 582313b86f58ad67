import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pino from 'pino';
import { loadOrCreateLinkSigner } from '../../src/auth/links.ts';
import type { KilolockDatabase } from '../../src/database/connection.ts';
import { EnvironmentDatabases } from '../../src/database/environment-databases.ts';
import { archiveKeyOf } from '../../src/operations/archive-keys.ts';
import { DownloadAccesses, openArchive } from '../../src/operations/downloads.ts';
import { Environments } from '../../src/operations/environments.ts';
import { removeExpiredArchives, sweepStore } from '../../src/operations/housekeeping.ts';
import { type ArchiveStore, openArchiveStore } from '../../src/store/archive-store.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const WORKSPACE = 'ws_acme';
const logger = pino({ level: 'silent' });
const SHARED = { workspace: WORKSPACE, environment: 'env_shared' };
const FIRST = { workspace: WORKSPACE, environment: 'env_first' };
const SECOND = { workspace: WORKSPACE, environment: 'env_second' };

let control: TestDatabase;
let first: TestDatabase;
let second: TestDatabase;
let tenantId: string;
let own: EnvironmentDatabases;
let environments: Environments;

beforeAll(async () => {
  [control, first, second] = await Promise.all([
    createTestDatabase(),
    createTestDatabase(),
    createTestDatabase(),
  ]);
  const { rows } = await control.database.pool.query<{ id: string }>(
    `insert into tenants (workspace_id, slug, name, max_state_resources) values ($1, 'acme', 'Acme', 7) returning id`,
    [WORKSPACE],
  );
  tenantId = rows[0]?.id ?? '';
  for (const [{ environment }, dsn] of [
    [SHARED, ''],
    [FIRST, first.connectionString],
    [SECOND, second.connectionString],
  ] as const) {
    await control.database.pool.query(
      'insert into environments (tenant_id, env_public_id, slug, database_dsn) values ($1, $2, $2, $3)',
      [tenantId, environment, dsn],
    );
  }
});
beforeEach(() => {
  own = new EnvironmentDatabases({ maxDatabases: 2, maxConnectionsEach: 2, onOpened: async () => {} });
  environments = new Environments(control.database, own);
});
afterEach(() => own.close());
afterAll(() => Promise.all([control, first, second].map((each) => each.drop())));

async function nameOf(database: KilolockDatabase | undefined): Promise<string> {
  const { rows } = (await database?.pool.query('select current_database() as name')) ?? { rows: [] };
  return rows[0]?.name ?? '';
}

const nameIn = ({ connectionString }: TestDatabase) => new URL(connectionString).pathname.slice(1);

async function tenantIn({ database }: TestDatabase) {
  const { rows } = await database.pool.query(
    'select slug, name, lifecycle_status from tenants where id = $1',
    [tenantId],
  );
  return rows;
}

describe('an environment', () => {
  test('without a database of its own has its states in the control database, apart by their prefix', async () => {
    const opened = await environments.open(SHARED);
    expect(opened?.database).toBe(control.database);
    expect(opened?.namespace).toMatchObject({
      ...SHARED,
      tenantId,
      hasOwnDatabase: false,
      namePrefix: 'ws_acme/env_shared/',
    });
    expect(environments.openDatabases).toEqual([control.database]);
  });

  test('with one has them there, and what is known of it is known from the control database', async () => {
    const opened = await environments.open(FIRST);
    expect(await nameOf(opened?.database)).toBe(nameIn(first));
    expect(opened?.namespace).toEqual({
      ...FIRST,
      tenantId,
      tenantSlug: 'acme',
      tenantName: 'Acme',
      namePrefix: 'ws_acme/env_first/',
      hasOwnDatabase: true,
      lockDefault: 'auto',
      quota: { perState: 7, perEnvironment: 0 },
    });
    expect(environments.openDatabases).toEqual([control.database, opened?.database]);
  });

  test('shows its connection string to nobody who opens it', async () => {
    const opened = await environments.open(FIRST);
    expect(JSON.stringify(opened?.namespace)).not.toContain(nameIn(first));
  });

  test('finds its tenant’s row made in its database, and one that is there left as it is', async () => {
    await second.database.pool.query(`delete from tenants where id = $1`, [tenantId]);
    await environments.open(SECOND);
    expect(await tenantIn(second)).toEqual([{ slug: 'acme', name: 'Acme', lifecycle_status: 'active' }]);
    await second.database.pool.query(`update tenants set name = 'Older Acme' where id = $1`, [tenantId]);
    await new Environments(control.database, own).open(SECOND);
    expect(await tenantIn(second)).toEqual([
      { slug: 'acme', name: 'Older Acme', lifecycle_status: 'active' },
    ]);
  });

  test('that is given another database has its states there from the next time on', async () => {
    const { pool } = control.database;
    const move = (dsn: string) =>
      pool.query('update environments set database_dsn = $1 where env_public_id = $2', [
        dsn,
        FIRST.environment,
      ]);
    expect(await nameOf((await environments.open(FIRST))?.database)).toBe(nameIn(first));
    await move(second.connectionString);
    expect(await nameOf((await environments.open(FIRST))?.database)).toBe(nameIn(second));
    await move(first.connectionString);
    expect(await nameOf((await environments.open(FIRST))?.database)).toBe(nameIn(first));
  });

  test.each([
    ['of another workspace', { workspace: 'ws_000000000000', environment: FIRST.environment }],
    ['that does not exist', { workspace: WORKSPACE, environment: 'env_absent' }],
    ['whose name is a pattern', { workspace: WORKSPACE, environment: 'env_firs_' }],
    ['with the credential’s own name for none', { workspace: '', environment: '' }],
  ])('%s is none, and nothing is opened for it', async (_name, selector) => {
    expect(await environments.open(selector)).toBeNull();
    expect(environments.openDatabases).toEqual([control.database]);
  });
});

describe('the archives of environments', () => {
  let directory: string;
  let store: ArchiveStore;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'state-archive-environments-'));
    store = await openArchiveStore({ kind: 'file', directory: join(directory, 'store') });
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const isKept = async (id: string) => (await store.archives.sizeOf(archiveKeyOf(id, 1))) !== null;

  /** Records an export that succeeded, and keeps a file for it. */
  async function keepArchive(
    { database }: TestDatabase,
    environment: string,
    expires: string,
  ): Promise<string> {
    const id = randomUUID();
    await database.pool.query(
      `insert into state_archive.operation (id, kind, status, tenant_id, workspace_id, environment_id, state_name,
         state_label, actor, subject, expires_at, archive_sha256, archive_size_bytes, archive_history_digest,
         archive_file_name, archive_object_key)
       values ($1, 'EXPORT', 'SUCCEEDED', $2, $3, $4, 'x', 'x', 'ann', 'ann', now() + $5::interval,
         sha256('a'), 4, sha256('h'), 'x.klstate', $6)`,
      [id, tenantId, WORKSPACE, environment, expires, archiveKeyOf(id, 1)],
    );
    await writeFile(join(directory, 'store', 'archives', archiveKeyOf(id, 1)), 'file');
    return id;
  }

  test('are removed when their time is past, and those of others too when one database cannot be asked', async () => {
    const past = await keepArchive(second, SECOND.environment, '-1 second');
    const kept = await keepArchive(second, SECOND.environment, '1 hour');
    await environments.open(FIRST);
    await environments.open(SECOND);
    await first.database.pool.query('alter table state_archive.operation rename to gone');
    try {
      await expect(removeExpiredArchives({ environments, logger, store })).rejects.toBeInstanceOf(
        AggregateError,
      );
    } finally {
      await first.database.pool.query('alter table state_archive.gone rename to operation');
    }
    expect([await isKept(past), await isKept(kept)]).toEqual([false, true]);
    await removeExpiredArchives({ environments, logger, store });
    expect(await isKept(kept)).toBe(true);
  });

  test('stay while their database cannot be asked, however old they are', async () => {
    const kept = await keepArchive(second, SECOND.environment, '1 hour');
    const longAgo = new Date(Date.now() - 7_200_000);
    await utimes(join(directory, 'store', 'archives', archiveKeyOf(kept, 1)), longAgo, longAgo);
    await environments.open(SECOND);
    const sweep = () => sweepStore({ environments, logger, store, retentionSeconds: 1 }, 'archives', '');
    await second.database.pool.query('alter table state_archive.operation rename to gone');
    try {
      await expect(sweep()).rejects.toBeInstanceOf(AggregateError);
    } finally {
      await second.database.pool.query('alter table state_archive.gone rename to operation');
    }
    expect(await isKept(kept)).toBe(true);
    await sweep();
    expect(await isKept(kept)).toBe(true);
  });

  test('are found by a link of their own environment, and by one that names another not at all', async () => {
    const links = await loadOrCreateLinkSigner(directory);
    const id = await keepArchive(first, FIRST.environment, '1 hour');
    const linkFor = (where: { workspace: string; environment: string }) =>
      links.sign({
        purpose: 'download',
        resourceId: id,
        subject: 'ann',
        token: null,
        expiresInSeconds: 60,
        ...where,
      });
    const open = async (where: { workspace: string; environment: string }) =>
      openArchive(
        { environments, links, store, accesses: new DownloadAccesses(), readCredential: async () => null },
        id,
        await linkFor(where),
        'request-1',
      );
    expect(await open(FIRST)).toMatchObject({ fileName: 'x.klstate' });
    for (const where of [SECOND, SHARED, { ...FIRST, workspace: 'ws_other' }])
      expect(await open(where)).toBeNull();
  });
});
