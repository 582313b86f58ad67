import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import pino from 'pino';
import type { Caller } from '../../src/history/states.ts';
import { importStateSnapshot } from '../../src/operations/import-state-snapshot.ts';
import { OperationHeartbeats } from '../../src/operations/operation-heartbeats.ts';
import { beat, claimOperation, giveUpAbandoned } from '../../src/operations/operation-lifecycle.ts';
import { sweepOperations } from '../../src/operations/operation-sweep.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import { until } from '../support/until.ts';
import {
  archiveOfOthers,
  archivePath,
  type Backend,
  createCaller,
  ended,
  openBackend,
  operationOf,
  runExport,
  runImport,
  stateIdOf,
  storedFiles,
} from './support/backend.ts';
import { post, postFirstDocument } from './support/histories.ts';
import { interceptQueries, loseAnswers, loseConnection } from './support/intercept-queries.ts';
import { recordImport } from './support/restores.ts';

let backend: Backend;
let caller: Caller;
let archive: string;

const [firstDocument = '', secondDocument = ''] = loadTerraformHistory().map(({ document }) => document);

beforeAll(async () => {
  backend = await openBackend();
  archive = await archiveOfOthers(backend, 'app', postFirstDocument);
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

const isCommit = (statement: string) => statement === 'commit';

/** As if the worker of an operation had not been heard of for a minute. */
const fallSilent = (id: string) =>
  backend.query(
    `update state_archive.operation set heartbeat_at = clock_timestamp() - interval '1 minute' where id = $1`,
    [id],
  );

describe('a COMMIT whose answer is lost', () => {
  const silent = () => ({ ...caller, database: loseAnswers(backend.database, isCommit) });

  test('of an export is a success when it was one, and its archive is there', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, silent(), 'app');
    expect(operation).toMatchObject({ status: 'SUCCEEDED', error: null });
    expect((await stat(archivePath(backend, operation))).size).toBe(Number(operation.archive?.sizeBytes));
  });

  test('of an import and of an overwrite is a success when it was one', async () => {
    const created = await runImport(backend, silent(), archive);
    expect(created).toMatchObject({ status: 'SUCCEEDED', error: null });
    expect(
      await backend.query('select serial from state_versions where state_id = $1', [stateIdOf(created)]),
    ).toEqual([{ serial: '1' }]);
    const replaced = await runImport(backend, silent(), archive, {
      onConflict: { kind: 'OVERWRITE', confirmName: 'app', expectedCurrentSerial: 1n },
    });
    expect(replaced).toMatchObject({ status: 'SUCCEEDED', report: { outcome: 'REPLACED' } });
    const kept = await operationOf(backend, caller, replaced.replacedOperationId ?? '');
    expect((await stat(archivePath(backend, kept))).size).toBeGreaterThan(0);
  });

  test('of a snapshot is a success when it was one', async () => {
    const request = { caller: silent(), requestId: 'request-1' };
    const written = await importStateSnapshot(backend.services, request, {
      label: 'snapshot',
      document: Buffer.from(firstDocument),
      source: null,
      idempotencyKey: null,
    });
    expect(written.serial).toBe(1n);
    expect(
      await backend.query('select serial from state_versions where state_id = $1', [written.stateId]),
    ).toEqual([{ serial: '1' }]);
  });

  test('is an interruption when nothing was committed: the export is taken up again, and leaves one archive', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const before = await storedFiles(backend);
    let [commits, isLost] = [-1, false];
    const database = interceptQueries(backend.database, async (statement, client) => {
      if (statement.startsWith('begin /* export */')) commits = 0;
      if (!isCommit(statement) || commits < 0 || isLost) return;
      commits += 1;
      isLost = commits === 2;
      if (isLost) await loseConnection(client);
    });
    const exported = await runExport(backend, { ...caller, database }, 'app');
    expect(exported).toMatchObject({ status: 'SUCCEEDED', error: null });
    expect(
      await backend.query('select attempt from state_archive.operation where id = $1', [exported.id]),
    ).toEqual([{ attempt: 2 }]);
    const { archives } = await storedFiles(backend);
    expect(archives.filter((key) => !before.archives.includes(key))).toEqual([exported.archive?.objectKey]);
  });

  test('of a snapshot is told as an interruption when nothing was committed', async () => {
    const lost = interceptQueries(backend.database, async (statement, client) => {
      if (isCommit(statement)) await loseConnection(client);
    });
    const request = { caller: { ...caller, database: lost }, requestId: 'request-1' };
    await expect(
      importStateSnapshot(backend.services, request, {
        label: 'app',
        document: Buffer.from(secondDocument),
        source: null,
        idempotencyKey: null,
      }),
    ).rejects.toMatchObject({ code: 'OPERATION_INTERRUPTED' });
    expect(
      await backend.query('select serial from state_versions where tenant_id = $1', [
        caller.namespace.tenantId,
      ]),
    ).toEqual([]);
  });

  test('of the admission, when nobody can tell what became of it, is told as that, with the id; the sweep queues what is on record', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const database = interceptQueries(
      backend.database,
      (statement) => {
        if (statement.includes('pg_xact_status')) throw new Error('no database');
      },
      async (statement, client) => {
        if (isCommit(statement)) await loseConnection(client);
      },
    );
    const refused = await runExport(backend, { ...caller, database }, 'app').catch((error) => error);
    expect(refused).toMatchObject({ name: 'RequestRefusedError', code: 'OPERATION_INTERRUPTED' });
    const [row] = await backend.query('select id, status from state_archive.operation where tenant_id = $1', [
      caller.namespace.tenantId,
    ]);
    expect(row.status).toBe('PENDING');
    expect(refused.message).toContain(row.id);
    await backend.query(
      `update state_archive.operation set created_at = created_at - interval '1 minute' where id = $1`,
      [row.id],
    );
    await sweepOperations(backend.database, backend.services.queue);
    // The worker's database has the fault, too.
    expect((await runExport(backend, caller, 'app')).status).toBe('SUCCEEDED');
    await ended(backend.services, caller, row.id);
    expect((await operationOf(backend, caller, row.id)).status).toBe('SUCCEEDED');
  });

  test('of the admission starts the operation that it recorded', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, silent(), 'app', { idempotencyKey: 'key' });
    expect((await runExport(backend, caller, 'app', { idempotencyKey: 'key' })).id).toBe(operation.id);
  });
});

