import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { KilolockDatabase } from '../../src/database/connection.ts';
import { DatabaseUnavailableError } from '../../src/database/errors.ts';
import type { Caller } from '../../src/history/states.ts';
import { cancelOperation } from '../../src/operations/cancel-operation.ts';
import type { OperationRecord } from '../../src/operations/operation-records.ts';
import { sweepOperations } from '../../src/operations/operation-sweep.ts';
import { RequestRefusedError } from '../../src/operations/user-error.ts';
import { until } from '../support/until.ts';
import {
  archiveOfOthers,
  type Backend,
  createCaller,
  nothingUnderWay,
  openBackend,
  operationOf,
  runExport,
  runImport,
  storedFiles,
} from './support/backend.ts';
import { postFirstDocument } from './support/histories.ts';
import { interceptQueries, loseConnection } from './support/intercept-queries.ts';

let backend: Backend;
let caller: Caller;
let archive: string;
let archivesBefore: readonly string[];

beforeAll(async () => {
  backend = await openBackend();
  archive = await archiveOfOthers(backend, 'app', postFirstDocument);
});
beforeEach(async () => {
  caller = await createCaller(backend);
  await postFirstDocument(backend.database, caller, 'app');
  // A state without a version: its export fails.
  await backend.query('insert into states (tenant_id, name) values ($1, $2)', [
    caller.namespace.tenantId,
    `${caller.namespace.namePrefix}shell`,
  ]);
  archivesBefore = (await storedFiles(backend)).archives;
});
afterAll(() => backend.close());

/** Before the statement reaches the server; after the server has carried it out; and each time for a while. */
const WAYS = ['before', 'after', 'for long'] as const;
type Way = (typeof WAYS)[number];

/** A database that is lost at a statement, and what became of that. */
interface Faulty {
  readonly database: KilolockDatabase;
  readonly hasHappened: () => boolean;
  readonly isOver: () => boolean;
}

/**
 * @param options.isStalled a statement that waits until the fault has happened.
 * @param options.before what else happens before a statement.
 */
function faulty(
  at: RegExp,
  way: Way,
  { isStalled, before }: { isStalled?: RegExp | null; before?: (statement: string) => void } = {},
): Faulty {
  const times = way === 'for long' ? 2 : 1;
  let left = times;
  const over = Promise.withResolvers<void>();
  const happens = (statement: string) => {
    if (left === 0 || !at.test(statement)) return false;
    left -= 1;
    if (left === 0) over.resolve();
    return true;
  };
  const happenBefore = async (statement: string) => {
    if (way !== 'after' && happens(statement)) throw new Error('The connection broke.');
    if (isStalled?.test(statement)) await over.promise;
  };
  const database = interceptQueries(
    backend.database,
    (statement) => {
      before?.(statement);
      return happenBefore(statement);
    },
    async (statement, client) => {
      if (way === 'after' && happens(statement)) await loseConnection(client);
    },
  );
  return { database, hasHappened: () => left < times, isOver: () => left === 0 };
}

/** As time goes by for what waits: jobs that were put back are given out, and operations that nobody queued are found. */
async function letTimePass(): Promise<void> {
  await backend.query(`update state_archive_queue.job set start_after = now() where state = 'retry'`);
  await backend.query(
    `update state_archive.operation set created_at = created_at - interval '1 minute',
       heartbeat_at = heartbeat_at - interval '1 hour' where status = 'PENDING'`,
  );
  await sweepOperations(backend.database, backend.services.queue);
  backend.services.worker.nudge();
}

/** Asks as a client does: again with the same key, when it is told that it may. */
async function askUntilAnswered(ask: () => Promise<OperationRecord>): Promise<OperationRecord> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const mayAskAgain =
        error instanceof DatabaseUnavailableError ||
        (error instanceof RequestRefusedError && error.code === 'OPERATION_INTERRUPTED');
      if (!mayAskAgain) throw error;
      await pause(10);
    }
  }
}

const jobsOf = (id: string) => backend.query('select id from state_archive_queue.job where id = $1', [id]);

/** Waits for the end of an operation, and of its job, and looks whether it is there once and nothing else is. */
async function expectOneEnd(id: string, status: string, fault: Faulty): Promise<void> {
  const isOpen = async () =>
    ['PENDING', 'RUNNING'].includes((await operationOf(backend, caller, id)).status) ||
    (await jobsOf(id)).length > 0 ||
    !fault.hasHappened();
  await until(async () => {
    if (!(await isOpen())) return true;
    await letTimePass();
    return false;
  });
  const operation = await operationOf(backend, caller, id);
  expect(operation).toMatchObject({ status, ...(status === 'SUCCEEDED' && { error: null }) });
  expect(
    await backend.query('select id from state_archive.operation where tenant_id = $1', [
      caller.namespace.tenantId,
    ]),
  ).toEqual([{ id }]);
  expect(
    await backend.query(
      `select payload ->> 'outcome' as outcome from events where payload ->> 'archive_id' = $1`,
      [id],
    ),
  ).toEqual([
    { outcome: operation.kind === 'IMPORT' && status === 'SUCCEEDED' ? 'CREATED' : status.toLowerCase() },
  ]);
  const archives = (await storedFiles(backend)).archives.filter((key) => !archivesBefore.includes(key));
  const isKept = operation.kind === 'EXPORT' && status === 'SUCCEEDED';
  expect(archives).toEqual(isKept ? [operation.archive?.objectKey] : []);
  await nothingUnderWay(backend);
}

