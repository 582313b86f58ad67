import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import { cancelOperation } from '../../src/operations/cancel-operation.ts';
import { NotPermittedError } from '../../src/operations/destination-permission.ts';
import { countRows } from '../support/state-rows.ts';
import { until } from '../support/until.ts';
import {
  archiveOfOthers,
  type Backend,
  createCaller,
  ended,
  nothingUnderWay,
  openBackend,
  operationOf,
  runExport,
  runImport,
  storedFiles,
  withPrincipal,
} from './support/backend.ts';
import { postFirstDocument, postTerraformHistory } from './support/histories.ts';
import { interceptQueries } from './support/intercept-queries.ts';
import { recordImport } from './support/restores.ts';

let backend: Backend;
let caller: Caller;
let archive: string;

beforeAll(async () => {
  backend = await openBackend();
  archive = await archiveOfOthers(backend, 'app', postTerraformHistory);
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

/** The outcomes, and by whom, of an operation's events. */
const eventsOf = (id: string) =>
  backend.query(
    `select actor, payload ->> 'outcome' as outcome, payload ->> 'cancelled_by' as "cancelledBy"
     from events where payload ->> 'archive_id' = $1`,
    [id],
  );

describe('an operation that is cancelled', () => {
  test.each(['export', 'import'])('while it waits ends at once: an %s then never begins', async (kind) => {
    await postFirstDocument(backend.database, caller, 'app');
    const rows = await countRows(backend.database, ['public']);
    const release = backend.holdQueue();
    const { id } = await (kind === 'export'
      ? runExport(backend, caller, 'app', { waitSeconds: 0 })
      : runImport(backend, caller, archive, { label: 'other', allowSharedLineage: true, waitSeconds: 0 }));
    const colleague = withPrincipal(caller, { subject: 'a colleague', actor: 'Colleague' });
    await cancelOperation(colleague, id);
    expect(await operationOf(backend, caller, id)).toMatchObject({
      status: 'CANCELLED',
      startedAt: null,
      finishedAt: expect.any(String),
      error: null,
    });
    release();
    await until(
      async () =>
        (await backend.query('select from state_archive_queue.job where id = $1', [id])).length === 0,
    );
    expect((await operationOf(backend, caller, id)).status).toBe('CANCELLED');
    expect(await countRows(backend.database, ['public'])).toEqual(rows);
    await nothingUnderWay(backend);
    expect(await eventsOf(id)).toEqual([
      { actor: 'Colleague', outcome: 'cancelled', cancelledBy: 'a colleague' },
    ]);
  });

  test.each([
    ['export', 'select'],
    ['import', 'insert into "public"."states"'],
  ])('while it is worked on is given up by its worker: nothing is left of an %s', async (kind, moment) => {
    if (kind === 'export') await postFirstDocument(backend.database, caller, 'app');
    const rows = await countRows(backend.database, ['public']);
    const { archives } = await storedFiles(backend);
    let cancelled: Promise<void> | undefined;
    let isWorking = false;
    const database = interceptQueries(
      backend.database,
      (statement) => {
        if (/^begin \/\* (export|restore) \*\//.test(statement)) isWorking = true;
      },
      async (statement, client) => {
        if (!isWorking || cancelled || !statement.startsWith(moment)) return;
        const [row] = await backend.query(
          `select id from state_archive.operation where tenant_id = $1 and status = 'RUNNING'`,
          [caller.namespace.tenantId],
        );
        const slow = client.query('select pg_sleep(600)');
        cancelled = cancelOperation(caller, row.id);
        await slow;
      },
    );
    const working = { ...caller, database };
    const operation = await (kind === 'export'
      ? runExport(backend, working, 'app')
      : runImport(backend, working, archive));
    await cancelled;
    expect(operation).toMatchObject({
      status: 'CANCELLED',
      stateId: kind === 'export' ? expect.any(String) : null,
    });
    await nothingUnderWay(backend);
    expect((await storedFiles(backend)).archives).toEqual(archives);
    expect(await countRows(backend.database, ['public'])).toEqual(rows);
    expect((await operationOf(backend, caller, operation.id)).status).toBe('CANCELLED');
    // The same can be asked for again.
    const again = await (kind === 'export'
      ? runExport(backend, caller, 'app')
      : runImport(backend, caller, archive));
    expect(again.status).toBe('SUCCEEDED');
  });

  test('while it is committed is none: it succeeds, and whoever wished it is told', async () => {
    await postFirstDocument(backend.database, caller, 'app');
    let refusal: unknown;
    let isSettling = false;
    const database = interceptQueries(backend.database, async (statement) => {
      if (/^update "state_archive"\."operation" set "status"/.test(statement)) isSettling = true;
      if (statement !== 'commit' || !isSettling || refusal !== undefined) return;
      const [row] = await backend.query(
        `select id from state_archive.operation where tenant_id = $1 and status = 'RUNNING'`,
        [caller.namespace.tenantId],
      );
      refusal = await cancelOperation(caller, row.id).catch((error) => error);
    });
    const operation = await runExport(backend, { ...caller, database }, 'app');
    expect(refusal).toMatchObject({ code: 'OPERATION_NOT_CANCELLABLE' });
    expect(operation).toMatchObject({ status: 'SUCCEEDED', error: null });
    expect(await eventsOf(operation.id)).toMatchObject([{ outcome: 'succeeded' }]);
  });

  test('a second time stays cancelled, and one that has ended as it is', async () => {
    await postFirstDocument(backend.database, caller, 'app');
    const release = backend.holdQueue();
    const { id } = await runExport(backend, caller, 'app', { waitSeconds: 0 });
    await cancelOperation(caller, id);
    await cancelOperation(caller, id);
    release();
    expect(await eventsOf(id)).toHaveLength(1);
    const done = await runExport(backend, caller, 'app');
    await expect(cancelOperation(caller, done.id)).rejects.toMatchObject({
      code: 'OPERATION_NOT_CANCELLABLE',
      inputPath: ['id'],
    });
    expect(await operationOf(backend, caller, done.id)).toEqual(done);
  });

  test('has to be one of the environment, the caller’s own or one that the caller might have started', async () => {
    await postFirstDocument(backend.database, caller, 'app');
    const release = backend.holdQueue();
    const { id } = await runExport(backend, caller, 'app', { waitSeconds: 0 });
    const stranger = await createCaller(backend);
    await expect(cancelOperation(stranger, id)).rejects.toMatchObject({ code: 'OPERATION_NOT_FOUND' });
    const scopes = (...names: string[]) =>
      withPrincipal(caller, { subject: 'another', scopes: new Set(names) });
    const importer = scopes('state.read', 'state.import');
    await expect(cancelOperation(importer, id)).rejects.toBeInstanceOf(NotPermittedError);
    expect((await operationOf(backend, caller, id)).status).toBe('PENDING');
    // Whoever started it may, whatever the credential permits by now.
    const self = withPrincipal(caller, { scopes: new Set(['state.import']) });
    await cancelOperation(self, id);
    release();
    await ended(backend.services, caller, id);
    expect((await operationOf(backend, caller, id)).status).toBe('CANCELLED');
  });

  test('is not a part of another one: that one is', async () => {
    const part = await recordImport(backend.database, caller, 'part');
    await expect(cancelOperation(caller, part)).rejects.toMatchObject({ code: 'OPERATION_NOT_CANCELLABLE' });
    expect((await operationOf(backend, caller, part)).status).toBe('RUNNING');
  });
});