test('a COMMIT that stalls tells nobody a lie: its operation reads RUNNING, and nobody else takes it up', async () => {
  await post(backend.database, caller, 'app', firstDocument);
  let atWork = '';
  let seen: unknown;
  let isSettling = false;
  const database = interceptQueries(backend.database, async (statement) => {
    if (/^update "state_archive"\."operation" set "status" = \$1, "finished_at"/.test(statement)) {
      const [row] = await backend.query(
        `select id from state_archive.operation where tenant_id = $1 and status = 'RUNNING'`,
        [caller.namespace.tenantId],
      );
      atWork = row.id;
      await fallSilent(atWork);
      isSettling = true;
    }
    if (!isCommit(statement) || !isSettling || seen !== undefined) return;
    // The record is locked now, and its worker has not been heard of for a minute.
    await giveUpAbandoned(backend.database.for('housekeeping'));
    const claim = await claimOperation(backend.database, atWork, { worker: 'another', maxRunning: 100 });
    seen = [claim.kind, await operationOf(backend, caller, atWork)];
  });
  const operation = await runExport(backend, { ...caller, database }, 'app');
  expect(seen).toEqual(['not yet', expect.objectContaining({ status: 'RUNNING', error: null })]);
  expect(operation.status).toBe('SUCCEEDED');
});

test('a COMMIT that PostgreSQL does not answer for 75 s stops nobody else, and its operation is done once', async () => {
  for (const label of ['stalled', 'other']) await post(backend.database, caller, label, firstDocument);
  // A sequence is not rolled back: the first success alone stalls.
  await backend.query('create sequence stalls');
  await backend.query(`create function stall() returns trigger language plpgsql as $$ begin
      if nextval('public.stalls') = 1 then perform pg_catalog.pg_sleep(75); end if; return null;
    end $$`);
  await backend.query(`create constraint trigger stall after update on state_archive.operation deferrable initially deferred
    for each row when (new.status = 'SUCCEEDED') execute function stall()`);
  try {
    const { id } = await runExport(backend, caller, 'stalled', { waitSeconds: 0 });
    await until(async () => (await backend.query('select is_called from stalls'))[0].is_called);
    expect((await runExport(backend, caller, 'other')).status).toBe('SUCCEEDED');
    expect(await operationOf(backend, caller, id)).toMatchObject({ status: 'RUNNING', error: null });
    await ended(backend.services, caller, id);
    expect(await operationOf(backend, caller, id)).toMatchObject({ status: 'SUCCEEDED', error: null });
    expect(
      await backend.query(
        `select payload ->> 'outcome' as outcome from events where payload ->> 'archive_id' = $1`,
        [id],
      ),
    ).toEqual([{ outcome: 'succeeded' }]);
  } finally {
    await backend.query('drop trigger stall on state_archive.operation');
  }
});

