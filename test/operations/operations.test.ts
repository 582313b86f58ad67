import { randomBytes, randomUUID } from 'node:crypto';
import { readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { tarHeader } from '../../src/archive/tar.ts';
import { verifyKilolockCredential } from '../../src/auth/kilolock-credentials.ts';
import type { Caller } from '../../src/history/states.ts';
import { archiveKeyOf } from '../../src/operations/archive-keys.ts';
import { downloadUrl, openArchive } from '../../src/operations/downloads.ts';
import { removeExpiredArchives, sweepStore } from '../../src/operations/housekeeping.ts';
import { importStateArchive } from '../../src/operations/import-state-archive.ts';
import { findExports } from '../../src/operations/operation-lifecycle.ts';
import {
  findLastSuccesses,
  listVersionMapping,
  searchOperations,
} from '../../src/operations/operation-records.ts';
import { UploadsInFlight } from '../../src/operations/uploads-in-flight.ts';
import { createApiToken } from '../auth/support/kilolock-tenancy.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import { countRows, readStateRows } from '../support/state-rows.ts';
import {
  archiveOfOthers,
  archivePath,
  type Backend,
  createCaller,
  ended,
  nothingUnderWay,
  openBackend,
  operationOf,
  POLICIES,
  refusalOf,
  runExport,
  runImport,
  stateIdOf,
  storedFiles,
  withPrincipal,
} from './support/backend.ts';
import { post, postAnnotatedHistory } from './support/histories.ts';
import { interceptQueries } from './support/intercept-queries.ts';

let backend: Backend;
let caller: Caller;
let archive: string;

beforeAll(async () => {
  backend = await openBackend();
  archive = await archiveOfOthers(backend, 'demo/network', postAnnotatedHistory);
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

const [firstDocument = '', secondDocument = ''] = loadTerraformHistory().map(({ document }) => document);

/** A promise that somebody else settles. */
function gate(): { opened: Promise<void>; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** The first statement of the transaction that puts an export on record. */
function beginsRecord(statement: string): boolean {
  return statement.includes('insert into state_archive.version_digest');
}

async function eventsOf(kind: string, tenantId = caller.namespace.tenantId) {
  const { rows } = await backend.database.pool.query<{
    actor: string;
    state_id: string | null;
    serial: string | null;
    payload: string;
  }>(
    `select actor, events.state_id, version.serial, payload from events
     left join state_versions version on version.id = state_version_id
     where kind = $1 and events.tenant_id = $2 order by events.created_at, events.id`,
    [kind, tenantId],
  );
  return rows.map((row) => ({ ...row, payload: JSON.parse(row.payload) as Record<string, unknown> }));
}

describe('an export', () => {
  test('tells what it made: digests, size, a file name, how far it went and until when it is kept', async () => {
    await post(backend.database, caller, 'prod/näch ster:Halt', firstDocument);
    const operation = await runExport(backend, caller, 'prod/näch ster:Halt');
    const bytes = await readFile(archivePath(backend, operation));
    expect(operation).toMatchObject({
      kind: 'EXPORT',
      status: 'SUCCEEDED',
      label: 'prod/näch ster:Halt',
      actor: 'Zoë Öst',
      subject: caller.principal.subject,
      progress: { versionsDone: 1n, versionsTotal: 1n },
      archive: { sizeBytes: BigInt(bytes.length), fileName: 'prod-näch-ster-Halt-1.klstate' },
      report: null,
      error: null,
    });
    expect(operation.progress.bytesDone).toBe(operation.progress.bytesTotal);
    expect(operation.startedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    const times = [operation.createdAt, operation.startedAt, operation.finishedAt, operation.expiresAt];
    expect(times.toSorted()).toEqual(times);
  });

  test('is on record in the events: who, of what, with which digests', async () => {
    const { stateId } = await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, caller, 'app');
    expect(await eventsOf('state_export')).toEqual([
      {
        actor: 'Zoë Öst',
        state_id: stateId,
        serial: '1',
        payload: {
          outcome: 'succeeded',
          archive_format: 'kilolock-state-archive/v1',
          archive_digest: operation.archive?.sha256,
          archive_id: operation.id,
          history_digest: operation.archive?.historyDigest,
          versions: 1,
          tags: 0,
          current_serial: '1',
          label: 'app',
          principal: caller.principal.subject,
          request_id: 'request-1',
        },
      },
    ]);
  });

  test('that fails is on record too, and leaves no file', async () => {
    const { rows } = await backend.database.pool.query(
      'insert into states (tenant_id, name) values ($1, $2) returning id',
      [caller.namespace.tenantId, `${caller.namespace.namePrefix}shell`],
    );
    const files = await storedFiles(backend);
    const operation = await runExport(backend, caller, 'shell');
    expect(operation).toMatchObject({ status: 'FAILED', archive: null, error: { code: 'STATE_EMPTY' } });
    expect(await eventsOf('state_export')).toMatchObject([
      {
        state_id: rows[0].id,
        serial: null,
        payload: { outcome: 'failed', error: 'STATE_EMPTY', archive_id: operation.id },
      },
    ]);
    expect(await storedFiles(backend)).toEqual(files);
  });

  test('of a state that is deleted before its turn comes fails with STATE_NOT_FOUND', async () => {
    const { stateId } = await post(backend.database, caller, 'app', firstDocument);
    const release = backend.holdQueue();
    const pending = await runExport(backend, caller, 'app', { waitSeconds: 0 });
    await backend.database.pool.query('delete from states where id = $1', [stateId]);
    release();
    await ended(backend.services, caller, pending.id);
    expect(await operationOf(backend, caller, pending.id)).toMatchObject({
      status: 'FAILED',
      error: { code: 'STATE_NOT_FOUND' },
    });
    expect(await eventsOf('state_export')).toMatchObject([
      { state_id: null, payload: { outcome: 'failed' } },
    ]);
  });

  test('of a state that is deleted while it is written is whole, and its event names no state', async () => {
    const { stateId } = await post(backend.database, caller, 'app', firstDocument);
    const database = interceptQueries(backend.database, async (statement) => {
      if (!beginsRecord(statement)) return;
      await backend.database.pool.query('delete from states where id = $1', [stateId]);
    });
    const operation = await runExport(backend, { ...caller, database }, 'app');
    expect(operation).toMatchObject({ status: 'SUCCEEDED', error: null });
    expect(await eventsOf('state_export')).toMatchObject([
      { state_id: null, serial: null, payload: { outcome: 'succeeded' } },
    ]);
  });

  test('whose success cannot be recorded leaves neither archive nor digests', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const files = await storedFiles(backend);
    const before = (await countRows(backend.database))['state_archive.version_digest'];
    let isRecord = false;
    const database = interceptQueries(backend.database, (statement) => {
      if (beginsRecord(statement)) isRecord = true;
      if (isRecord && statement === 'commit') throw new pg.DatabaseError('no commit', 0, 'error');
    });
    expect(await runExport(backend, { ...caller, database }, 'app')).toMatchObject({
      status: 'FAILED',
      error: { code: 'INTERNAL' },
    });
    expect(await storedFiles(backend)).toEqual(files);
    expect((await countRows(backend.database))['state_archive.version_digest']).toBe(before);
  });

  test.each([
    ['nothing a file name takes', '::', 'state-1.klstate'],
    ['dots in front', 'a/..hidden', 'a-..hidden-1.klstate'],
    ['more letters than a file name takes', 'é'.repeat(300), `${'é'.repeat(100)}-1.klstate`],
    ['more letters beyond the basic plane', `a${'𝐀'.repeat(100)}`, `a${'𝐀'.repeat(49)}-1.klstate`],
  ])('of a label with %s still has a file name', async (_what, label, fileName) => {
    await post(backend.database, caller, label, firstDocument);
    expect((await runExport(backend, caller, label)).archive?.fileName).toBe(fileName);
    expect(Buffer.byteLength(fileName)).toBeLessThanOrEqual(255);
  });
});

describe('a dry run', () => {
  test('reports what the import then does, and writes nothing', async () => {
    const before = await countRows(backend.database, ['public']);
    const dry = await runImport(backend, caller, archive, { dryRun: true });
    expect(dry).toMatchObject({ status: 'SUCCEEDED', stateId: null, report: { dryRun: true } });
    expect(await countRows(backend.database, ['public'])).toEqual(before);
    expect(
      await listVersionMapping(backend.database.for('record'), dry.id, { after: null, limit: 100 }),
    ).toEqual([]);

    const real = await runImport(backend, caller, archive);
    expect({ ...real.report, dryRun: true }).toEqual(dry.report);
    const rows = await readStateRows(backend.database, stateIdOf(real));
    expect(real.report).toMatchObject({
      name: 'demo/network',
      sourceName: 'demo/network',
      versions: rows.state_versions?.length,
      tags: rows.state_version_tags?.length,
      // The event of the import itself is one more.
      events: (rows.events?.length ?? 0) - 1,
      resourceSpans: rows.resources?.length,
      outputs: rows.outputs?.length,
      warnings: [],
    });
    expect(real.progress).toMatchObject({ versionsDone: 10n, bytesDone: real.report?.rawBytes });
  });

  test('is refused where the import would be', async () => {
    await runImport(backend, caller, archive);
    const refusal = await refusalOf(runImport(backend, caller, archive, { dryRun: true }));
    expect(refusal.code).toBe('STATE_ALREADY_EXISTS');
  });
});

test('an import keeps which version became which, by serial, a page at a time', async () => {
  const operation = await runImport(backend, caller, archive);
  const { pool } = backend.database;
  const db = backend.database.for('read');
  const mapping = await listVersionMapping(db, operation.id, { after: null, limit: 100 });
  expect(mapping.map(({ serial }) => serial)).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n, 10n]);
  const { rows } = await pool.query('select id from state_versions where state_id = $1 order by serial', [
    operation.stateId,
  ]);
  expect(mapping.map(({ versionId }) => versionId)).toEqual(rows.map((row) => row.id));
  const sources = await pool.query('select count(*)::int as count from state_versions where id = any($1)', [
    mapping.map(({ sourceVersionId }) => sourceVersionId),
  ]);
  expect(sources.rows).toEqual([{ count: 10 }]);
  expect(await listVersionMapping(db, operation.id, { after: 3n, limit: 2 })).toEqual(mapping.slice(3, 5));
});

test('a report that only a later release can tell takes no list with it', async () => {
  const told = await runImport(backend, caller, archive);
  const untold = await runImport(backend, caller, archive, { label: 'another', allowSharedLineage: true });
  await backend.database.pool.query(
    `update state_archive.operation set report = jsonb_set(report, '{outcome}', '"MERGED"') where id = $1`,
    [untold.id],
  );
  const everything = { kind: null, statuses: null, labelPrefix: '', actor: null, since: null };
  const listed = await searchOperations(backend.database.for('read'), caller, everything, {
    after: null,
    limit: 10,
  });
  expect(listed.map(({ id, status, report }) => [id, status, report?.outcome])).toEqual([
    [untold.id, 'SUCCEEDED', undefined],
    [told.id, 'SUCCEEDED', 'CREATED'],
  ]);
});

describe('an idempotency key', () => {
  test('gives the same operation for the same request, and does the work once', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const first = await runExport(backend, caller, 'app', { idempotencyKey: 'key-1' });
    const second = await runExport(backend, caller, 'app', { idempotencyKey: 'key-1', waitSeconds: 0 });
    expect(second).toEqual(first);
    expect(await eventsOf('state_export')).toHaveLength(1);

    const input = { idempotencyKey: 'key-1', allowSharedLineage: true };
    const imported = await runImport(backend, caller, archive, input);
    const files = await storedFiles(backend);
    const again = await runImport(backend, caller, archive, input);
    expect(again).toEqual(imported);
    expect(imported.id).not.toBe(first.id);
    expect(await storedFiles(backend)).toEqual(files);
  });

  test('is refused with IDEMPOTENCY_KEY_REUSED for another request', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    await post(backend.database, caller, 'other', secondDocument);
    await runExport(backend, caller, 'app', { idempotencyKey: 'key' });
    expect(await refusalOf(runExport(backend, caller, 'other', { idempotencyKey: 'key' }))).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
      path: ['input', 'idempotencyKey'],
    });

    const input = { idempotencyKey: 'key', label: 'restored', allowSharedLineage: true };
    await runImport(backend, caller, archive, input);
    const files = await storedFiles(backend);
    for (const change of [{ label: 'elsewhere' }, { dryRun: true }, { allowSharedLineage: false }]) {
      const refusal = await refusalOf(runImport(backend, caller, archive, { ...input, ...change }));
      expect(refusal.code).toBe('IDEMPOTENCY_KEY_REUSED');
    }
    expect(await storedFiles(backend)).toEqual(files);
  });

  test('belongs to one principal of one workspace', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const first = await runExport(backend, caller, 'app', { idempotencyKey: 'key' });
    const colleague = withPrincipal(caller, { subject: 'a colleague' });
    const theirs = await runExport(backend, colleague, 'app', { idempotencyKey: 'key' });
    expect(theirs.id).not.toBe(first.id);
  });

  test('that comes in twice at the same moment starts one operation, and both are told which', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const [first, second] = await Promise.all([
      runExport(backend, caller, 'app', { idempotencyKey: 'key' }),
      runExport(backend, caller, 'app', { idempotencyKey: 'key' }),
    ]);
    expect(second).toEqual(first);
    expect(await eventsOf('state_export')).toHaveLength(1);

    const imports = await Promise.all(
      [1, 2].map(() =>
        runImport(backend, caller, archive, { idempotencyKey: 'key', allowSharedLineage: true }),
      ),
    );
    expect(new Set(imports.map(({ id, status }) => `${id} ${status}`))).toEqual(
      new Set([`${imports[0]?.id} SUCCEEDED`]),
    );
    await nothingUnderWay(backend);
  });

  test('that comes in with another request at the same moment refuses one of them, and keeps no file of it', async () => {
    const outcomes = await Promise.allSettled([
      runImport(backend, caller, archive, { idempotencyKey: 'key', label: 'one', allowSharedLineage: true }),
      runImport(backend, caller, archive, { idempotencyKey: 'key', label: 'two', allowSharedLineage: true }),
    ]);
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? outcome.reason : []));
    expect(refused).toEqual([expect.objectContaining({ code: 'IDEMPOTENCY_KEY_REUSED' })]);
    await nothingUnderWay(backend);
  });

  test.each([
    ['is empty', ''],
    ['is longer than 255 characters', 'x'.repeat(256)],
    ['has a NUL', 'a\0b'],
    ['is no Unicode', '\ud800'],
  ])('that %s is refused', async (_what, idempotencyKey) => {
    await post(backend.database, caller, 'app', firstDocument);
    const refusal = await refusalOf(runExport(backend, caller, 'app', { idempotencyKey }));
    expect(refusal).toMatchObject({ code: 'INVALID_INPUT', path: ['input', 'idempotencyKey'] });
  });
});

