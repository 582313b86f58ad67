import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import type { KilolockDatabase } from '../../src/database/connection.ts';
import type { Caller } from '../../src/history/states.ts';
import { importStateSnapshot } from '../../src/operations/import-state-snapshot.ts';
import { failInterrupted, renewLeases } from '../../src/operations/operation-lifecycle.ts';
import type { OperationRunner } from '../../src/operations/operation-runner.ts';
import { Slots } from '../../src/operations/slots.ts';
import { RequestRefusedError } from '../../src/operations/user-error.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  newRunner,
  openBackend,
  operationOf,
  runExport,
  runImport,
  stateIdOf,
  storedFiles,
} from './support/backend.ts';
import { post } from './support/histories.ts';
import { interceptQueries, loseAnswers, loseConnection } from './support/intercept-queries.ts';
import { recordImport } from './support/restores.ts';

let backend: Backend;
let caller: Caller;
let archive: string;

const [firstDocument = '', secondDocument = ''] = loadTerraformHistory().map(({ document }) => document);

beforeAll(async () => {
  backend = await openBackend();
  const owner = await createCaller(backend);
  await post(backend.database, owner, 'app', firstDocument);
  archive = archivePath(backend, await runExport(backend, owner, 'app'));
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

const isCommit = (statement: string) => statement === 'commit';

async function query(text: string, values: unknown[] = []) {
  return (await backend.database.pool.query(text, values)).rows;
}

const expireLease = (id: string) =>
  query(
    `update state_archive.operation set lease_until = clock_timestamp() - interval '1 second' where id = $1`,
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
      await query('select serial from state_versions where state_id = $1', [stateIdOf(created)]),
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
    expect(await query('select serial from state_versions where state_id = $1', [written.stateId])).toEqual([
      { serial: '1' },
    ]);
  });

  test('is a failure when nothing was committed: told as an interruption, without a file and with the key free', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const before = await storedFiles(backend);
    let commits = -1;
    const database = interceptQueries(backend.database, async (statement, client) => {
      if (statement.startsWith('begin /* export */')) commits = 0;
      if (!isCommit(statement) || commits < 0) return;
      commits += 1;
      if (commits === 2) await loseConnection(client);
    });
    const failed = await runExport(backend, { ...caller, database }, 'app', { idempotencyKey: 'key' });
    expect(failed).toMatchObject({ status: 'FAILED', error: { code: 'OPERATION_INTERRUPTED' } });
    expect(await storedFiles(backend)).toEqual(before);
    const again = await runExport(backend, caller, 'app', { idempotencyKey: 'key' });
    expect(again).toMatchObject({ status: 'SUCCEEDED' });
    expect(again.id).not.toBe(failed.id);

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
      await query('select serial from state_versions where tenant_id = $1', [caller.namespace.tenantId]),
    ).toEqual([{ serial: '1' }]);
  });

  test('of the admission, when nobody can tell what became of it, is told as that, with the id, and starts nothing', async () => {
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
    const [row] = await query('select id, status from state_archive.operation where tenant_id = $1', [
      caller.namespace.tenantId,
    ]);
    expect(row.status).toBe('PENDING');
    expect(refused.message).toContain(row.id);
  });

  test('of the admission starts the operation that it recorded', async () => {
    await post(backend.database, caller, 'app', firstDocument);
    const operation = await runExport(backend, silent(), 'app', { idempotencyKey: 'key' });
    expect((await runExport(backend, caller, 'app', { idempotencyKey: 'key' })).id).toBe(operation.id);
  });
});

/** Waits until a moment that the database has noted has passed, by the database's own clock. */
async function untilLapsed(id: string): Promise<void> {
  await query(
    `select pg_sleep(extract(epoch from greatest(lease_until - clock_timestamp(), '0')) + 0.05)
     from state_archive.operation where id = $1`,
    [id],
  );
}

test('an operation whose transaction is not decided reads RUNNING, however long nobody has heard of it', async () => {
  await post(backend.database, caller, 'app', firstDocument);
  let atWork = '';
  let seen: unknown;
  const database = interceptQueries(backend.database, async (statement) => {
    if (/^update "state_archive"\."operation" set "status" = \$1, "finished_at"/.test(statement)) {
      const [row] = await query(
        `update state_archive.operation set lease_until = clock_timestamp() + interval '1 second'
         where tenant_id = $1 and status = 'RUNNING' returning id`,
        [caller.namespace.tenantId],
      );
      atWork = row.id;
    }
    if (!isCommit(statement) || atWork === '') return;
    await untilLapsed(atWork);
    await failInterrupted(backend.database.for('record'));
    seen = await operationOf(backend, caller, atWork);
  });
  const operation = await runExport(backend, { ...caller, database }, 'app');
  expect(seen).toMatchObject({ status: 'RUNNING', error: null });
  expect(operation.status).toBe('SUCCEEDED');
});