describe('whoever looks after records', () => {
  const progress = { versionsDone: 3n, versionsTotal: 10n, bytesDone: 5n, bytesTotal: null };

  test('waits for no lock: what is locked is passed over, and all the rest is looked after', async () => {
    const [held, abandoned, other] = [
      await recordImport(backend.database, caller, 'held'),
      await recordImport(backend.database, caller, 'abandoned'),
      await recordImport(backend.database, caller, 'other'),
    ];
    for (const id of [held, abandoned]) await fallSilent(id);
    const holder = await backend.database.pool.connect();
    try {
      await holder.query('begin');
      await holder.query('select from state_archive.operation where id = $1 for no key update', [held]);
      const beats = [held, other].map((id) => ({ id, attempt: 1, progress }));
      expect(await beat(backend.database.for('record'), beats)).toEqual([]);
      await giveUpAbandoned(backend.database.for('housekeeping'));
      expect(await operationOf(backend, caller, held)).toMatchObject({ status: 'RUNNING' });
      expect(await operationOf(backend, caller, abandoned)).toMatchObject({ status: 'FAILED' });
      expect(await operationOf(backend, caller, other)).toMatchObject({ status: 'RUNNING', progress });
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    await giveUpAbandoned(backend.database.for('housekeeping'));
    expect(await operationOf(backend, caller, held)).toMatchObject({
      status: 'FAILED',
      error: { code: 'OPERATION_INTERRUPTED' },
    });
  });

  test('goes on for a later attempt of the same process when an earlier one learns that it is lost, and ends', async () => {
    const id = await recordImport(backend.database, caller, randomUUID());
    const heartbeats = new OperationHeartbeats(pino({ level: 'silent' }));
    const lost: number[] = [];
    const beats = [0, 1].map((attempt) =>
      heartbeats.hold(backend.database, { id, attempt }, () => lost.push(attempt)),
    );
    await until(() => lost.length > 0);
    beats[0]?.[Symbol.dispose]();
    await fallSilent(id);
    const isHeardOf = () =>
      backend.query(
        "select from state_archive.operation where id = $1 and heartbeat_at > now() - interval '5 seconds'",
        [id],
      );
    await until(async () => (await isHeardOf()).length > 0);
    expect(new Set(lost)).toEqual(new Set([0]));
    heartbeats.close();
  });

  test('is not kept from one database by another that does not answer', async () => {
    const [asked, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const dead = interceptQueries(backend.database, async (statement) => {
      if (!statement.includes('unnest')) return;
      asked.resolve();
      await end.promise;
    });
    const renewed = Promise.withResolvers<void>();
    let renewals = 0;
    const alive = interceptQueries(
      backend.database,
      () => {},
      async (statement) => {
        if (!statement.includes('unnest')) return;
        renewals += 1;
        if (renewals === 2) renewed.resolve();
      },
    );
    const heartbeats = new OperationHeartbeats(pino({ level: 'silent' }));
    for (const database of [dead, alive]) {
      const id = await recordImport(backend.database, caller, randomUUID());
      heartbeats.hold(database, { id, attempt: 1 }, () => {});
    }
    await asked.promise;
    await renewed.promise;
    end.resolve();
    heartbeats.close();
  });
});

describe('a failure', () => {
  /** A state without a version: its export fails. */
  const postShell = () =>
    backend.query('insert into states (tenant_id, name) values ($1, $2)', [
      caller.namespace.tenantId,
      `${caller.namespace.namePrefix}shell`,
    ]);

  test('that cannot be recorded at first is recorded as soon as it can be', async () => {
    await postShell();
    let refusals = 2;
    const database = interceptQueries(backend.database, (statement) => {
      if (statement.includes('set status = $1, finished_at') && refusals-- > 0)
        throw new Error('no database');
    });
    expect(await runExport(backend, { ...caller, database }, 'shell')).toMatchObject({
      status: 'FAILED',
      error: { code: 'STATE_EMPTY' },
    });
    expect(refusals).toBe(-1);
  });

  test('is on record, and can be asked for, where the database lets nobody write events', async () => {
    await postShell();
    const database = interceptQueries(backend.database, (statement) => {
      if (statement.includes('insert into public.events')) {
        throw Object.assign(new pg.DatabaseError('permission denied for table events', 0, 'error'), {
          code: '42501',
        });
      }
    });
    expect(await runExport(backend, { ...caller, database }, 'shell')).toMatchObject({
      status: 'FAILED',
      error: { code: 'STATE_EMPTY' },
    });
  });

  test('is none because somebody holds the state locked: an export’s event then names it in its payload', async () => {
    const { stateId } = await post(backend.database, caller, 'app', firstDocument);
    const holder = await backend.database.pool.connect();
    try {
      await holder.query('begin');
      await holder.query('select from states where id = $1 for update', [stateId]);
      const exported = await runExport(backend, caller, 'app');
      expect(exported.status).toBe('SUCCEEDED');
      expect(
        await backend.query(
          `select state_id, payload ->> 'state_id' as named from events
           where kind = 'state_export' and payload ->> 'archive_id' = $1`,
          [exported.id],
        ),
      ).toEqual([{ state_id: null, named: stateId }]);
    } finally {
      await holder.query('rollback');
      holder.release();
    }
  });
});