describe('waiting', () => {
  test('for no time gives the operation as it stands; it ends by itself', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const release = backend.holdQueue();
    const pending = await runExport(backend, caller, 'app', { waitSeconds: 0 });
    expect(pending).toMatchObject({ status: 'PENDING', startedAt: null, finishedAt: null, archive: null });
    release();
    await ended(backend.services, caller, pending.id);
    expect((await operationOf(backend, caller, pending.id)).status).toBe('SUCCEEDED');
  });

  test('ends with the operation when the same key asks again', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const release = backend.holdQueue();
    await runExport(backend, caller, 'app', { waitSeconds: 0, idempotencyKey: 'key' });
    const waiting = runExport(backend, caller, 'app', { idempotencyKey: 'key' });
    release();
    expect((await waiting).status).toBe('SUCCEEDED');
  });

  test.each([-1, 26, Number.NaN])('for %d seconds is refused', async (waitSeconds) => {
    await post(backend.database, caller, 'app', firstDocument);
    const refusal = await refusalOf(runExport(backend, caller, 'app', { waitSeconds }));
    expect(refusal).toMatchObject({ code: 'INVALID_INPUT', path: ['input', 'waitSeconds'] });
  });
});

describe('rights are looked at again when work begins', () => {
  const WITHDRAWN = { status: 'FAILED', startedAt: expect.any(String), error: { code: 'FORBIDDEN' } };

  /** A token of the caller's environment, and the caller that it makes. */
  async function tokenCaller() {
    const { database } = backend;
    const { rows } = await database.pool.query(
      'select id as "environmentId" from environments where env_public_id = $1',
      [caller.namespace.environment],
    );
    const environment = { ...caller.namespace, ...rows[0], environmentSlug: caller.namespace.environment };
    const token = await createApiToken(database, environment);
    const principal = await verifyKilolockCredential(database, POLICIES, Buffer.from(token.secret), null);
    if (principal === null) throw new Error('The token is not accepted.');
    return { id: token.id, environment, byToken: { ...caller, principal } };
  }

  test.each([
    ['the token was revoked', 'update api_tokens set revoked_at = now() where id = $1'],
    [
      'the environment was suspended',
      `update environments set lifecycle_status = 'suspended'
       where id = (select environment_id from api_tokens where id = $1)`,
    ],
  ])('and when %s meanwhile nothing is written', async (_what, withdraw) => {
    await post(backend.database, caller, 'app', firstDocument);
    const { id, byToken } = await tokenCaller();
    const release = backend.holdQueue();
    const operations = [
      await runExport(backend, byToken, 'app', { waitSeconds: 0 }),
      await runImport(backend, byToken, archive, { waitSeconds: 0, allowSharedLineage: true }),
    ];
    const files = await storedFiles(backend);
    await backend.database.pool.query(withdraw, [id]);
    const before = await countRows(backend.database, ['public']);
    release();
    for (const operation of operations) {
      await ended(backend.services, caller, operation.id);
      expect(await operationOf(backend, caller, operation.id)).toMatchObject(WITHDRAWN);
    }
    expect(await countRows(backend.database, ['public'])).toEqual(before);
    await nothingUnderWay(backend);
    expect((await storedFiles(backend)).archives).toEqual(files.archives);
  });

  test('and a link ends with the token that it was made with', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const { id, byToken } = await tokenCaller();
    const operation = await runExport(backend, byToken, 'app');
    const linkOf = async (reader: Caller) => {
      const url = await downloadUrl(backend.services, operation, reader, 'http://localhost');
      return new URL(url ?? '').searchParams.get('token') ?? '';
    };
    const [mine, theirs] = [await linkOf(byToken), await linkOf(caller)];
    const opens = async (link: string) =>
      (await openArchive(backend.services, operation.id, link, 'request-1')) !== null;
    expect([await opens(mine), await opens(theirs)]).toEqual([true, true]);
    await backend.database.pool.query('update api_tokens set revoked_at = now() where id = $1', [id]);
    expect([await opens(mine), await opens(theirs)]).toEqual([false, true]);
  });

  test('and a link outlives no JWT', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, caller, 'app');
    const now = Math.floor(Date.now() / 1000);
    const urlFor = (expiresAt: number) =>
      downloadUrl(backend.services, operation, withPrincipal(caller, { expiresAt }), 'http://localhost');
    const [, claims = ''] = ((await urlFor(now + 60)) ?? '').split('token=')[1]?.split('.') ?? [];
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString());
    expect(exp).toBeLessThanOrEqual(now + 60);
    expect(await urlFor(now)).toBeNull();
  });
});