const options = { waitSeconds: 0, idempotencyKey: 'key' };
const toExport = (label: string) => (database: KilolockDatabase) =>
  runExport(backend, { ...caller, database }, label, options);
const toImport = (database: KilolockDatabase) =>
  runImport(backend, { ...caller, database }, archive, {
    ...options,
    label: 'restored',
    allowSharedLineage: true,
  });

const CLAIM = /set status = 'RUNNING', attempt = attempt \+ 1/;
const HEARTBEAT = /with beating as/;
const SUCCESS = /^update "state_archive"\."operation" set "status" = \$1, "finished_at"/;
const END = /set status = \$1, finished_at/;
const WORK = /^begin \/\* (export|restore) \*\//;

type Step = readonly [
  what: string,
  at: RegExp,
  ask: (database: KilolockDatabase) => Promise<OperationRecord>,
  end: 'SUCCEEDED' | 'FAILED',
  isStalled: RegExp | null,
];

const STEPS: readonly Step[] = [
  ['admission', /^insert into "state_archive"\."operation"/, toExport('app'), 'SUCCEEDED', null],
  ['note that it is queued', /set heartbeat_at = [^,]*where id in/, toExport('app'), 'SUCCEEDED', null],
  ['claim', CLAIM, toExport('app'), 'SUCCEEDED', null],
  ['heartbeat', HEARTBEAT, toExport('app'), 'SUCCEEDED', WORK],
  ['room in the store', /"archive_size_bytes" = \$1 where/, toExport('app'), 'SUCCEEDED', null],
  ['success of an export', SUCCESS, toExport('app'), 'SUCCEEDED', null],
  ['success of an import', SUCCESS, toImport, 'SUCCEEDED', null],
  ['record of a failure', END, toExport('shell'), 'FAILED', null],
];

test.each(STEPS.flatMap(([what, ...step]) => WAYS.map((way) => [way, what, ...step] as const)))(
  'a database that is lost %s the %s loses no operation, does none twice and leaves nothing',
  async (way, _what, at, ask, end, isStalled) => {
    const fault = faulty(at, way, { isStalled });
    const { id } = await askUntilAnswered(() => ask(fault.database));
    await expectOneEnd(id, end, fault);
  },
);

describe('a database that is lost', () => {
  test.each(WAYS)('%s an interrupted attempt is handed back does the operation once', async (way) => {
    let isInterrupted = false;
    const fault = faulty(/set status = 'PENDING', heartbeat_at/, way, {
      before(statement) {
        if (isInterrupted || !statement.startsWith('COPY')) return;
        isInterrupted = true;
        throw new DatabaseUnavailableError('unreachable', 'The connection broke.');
      },
    });
    const { id } = await toExport('app')(fault.database);
    await expectOneEnd(id, 'SUCCEEDED', fault);
    expect(isInterrupted).toBe(true);
  });

  test.each(WAYS)(
    '%s an operation is cancelled tells so; asked again, it is cancelled, once',
    async (way) => {
      const release = backend.holdQueue();
      const { id } = await toExport('app')(caller.database);
      const fault = faulty(END, way);
      const cancel = () => cancelOperation({ ...caller, database: fault.database }, id);
      while (!fault.isOver()) await expect(cancel()).rejects.toBeInstanceOf(DatabaseUnavailableError);
      await cancel();
      release();
      await expectOneEnd(id, 'CANCELLED', fault);
    },
  );

  test.each(
    WAYS.flatMap((way) =>
      [
        /select "id" from "state_archive"\."operation"/,
        /select id, request from/,
        /set heartbeat_at = [^,]*where id in/,
      ].map((at) => [way, at] as const),
    ),
  )('%s the sweep’s %s leaves the rest to the next sweep', async (way, at) => {
    const release = backend.holdQueue();
    const { id } = await toExport('app')(caller.database);
    await backend.query('delete from state_archive_queue.job where id = $1', [id]);
    await backend.query(
      `update state_archive.operation set heartbeat_at = null, created_at = now() - interval '1 hour' where id = $1`,
      [id],
    );
    const fault = faulty(at, way);
    while (!fault.isOver()) {
      await expect(sweepOperations(fault.database, backend.services.queue)).rejects.toBeInstanceOf(
        DatabaseUnavailableError,
      );
    }
    await sweepOperations(fault.database, backend.services.queue);
    release();
    await expectOneEnd(id, 'SUCCEEDED', fault);
  });
});