describe('whoever looks after records', () => {
  const progress = { versionsDone: 3n, versionsTotal: 10n, bytesDone: 5n, bytesTotal: null };

  test('waits for no lock: what is locked is passed over, and all the rest is looked after', async () => {
    const [held, abandoned, other] = [
      await recordImport(backend.database, caller, 'held'),
      await recordImport(backend.database, caller, 'abandoned'),
      await recordImport(backend.database, caller, 'other'),
    ];
    for (const id of [held, abandoned]) await expireLease(id);
    const holder = await backend.database.pool.connect();
    try {
      await holder.query('begin');
      await holder.query('select from state_archive.operation where id = $1 for no key update', [held]);
      await renewLeases(backend.database.for('record'), new Map([held, other].map((id) => [id, progress])));
      await failInterrupted(backend.database.for('record'));
      expect(await operationOf(backend, caller, held)).toMatchObject({ status: 'RUNNING' });
      expect(await operationOf(backend, caller, abandoned)).toMatchObject({ status: 'FAILED' });
      expect(await operationOf(backend, caller, other)).toMatchObject({ status: 'RUNNING', progress });
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    expect(await operationOf(backend, caller, held)).toMatchObject({
      status: 'FAILED',
      error: { code: 'OPERATION_INTERRUPTED' },
    });
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
    const runner = newRunner(backend.database);
    for (const database of [dead, alive]) {
      const id = await recordImport(backend.database, caller, randomUUID());
      runner.start(
        database,
        { id, requestId: 'request-1' },
        { job: () => end.promise, onEnd: async () => {} },
      );
    }
    await asked.promise;
    await renewed.promise;
    end.resolve();
    await runner.close();
  });
});

describe('a failure', () => {
  const failing = (runner: OperationRunner, database: KilolockDatabase, id: string) =>
    runner.start(
      database,
      { id, requestId: 'request-1' },
      {
        job: async () => {
          throw new RequestRefusedError('STATE_EMPTY', 'There is nothing.');
        },
        onEnd: async () => {},
      },
    );

  test('that cannot be recorded at first is told at once, and recorded as soon as it can be', async () => {
    const id = await recordImport(backend.database, caller, 'unlucky');
    let refusals = 2;
    const settled = Promise.withResolvers<void>();
    const database = interceptQueries(
      backend.database,
      (statement) => {
        if (statement.includes("'FAILED'") && refusals-- > 0) throw new Error('no database');
      },
      async (statement) => {
        if (statement.includes("'FAILED'")) settled.resolve();
      },
    );
    const runner = newRunner(backend.database);
    failing(runner, database, id);
    expect(await runner.wait(id, 300_000)).toMatchObject({
      code: 'STATE_EMPTY',
      message: expect.stringContaining(id),
    });
    await settled.promise;
    expect(await operationOf(backend, caller, id)).toMatchObject({
      status: 'FAILED',
      error: { code: 'STATE_EMPTY', message: 'There is nothing.' },
    });
    await runner.close();
  });

  test('is on record, and can be asked for, where the database lets nobody write events', async () => {
    const id = await recordImport(backend.database, caller, 'unheard');
    const database = interceptQueries(backend.database, (statement) => {
      if (statement.includes('insert into public.events')) {
        throw Object.assign(new pg.DatabaseError('permission denied for table events', 0, 'error'), {
          code: '42501',
        });
      }
    });
    const runner = newRunner(backend.database);
    failing(runner, database, id);
    expect(await runner.wait(id, 300_000)).toBeNull();
    expect(await operationOf(backend, caller, id)).toMatchObject({
      status: 'FAILED',
      error: { code: 'STATE_EMPTY', message: 'There is nothing.' },
    });
    await runner.close();
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
        await query(
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

test('a place that is given back goes to whoever waits, and to nobody who comes at that moment', async () => {
  const slots = new Slots(1);
  const giveBack = await slots.take();
  let [atWork, most] = [0, 0];
  const work = async () => {
    const done = await slots.take();
    atWork += 1;
    most = Math.max(most, atWork);
    await Promise.resolve();
    atWork -= 1;
    done();
  };
  const waiting = work();
  giveBack();
  await Promise.all([waiting, work(), work()]);
  expect(most).toBe(1);
});