describe('a download', () => {
  test('is on record before its first byte, once for a link, with what came of it', async () => {
    const { stateId } = await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, caller, 'app');
    const url = await downloadUrl(backend.services, operation, caller, 'http://localhost');
    const link = new URL(url ?? '').searchParams.get('token') ?? '';
    const open = () => openArchive(backend.services, operation.id, link, 'request-1');
    const recorded = async () =>
      (await eventsOf('state_archive_download')).map(({ state_id, payload }) => [
        state_id,
        payload.outcome,
        payload.bytes,
      ]);
    const first = await open();
    expect(await recorded()).toEqual([]);
    const end = await first?.begin();
    expect(await recorded()).toEqual([[stateId, 'begun', '0']]);
    await end?.({ bytes: 10n, isWhole: false });
    expect(await recorded()).toEqual([[stateId, 'cut', '10']]);

    const others = await Promise.all([1, 2, 3].map(async () => (await open())?.begin()));
    await Promise.all(others.map((endOther) => endOther?.({ bytes: 5n, isWhole: true })));
    expect(await recorded()).toEqual([[stateId, 'completed', '25']]);
  });

  test('of a state that somebody holds locked waits for no lock', async () => {
    const { stateId } = await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, caller, 'app');
    const readers = Array.from({ length: 12 }, (_, n) => withPrincipal(caller, { subject: `reader ${n}` }));
    const links = await Promise.all(
      readers.map((reader) => downloadUrl(backend.services, operation, reader, 'http://localhost')),
    );
    const holder = await backend.database.pool.connect();
    try {
      await holder.query('begin');
      await holder.query('select from states where id = $1 for update', [stateId]);
      const begun = links.map(async (url, index) => {
        const link = new URL(url ?? '').searchParams.get('token') ?? '';
        const opened = await openArchive(backend.services, operation.id, link, `request-${index}`);
        return opened?.begin();
      });
      expect(await Promise.all(begun)).toHaveLength(12);
      await backend.database.pool.query('select 1');
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    expect(await eventsOf('state_archive_download')).toMatchObject(
      readers.map(() => ({ state_id: null, payload: { state_id: stateId } })),
    );
  });
});

