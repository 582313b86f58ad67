import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DigestBudget } from '../../src/history/digest-budget.ts';
import { readManifestPreviews } from '../../src/history/manifest-preview.ts';
import type { Caller } from '../../src/history/states.ts';
import {
  archiveOfOthers,
  type Backend,
  createCaller,
  openBackend,
  runImport,
  stateIdOf,
} from '../operations/support/backend.ts';
import { post, postAnnotatedHistory } from '../operations/support/histories.ts';
import { interceptQueries } from '../operations/support/intercept-queries.ts';
import { apply, planOf, recordImport } from '../operations/support/restores.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import { countRows } from '../support/state-rows.ts';

let backend: Backend;
let caller: Caller;
let archive: string;

beforeAll(async () => {
  backend = await openBackend();
  caller = await createCaller(backend);
  archive = await archiveOfOthers(backend, 'demo/network', postAnnotatedHistory);
});
afterAll(() => backend.close());

class Fault extends Error {}

/** Neither a transaction nor a lock is left on the database, by anybody. */
async function expectNothingHeld(): Promise<void> {
  const { rows } = await backend.database.pool.query(
    `select query as held from pg_stat_activity
     where datname = current_database() and (state like 'idle in transaction%' or query ilike 'copy%' and state = 'active')
     union all
     select locktype from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
  );
  expect(rows).toEqual([]);
}

function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootCause(error.cause) : error;
}

/** Runs `work` again and again, failing its first statement, then its second, and so on until it comes through. */
async function failingAtEachStatement(
  work: (database: Backend['database']) => Promise<unknown>,
): Promise<string[]> {
  const before = await countRows(backend.database);
  for (let failing = 1; ; failing += 1) {
    const statements: string[] = [];
    const database = interceptQueries(backend.database, (statement) => {
      if (statement === 'rollback') return;
      statements.push(statement);
      if (statements.length === failing) throw new Fault(`at ${statement}`);
    });
    const outcome = await work(database).catch((error: unknown) => error);
    if (statements.length < failing) return statements;
    // A statement that fails otherwise than by PostgreSQL's word is a lost connection, and a COMMIT among them undecided.
    expect(rootCause(outcome)).toBeInstanceOf(Fault);
    expect(await countRows(backend.database)).toEqual(before);
    await expectNothingHeld();
  }
}

test('a restore that fails at any of its statements leaves no row and no lock, and then succeeds', async () => {
  const operationId = await recordImport(backend.database, caller, 'restored');
  const plan = await planOf(backend, caller, archive, 'restored');
  const statements = await failingAtEachStatement((database) => apply(database, plan, operationId));

  expect(statements.at(0)).toMatch(/^begin/);
  expect(statements.at(-1)).toBe('commit');
  const copied = statements.flatMap((statement) => /^COPY ("\S+)/.exec(statement)?.[1] ?? []);
  expect(copied).toEqual([
    '"public"."state_versions"',
    '"public"."resources"',
    '"public"."state_version_tags"',
    '"public"."outputs"',
    '"public"."events"',
    '"state_archive"."version_mapping"',
  ]);
  const { rows } = await backend.database.pool.query('select id from states where name = $1', [
    `${caller.namespace.namePrefix}restored`,
  ]);
  expect(rows).toHaveLength(1);
});

test('a snapshot that fails at any of its statements leaves no row and no lock, and then succeeds', async () => {
  const [first] = loadTerraformHistory();
  const statements = await failingAtEachStatement((database) =>
    post(database, caller, 'snapshot', first?.document ?? ''),
  );
  expect(statements.at(-1)).toBe('commit');
  expect(statements.length).toBeGreaterThan(8);
});

test.each([
  ['while the raw states are on their way', /^COPY "public"."state_versions"/],
  ['while the rows are proven', /version_digest/],
  ['at the commit', /^commit$/],
])('a connection lost %s leaves no row, and the restore can be tried again', async (_when, moment) => {
  const label = `lost ${moment.source}`.replaceAll(/[^a-z ]/g, '');
  const operationId = await recordImport(backend.database, caller, label);
  const plan = await planOf(backend, caller, archive, label, { allowSharedLineage: true });
  const before = await countRows(backend.database);
  let loss: Promise<unknown> | undefined;
  const database = interceptQueries(backend.database, async (statement, client) => {
    if (loss !== undefined || !moment.test(statement)) return;
    const { processID } = client as unknown as { processID: number };
    loss = backend.database.pool.query('select pg_terminate_backend($1, 10000)', [processID]);
    await loss;
  });
  await expect(apply(database, plan, operationId)).rejects.toThrow();
  expect(loss).toBeDefined();
  await loss;
  expect(await countRows(backend.database)).toEqual(before);
  await expectNothingHeld();
  await apply(database, plan, operationId);
});

describe('restores with large documents take turns', () => {
  /** A restore whose archive says that it has a document of that many bytes. */
  async function restoreOf(label: string, longestRawState: number, signal = new AbortController().signal) {
    const operationId = await recordImport(backend.database, caller, label);
    const plan = await planOf(backend, caller, archive, label, { allowSharedLineage: true });
    const sized = {
      ...plan,
      request: { ...plan.request, signal },
      archive: { ...plan.archive, longestRawState },
    };
    return (database: Backend['database'], beforeCommit?: () => Promise<void>) =>
      apply(database, sized, operationId, beforeCommit);
  }
  const LARGE = 32 * 1024 * 1024 + 1;

  test('one at a time is in the database; small ones and reads pass those that wait', async () => {
    let begun = 0;
    const database = interceptQueries(backend.database, (statement) => {
      if (statement.startsWith('begin /* restore')) begun += 1;
    });
    const [first, second] = [await restoreOf('large 1', LARGE), await restoreOf('large 2', LARGE)];
    const small = await restoreOf('small', LARGE - 1);
    const [isHeld, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const held = first(database, async () => {
      isHeld.resolve();
      await mayEnd.promise;
    });
    await isHeld.promise;
    const waiting = second(database);
    const { stateId } = await small(database);
    const previews = await readManifestPreviews(database, [stateId], new DigestBudget());
    expect(previews.get(stateId)).toMatchObject({ versionCount: expect.any(Number) });
    expect(begun).toBe(2);
    mayEnd.resolve();
    await Promise.all([held, waiting]);
    expect(begun).toBe(3);
  });

  test('one that is called off, or fails, keeps nobody waiting', async () => {
    const [first, third] = [await restoreOf('fails', LARGE), await restoreOf('third', LARGE)];
    const calledOff = new AbortController();
    const second = await restoreOf('called off', LARGE, calledOff.signal);
    const [isHeld, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const failing = first(backend.database, async () => {
      isHeld.resolve();
      await mayEnd.promise;
      throw new Fault('at its end');
    });
    await isHeld.promise;
    const waiting = second(backend.database);
    const last = third(backend.database);
    calledOff.abort(new Fault('called off'));
    await expect(waiting).rejects.toThrow('called off');
    mayEnd.resolve();
    await expect(failing).rejects.toThrow('at its end');
    await last;
  });
});

test('an operation that cannot record its success restores nothing', async () => {
  const operationId = await recordImport(backend.database, caller, 'unrecorded');
  const plan = await planOf(backend, caller, archive, 'unrecorded', { allowSharedLineage: true });
  const before = await countRows(backend.database);
  const refused = apply(backend.database, plan, operationId, async () => {
    throw new Fault('at the record');
  });
  await expect(refused).rejects.toBeInstanceOf(Fault);
  expect(await countRows(backend.database)).toEqual(before);
});

test('an import that fails inside says INTERNAL with the operation’s id, nothing of the cause, and removes its file', async () => {
  const database = interceptQueries(backend.database, (statement) => {
    if (statement.startsWith('COPY')) throw new Fault('password=hunter2');
  });
  const before = await countRows(backend.database, ['public']);
  const operation = await runImport(backend, { ...caller, database }, archive, {
    label: 'broken',
    allowSharedLineage: true,
  });
  expect(operation).toMatchObject({ status: 'FAILED', error: { code: 'INTERNAL', path: null } });
  expect(operation.error?.message).toContain(operation.id);
  expect(operation.error?.message).not.toContain('hunter2');
  expect(await countRows(backend.database, ['public'])).toEqual(before);
  const again = await runImport(backend, caller, archive, { label: 'broken', allowSharedLineage: true });
  expect(stateIdOf(again)).toEqual(expect.any(String));
});