describe('an archive past its time', () => {
  const expire = (id: string) =>
    backend.database.pool.query(
      `update state_archive.operation set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
      [id],
    );
  const PUBLIC_URL = 'http://localhost';
  const tokenOf = (url: string | null) => new URL(url ?? '').searchParams.get('token') ?? '';

  test('reads EXPIRED at once and cannot be downloaded; the sweep removes it, and no other', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const [kept, gone] = [await runExport(backend, caller, 'app'), await runExport(backend, caller, 'app')];
    const token = tokenOf(await downloadUrl(backend.services, gone, caller, PUBLIC_URL));
    expect(await openArchive(backend.services, gone.id, token, 'request-1')).not.toBeNull();

    await expire(gone.id);
    const read = await operationOf(backend, caller, gone.id);
    expect(read).toMatchObject({ status: 'EXPIRED', archive: { sha256: gone.archive?.sha256 } });
    expect(await downloadUrl(backend.services, read, caller, PUBLIC_URL)).toBeNull();
    expect(await openArchive(backend.services, gone.id, token, 'request-1')).toBeNull();

    await removeExpiredArchives(backend.services);
    const { archives } = await storedFiles(backend);
    expect(archives).toContain(kept.archive?.objectKey);
    expect(archives).not.toContain(gone.archive?.objectKey);
    expect((await operationOf(backend, caller, gone.id)).status).toBe('EXPIRED');
    const last = await findLastSuccesses(backend.database.for('record'), caller, 'EXPORT', [stateIdOf(gone)]);
    expect(last.get(stateIdOf(gone))?.id).toBe(gone.id);
  });

  test('is removed also when the sweep before died between record and file, or the export between file and record', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, caller, 'app');
    for (const status of ['EXPIRED', 'FAILED']) {
      await backend.database.pool.query('update state_archive.operation set status = $2 where id = $1', [
        operation.id,
        status,
      ]);
      await writeFile(archivePath(backend, operation), 'left behind');
      await sweepStore(backend.services, 'archives', '');
      expect((await storedFiles(backend)).archives).not.toContain(operation.archive?.objectKey);
    }
  });

  test('of an attempt that does not count is removed, and the one that does is kept', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, caller, 'app');
    const other = archiveKeyOf(operation.id, 7);
    await writeFile(join(backend.storeDirectory, 'archives', other), 'of a process that was given up');
    await sweepStore(backend.services, 'archives', '');
    const { archives } = await storedFiles(backend);
    expect(archives).toContain(operation.archive?.objectKey);
    expect(archives).not.toContain(other);
  });

  test('that no open database knows may be another’s, and goes by its age', async () => {
    const [young, old] = [archiveKeyOf(randomUUID(), 1), archiveKeyOf(randomUUID(), 1)];
    const archiveFile = (key: string) => join(backend.storeDirectory, 'archives', key);
    for (const file of [young, old]) await writeFile(archiveFile(file), 'of another database');
    const longAgo = new Date(Date.now() - (backend.services.retentionSeconds + 7200) * 1000);
    await utimes(archiveFile(old), longAgo, longAgo);
    await sweepStore(backend.services, 'archives', '');
    const { archives } = await storedFiles(backend);
    expect([archives.includes(young), archives.includes(old)]).toEqual([true, false]);
  });

  test('is found among more than a statement has parameters', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const { id } = await runExport(backend, caller, 'app');
    const many = Array.from({ length: 70_000 }, () => archiveKeyOf(randomUUID(), 1));
    const own = archiveKeyOf(id, 1);
    const found = await findExports(backend.database.for('housekeeping'), [...many, own]);
    expect([...found]).toEqual([[own, true]]);
  });
});

describe('a caller', () => {
  test('keeps so many archives of an environment at a time; an expired one makes room', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const services = { ...backend.services, maxArchivesPerPrincipal: 1 };
    const kept = await runExport({ services }, caller, 'app');
    expect((await refusalOf(runExport({ services }, caller, 'app'))).code).toBe('QUOTA_EXCEEDED');
    const colleague = withPrincipal(caller, { subject: 'a colleague' });
    expect((await runExport({ services }, colleague, 'app')).status).toBe('SUCCEEDED');
    await backend.database.pool.query('update state_archive.operation set expires_at = now() where id = $1', [
      kept.id,
    ]);
    expect((await runExport({ services }, caller, 'app')).status).toBe('SUCCEEDED');
  });

  test('shares the room of an environment with everybody in it: so many archives, and no more', async () => {
    const services = { ...backend.services, maxArchives: 2 };
    await post(backend.database, caller, 'app', firstDocument);
    const colleague = withPrincipal(caller, { subject: 'colleague' });
    const [first] = [
      await runExport({ services }, caller, 'app'),
      await runExport({ services }, colleague, 'app'),
    ];
    for (const who of [caller, colleague]) {
      expect(await refusalOf(runExport({ services }, who, 'app'))).toMatchObject({ code: 'QUOTA_EXCEEDED' });
    }
    await backend.database.pool.query('update state_archive.operation set expires_at = now() where id = $1', [
      first.id,
    ]);
    expect((await runExport({ services }, colleague, 'app')).status).toBe('SUCCEEDED');
  });

  test('keeps so many bytes of an environment, also when it is not known before how many there will be', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const first = await runExport(backend, caller, 'app');
    const size = Number(first.archive?.sizeBytes);
    const full = { ...backend.services, maxArchiveBytesKept: size };
    expect(await refusalOf(runExport({ services: full }, caller, 'app'))).toMatchObject({
      code: 'QUOTA_EXCEEDED',
    });
    const almostFull = await openBackend(undefined, { maxArchiveBytesKept: Math.floor(size * 1.5) });
    try {
      const other = await createCaller(almostFull);
      await post(almostFull.database, other, 'app', firstDocument);
      await post(almostFull.database, other, 'second', firstDocument);
      expect((await runExport(almostFull, other, 'app')).status).toBe('SUCCEEDED');
      const before = await storedFiles(almostFull);
      const failed = await runExport(almostFull, other, 'second');
      expect(failed).toMatchObject({ status: 'FAILED', error: { code: 'QUOTA_EXCEEDED' } });
      expect(await storedFiles(almostFull)).toEqual(before);
    } finally {
      await almostFull.close();
    }
  });

  test('sends so many files at a time, and another when one has arrived or failed', async () => {
    const uploads = new UploadsInFlight(1);
    const { opened, open } = gate();
    const first = uploads.receive('ann', () => opened);
    await expect(uploads.receive('ann', async () => {})).rejects.toMatchObject({
      code: 'TOO_MANY_OPERATIONS',
    });
    expect(await uploads.receive('bob', async () => 'received')).toBe('received');
    open();
    await first;
    await expect(uploads.receive('ann', () => Promise.reject(new Error('cut')))).rejects.toThrow('cut');
    expect(await uploads.receive('ann', async () => 'received')).toBe('received');
  });
});

describe('a file whose manifest cannot be used', () => {
  const MEBIBYTE = 1024 * 1024;

  /** An archive of a bad manifest, with much behind it, that is cut at its end. */
  async function stageBadArchive(): Promise<string> {
    const path = backend.services.scratch.path();
    const bad = tarHeader('manifest.json', 2);
    const tar = Buffer.concat([bad, Buffer.from('{}'), Buffer.alloc(510), randomBytes(8 * MEBIBYTE)]);
    await writeFile(path, zstdCompressSync(tar).subarray(0, -4));
    return path;
  }
  const start = (path: string, signal: AbortSignal) =>
    importStateArchive(
      { ...backend.services, limits: { ...backend.services.limits, maxMetadataBytes: MEBIBYTE } },
      { caller, requestId: 'request-1', signal },
      { path, sha256: '', sizeBytes: 0n, fileName: '' },
      {
        label: null,
        onConflict: { kind: 'REFUSE' },
        allowSharedLineage: false,
        dryRun: false,
        expectedSha256: null,
        waitSeconds: 0,
        idempotencyKey: null,
      },
    );

  test('is not unpacked to its end within the request', async () => {
    // To its end it would turn out truncated.
    await expect(start(await stageBadArchive(), new AbortController().signal)).rejects.toMatchObject({
      name: 'ArchiveError',
      code: expect.not.stringMatching('ARCHIVE_TRUNCATED'),
    });
    await nothingUnderWay(backend);
  });

  test('is looked at no further when its sender has left', async () => {
    const left = AbortSignal.abort();
    await expect(start(await stageBadArchive(), left)).rejects.toMatchObject({
      code: 'OPERATION_INTERRUPTED',
    });
    await nothingUnderWay(backend);
  });
});

describe('files', () => {
  const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

  test('are for their owner alone: archives 0600, the directories 0700', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, caller, 'app');
    expect(await modeOf(archivePath(backend, operation))).toBe('600');
    for (const directory of ['archives', 'uploads']) {
      expect(await modeOf(join(backend.storeDirectory, directory))).toBe('700');
    }
    expect(await modeOf(backend.scratchDirectory)).toBe('700');
  });

  test('on their way in are gone after success, refusal, failure and a replay', async () => {
    await runImport(backend, caller, archive, { label: 'one' });
    await refusalOf(runImport(backend, caller, archive, { label: 'one' }));
    await refusalOf(runImport(backend, caller, archive, { label: 'two' }));
    await refusalOf(runImport(backend, caller, archive, { expectedSha256: '0'.repeat(64) }));
    await refusalOf(runImport(backend, caller, archive, { waitSeconds: 99 }));
    await refusalOf(runImport(backend, caller, archive, { label: ' ' }));
    await runImport(backend, caller, archive, { label: 'three', dryRun: true, allowSharedLineage: true });
    await nothingUnderWay(backend);
  });
});
