import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pino from 'pino';
import type { Caller } from '../../src/history/states.ts';
import { cancelOperation } from '../../src/operations/cancel-operation.ts';
import {
  AttemptLostError,
  beat,
  claimOperation,
  giveUpAbandoned,
  MAX_ATTEMPTS,
  markSucceeded,
  settleAttempt,
} from '../../src/operations/operation-lifecycle.ts';
import type { Job, OperationQueue } from '../../src/operations/operation-queue.ts';
import { sweepOperations } from '../../src/operations/operation-sweep.ts';
import { OperationWorker } from '../../src/operations/operation-worker.ts';
import { countRows } from '../support/state-rows.ts';
import {
  archiveOfOthers,
  type Backend,
  createCaller,
  createEnvironment,
  ended,
  nothingUnderWay,
  openBackend,
  operationOf,
  recordExport,
  runExport,
  runImport,
  storedFiles,
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

const record = () => backend.database.for('record');

/** As if the worker of an operation had not been heard of for a minute. */
const fallSilent = (id: string) =>
  backend.query(
    `update state_archive.operation set heartbeat_at = clock_timestamp() - interval '1 minute' where id = $1`,
    [id],
  );

const rowOf = async (id: string) =>
  (await backend.query('select status, attempt, worker from state_archive.operation where id = $1', [id]))[0];

const claim = async (id: string, maxRunning = 100) => {
  const claimed = await claimOperation(backend.database, id, { worker: 'a test', maxRunning });
  return claimed.kind === 'claimed' ? claimed.operation.attempt : claimed.kind;
};

const SUCCESS = {
  stateId: null,
  archive: {
    sha256: '0'.repeat(64),
    sizeBytes: 1n,
    historyDigest: '0'.repeat(64),
    fileName: '',
    objectKey: null,
  },
  report: null,
  versions: 0,
  rawBytes: 0n,
  kept: null,
  replacedOperationId: null,
};

const INTERRUPTION = {
  kind: 'interrupted',
  error: { code: 'OPERATION_INTERRUPTED', message: 'It was interrupted.', path: null },
} as const;

describe('an operation is claimed', () => {
  test('by one of many at the same moment, and by nobody while its worker is heard of', async () => {
    const id = await recordExport(backend, caller, 'app');
    const claims = await Promise.all(Array.from({ length: 8 }, () => claim(id)));
    expect(claims.sort()).toEqual([1, ...Array(7).fill('not yet')]);
    expect(await claim(id)).toBe('not yet');
    expect(await rowOf(id)).toMatchObject({ status: 'RUNNING', attempt: 1, worker: 'a test' });
  });

  test('again when its worker has fallen silent, and by one of many', async () => {
    const id = await recordExport(backend, caller, 'app');
    expect(await claim(id)).toBe(1);
    await fallSilent(id);
    const claims = await Promise.all(Array.from({ length: 8 }, () => claim(id)));
    expect(claims.sort()).toEqual([2, ...Array(7).fill('not yet')]);
  });

  test('when no other on a state of its name is running: of many at the same moment by one', async () => {
    const ids = await Promise.all(Array.from({ length: 6 }, () => recordExport(backend, caller, 'app')));
    const other = await recordExport(backend, caller, 'another');
    const claims = await Promise.all([...ids, other].map((id) => claim(id)));
    expect(claims.pop()).toBe(1);
    expect(claims.sort()).toEqual([1, ...Array(5).fill('not yet')]);
  });

  test('while fewer of its environment are running than may, over all who claim', async () => {
    const ids = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => recordExport(backend, caller, `app-${n}`)));
    const elsewhere = await createEnvironment(backend, caller.namespace.workspace);
    const claims = await Promise.all(ids.map((id) => claim(id, 3)));
    expect(claims.sort()).toEqual([1, 1, 1, 'not yet', 'not yet', 'not yet']);
    expect(await claim(await recordExport(backend, elsewhere, 'app'), 3)).toBe(1);
    const [first = ''] = (
      await backend.query(
        `select id from state_archive.operation where status = 'RUNNING' and environment_id = $1 limit 1`,
        [caller.namespace.environment],
      )
    ).map(({ id }) => id as string);
    await markSucceeded(record(), { id: first, attempt: 1 }, SUCCESS);
    const left = await Promise.all(ids.map((id) => claim(id, 3)));
    expect(left.filter((claimed) => claimed === 1)).toHaveLength(1);
  });

  test('by nobody when it is a part of another one, or over', async () => {
    const part = await recordImport(backend.database, caller, 'part');
    await fallSilent(part);
    expect(await claim(part)).toBe('over');
    const id = await recordExport(backend, caller, 'app');
    await claim(id);
    await markSucceeded(record(), { id, attempt: 1 }, SUCCESS);
    expect(await claim(id)).toBe('over');
    expect(await claim(randomUUID())).toBe('over');
  });

  test('by nobody whose release does not know what it asks for', async () => {
    const id = await recordExport(backend, caller, 'app');
    await backend.query(
      `update state_archive.operation set request = jsonb_set(request, '{order,quickly}', 'true') where id = $1`,
      [id],
    );
    expect(await claim(id)).toBe('not yet');
    expect(await rowOf(id)).toMatchObject({ status: 'PENDING', attempt: 0 });
  });

  test('by nobody while its record is held by a transaction that is about to settle it', async () => {
    const id = await recordExport(backend, caller, 'app');
    await claim(id);
    await fallSilent(id);
    const holder = await backend.database.pool.connect();
    try {
      await holder.query('begin');
      await holder.query('select from state_archive.operation where id = $1 for no key update', [id]);
      expect(await claim(id)).toBe('not yet');
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    expect(await claim(id)).toBe(2);
  });
});

describe('an attempt', () => {
  const progress = { versionsDone: 3n, versionsTotal: 10n, bytesDone: 9007199254740993n, bytesTotal: null };

  test('says how far it is, and learns by the same statement that it is over', async () => {
    const [alive, taken, cancelled] = [
      await recordExport(backend, caller, 'alive'),
      await recordExport(backend, caller, 'taken'),
      await recordExport(backend, caller, 'cancelled'),
    ];
    for (const id of [alive, taken, cancelled]) await claim(id);
    await fallSilent(taken);
    expect(await claim(taken)).toBe(2);
    await backend.query(`update state_archive.operation set status = 'CANCELLED' where id = $1`, [cancelled]);
    const lost = await beat(
      record(),
      [alive, taken, cancelled].map((id) => ({ id, attempt: 1, progress })),
    );
    expect(lost.map(({ id }) => id).sort()).toEqual([taken, cancelled].sort());
    expect(await operationOf(backend, caller, alive)).toMatchObject({ status: 'RUNNING', progress });
    expect(await operationOf(backend, caller, taken)).toMatchObject({ progress: { versionsDone: 0n } });
  });

  test('that another has followed records neither success nor failure, and keeps nobody from recording theirs', async () => {
    const id = await recordExport(backend, caller, 'app');
    await claim(id);
    await fallSilent(id);
    await claim(id);
    const late = { id, attempt: 1 };
    await expect(markSucceeded(record(), late, SUCCESS)).rejects.toBeInstanceOf(AttemptLostError);
    expect(await settleAttempt(record(), late, INTERRUPTION)).toBe('lost');
    expect(await settleAttempt(record(), late, { kind: 'failed', error: INTERRUPTION.error })).toBe('lost');
    await markSucceeded(record(), { id, attempt: 2 }, SUCCESS);
    expect(await settleAttempt(record(), late, INTERRUPTION)).toBe('lost');
    expect(await rowOf(id)).toMatchObject({ status: 'SUCCEEDED', attempt: 2 });
  });

  test('that is interrupted hands its operation back five times; the sixth time it fails, and frees the idempotency key', async () => {
    const id = await recordExport(backend, caller, 'app');
    await backend.query(`update state_archive.operation set idempotency_key = 'key' where id = $1`, [id]);
    for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
      expect(await claim(id)).toBe(attempt);
      expect(await settleAttempt(record(), { id, attempt }, INTERRUPTION)).toBe('handed back');
      expect((await operationOf(backend, caller, id)).status).toBe('PENDING');
    }
    expect(await claim(id)).toBe(MAX_ATTEMPTS);
    expect(await settleAttempt(record(), { id, attempt: MAX_ATTEMPTS }, INTERRUPTION)).toBe('failed');
    expect(await operationOf(backend, caller, id)).toMatchObject({
      status: 'FAILED',
      error: { code: 'OPERATION_INTERRUPTED' },
    });
    expect(
      await backend.query('select idempotency_key from state_archive.operation where id = $1', [id]),
    ).toEqual([{ idempotency_key: null }]);
  });
});

test('an operation is on record as queued before anybody is told of it: whoever claims it would find its record locked', async () => {
  await postFirstDocument(backend.database, caller, 'app');
  const steps: string[] = [];
  const { worker } = backend.services;
  const database = interceptQueries(
    backend.database,
    () => {},
    (statement) => {
      if (/set heartbeat_at = [^,]*where id in/.test(statement)) steps.push('marked');
    },
  );
  const services = {
    ...backend.services,
    queue: {
      send: async () => void steps.push('sent'),
      announce: async () => void steps.push('others told'),
    } as unknown as OperationQueue,
    worker: { ...worker, nudge: () => void steps.push('worker told') } as unknown as OperationWorker,
  };
  const { id } = await runExport({ services }, { ...caller, database }, 'app', { waitSeconds: 0 });
  expect(steps).toEqual(['sent', 'marked', 'worker told', 'others told']);
  await cancelOperation(caller, id);
});

describe('the sweep', () => {
  test('gives up what nobody takes up again: taken up often enough, parts of others, and an earlier release’s', async () => {
    const exhausted = await recordExport(backend, caller, 'exhausted');
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      await fallSilent(exhausted);
      expect(await claim(exhausted)).toBe(attempt);
    }
    const [part, ofEarlierRelease, alive, ofEarlierReleaseAlive] = [
      await recordImport(backend.database, caller, 'part'),
      await recordImport(backend.database, caller, 'earlier'),
      await recordImport(backend.database, caller, 'alive'),
      await recordImport(backend.database, caller, 'earlier-alive'),
    ];
    await backend.query(
      `update state_archive.operation set heartbeat_at = null, attempt = 0,
         lease_until = clock_timestamp() + make_interval(secs => case when id = $1 then -1 else 60 end)
       where id in ($1, $2)`,
      [ofEarlierRelease, ofEarlierReleaseAlive],
    );
    for (const id of [exhausted, part]) await fallSilent(id);
    await giveUpAbandoned(backend.database.for('housekeeping'));
    for (const id of [exhausted, part, ofEarlierRelease]) {
      expect(await operationOf(backend, caller, id)).toMatchObject({
        status: 'FAILED',
        error: { code: 'OPERATION_INTERRUPTED' },
      });
    }
    for (const id of [alive, ofEarlierReleaseAlive]) expect((await rowOf(id)).status).toBe('RUNNING');
  });

  test('queues what was recorded and never queued', async () => {
    await postFirstDocument(backend.database, caller, 'app');
    const { services } = backend;
    const unreachable = {
      send: () => Promise.reject(new Error('no queue')),
    } as unknown as typeof services.queue;
    const pending = await runExport({ services: { ...services, queue: unreachable } }, caller, 'app', {
      waitSeconds: 0,
    });
    expect(await backend.query('select from state_archive_queue.job where id = $1', [pending.id])).toEqual(
      [],
    );
    await backend.query(
      `update state_archive.operation set created_at = created_at - interval '1 minute' where id = $1`,
      [pending.id],
    );
    await sweepOperations(backend.database, services.queue);
    await ended(services, caller, pending.id);
    expect((await operationOf(backend, caller, pending.id)).status).toBe('SUCCEEDED');
  });

  test('passes over a record that only a later release can read', async () => {
    await postFirstDocument(backend.database, caller, 'app');
    const { services } = backend;
    const release = backend.holdQueue();
    const [known, later] = [
      await runExport(backend, caller, 'app', { waitSeconds: 0 }),
      await runExport(backend, caller, 'app', { waitSeconds: 0 }),
    ];
    await backend.query(`update state_archive.operation set request = '{"place": 1}' where id = $1`, [
      later.id,
    ]);
    await backend.query(
      `update state_archive.operation set heartbeat_at = null, created_at = now() - interval '1 hour' where id = any($1)`,
      [[known.id, later.id]],
    );
    await backend.query('delete from state_archive_queue.job where id = any($1)', [[known.id, later.id]]);
    await sweepOperations(backend.database, services.queue);
    expect(
      await backend.query('select id from state_archive_queue.job where id = any($1)', [
        [known.id, later.id],
      ]),
    ).toEqual([{ id: known.id }]);
    release();
    await ended(services, caller, known.id);
    expect(await operationOf(backend, caller, known.id)).toMatchObject({ status: 'SUCCEEDED' });
    await backend.query(`update state_archive.operation set status = 'FAILED' where id = $1`, [later.id]);
  });

  test('has what a worker left behind done by another, once', async () => {
    await postFirstDocument(backend.database, caller, 'app');
    const { services } = backend;
    const release = backend.holdQueue();
    const { id } = await runExport(backend, caller, 'app', { waitSeconds: 0 });
    // A worker that died with it in hand: the queue has lost it, too.
    expect(await claim(id)).toBe(1);
    await backend.query('delete from state_archive_queue.job where id = $1', [id]);
    await sweepOperations(backend.database, services.queue);
    expect(await backend.query('select from state_archive_queue.job where id = $1', [id])).toEqual([]);
    await fallSilent(id);
    await sweepOperations(backend.database, services.queue);
    release();
    await ended(services, caller, id);
    expect(await operationOf(backend, caller, id)).toMatchObject({ status: 'SUCCEEDED' });
    expect(await rowOf(id)).toMatchObject({ attempt: 2 });
  });
});

test('a frozen worker that wakes when another has done its work changes nothing', async () => {
  const before = await countRows(backend.database, ['public']);
  let isFirst = true;
  const database = interceptQueries(backend.database, async (statement) => {
    // All is inserted and proven; next would be the record of success.
    if (!isFirst || !/^update "state_archive"\."operation" set "status"/.test(statement)) return;
    isFirst = false;
    const [row] = await backend.query(
      `select id from state_archive.operation where tenant_id = $1 and status = 'RUNNING'`,
      [caller.namespace.tenantId],
    );
    await fallSilent(row.id);
    // The other one: it claims, fails for its own reason, and this one wakes.
    expect(await claim(row.id)).toBe(2);
    const error = { code: 'INTERNAL', message: 'The other one failed.', path: null } as const;
    expect(await settleAttempt(record(), { id: row.id, attempt: 2 }, { kind: 'failed', error })).toBe(
      'failed',
    );
  });
  const operation = await runImport(backend, { ...caller, database }, archive);
  expect(isFirst).toBe(false);
  expect(operation).toMatchObject({ status: 'FAILED', error: { message: 'The other one failed.' } });
  expect(await countRows(backend.database, ['public'])).toEqual(before);
  // Whoever finds that it is over tidies up, if the other one did not live to do it.
  await nothingUnderWay(backend);
});

describe('a process that shuts down', () => {
  test.each([
    ['export', 'COPY'],
    ['import', 'COPY "public"."state_versions"'],
  ])('hands a running %s back, of which nothing is left, and another does it once', async (kind, moment) => {
    const isExport = kind === 'export';
    if (isExport) await postTerraformHistory(backend.database, caller, 'app');
    const files = await storedFiles(backend);
    const rows = await countRows(backend.database, ['public']);
    let closed: Promise<() => void> | undefined;
    const database = interceptQueries(backend.database, (statement) => {
      if (statement.startsWith(moment)) closed ??= backend.closeWorker();
    });
    const working = { ...caller, database };
    const { id } = await (isExport
      ? runExport(backend, working, 'app', { waitSeconds: 25 })
      : runImport(backend, working, archive, { waitSeconds: 25 }));
    const startAnother = await closed;
    // Whoever waits is not kept: the operation reads as it is.
    expect(await operationOf(backend, caller, id)).toMatchObject({ status: 'PENDING', error: null });
    expect((await storedFiles(backend)).archives).toEqual(files.archives);
    expect((await storedFiles(backend)).underWay).toHaveLength(isExport ? 0 : 1);
    expect(await countRows(backend.database, ['public'])).toEqual(rows);
    startAnother?.();
    await ended(backend.services, caller, id);
    expect(await operationOf(backend, caller, id)).toMatchObject({ status: 'SUCCEEDED', error: null });
    expect(await rowOf(id)).toMatchObject({ attempt: 2 });
    await nothingUnderWay(backend);
    expect(
      await backend.query(
        `select count(*)::int from events where payload ->> 'archive_id' = $1 and kind = $2`,
        [id, `state_${kind}`],
      ),
    ).toEqual([{ count: 1 }]);
  });

  test('does not wait for a statement that takes its time', async () => {
    let closed: Promise<() => void> | undefined;
    const database = interceptQueries(
      backend.database,
      () => {},
      async (statement, client) => {
        if (closed || !statement.includes('insert into state_archive.version_digest')) return;
        const slow = client.query('select pg_sleep(600)');
        closed = backend.closeWorker();
        await slow;
      },
    );
    const { id } = await runImport(backend, { ...caller, database }, archive, {
      label: 'slow',
      waitSeconds: 25,
    });
    (await closed)?.();
    await ended(backend.services, caller, id);
    expect((await operationOf(backend, caller, id)).status).toBe('SUCCEEDED');
  });

  test('leaves what waits for its turn to others', async () => {
    await postFirstDocument(backend.database, caller, 'app');
    const release = backend.holdQueue();
    const { id } = await runExport(backend, caller, 'app', { waitSeconds: 0 });
    const startAnother = await backend.closeWorker();
    release();
    expect(await operationOf(backend, caller, id)).toMatchObject({ status: 'PENDING', startedAt: null });
    startAnother();
    await ended(backend.services, caller, id);
    expect((await operationOf(backend, caller, id)).status).toBe('SUCCEEDED');
  });
});

describe('a worker', () => {
  /** A queue in memory. */
  function queueOf(ids: readonly string[]) {
    const jobs: Job[] = ids.map((id) => ({ id, retryCount: 0, environment: null }));
    const removed: string[] = [];
    return {
      removed,
      take: async (count: number) => jobs.splice(0, count),
      hold: async () => {},
      putBack: async (job: Job) => {
        jobs.push(job);
      },
      remove: async ({ id }: Job) => {
        removed.push(id);
      },
    };
  }

  test('works on no more operations at a time than it has places', async () => {
    const ids = await Promise.all([1, 2, 3, 4, 5].map((n) => recordExport(backend, caller, `work-${n}`)));
    const worker = new OperationWorker({
      queue: queueOf(ids),
      databaseOf: async () => backend.database,
      logger: pino({ level: 'silent' }),
      concurrency: 2,
      maxRunning: 100,
    });
    let [atWork, most] = [0, 0];
    const both = Promise.withResolvers<void>();
    worker.start({
      workOf: () => ({
        job: async ({ attempt }) => {
          atWork += 1;
          most = Math.max(most, atWork);
          if (atWork === 2) both.resolve();
          await both.promise;
          await markSucceeded(record(), attempt, SUCCESS);
          atWork -= 1;
        },
        onEnd: async () => {},
      }),
      tidyUp: async () => {},
    });
    for (const id of ids) await ended({ ...backend.services, worker }, caller, id);
    expect([atWork, most]).toEqual([0, 2]);
    await worker.close(60_000);
  });

  test('of no places takes nothing', async () => {
    const worker = new OperationWorker({
      queue: { ...queueOf([]), take: () => Promise.reject(new Error('It asked.')) },
      databaseOf: async () => backend.database,
      logger: pino({ level: 'silent' }),
      concurrency: 0,
      maxRunning: 100,
    });
    worker.start({
      workOf: () => {
        throw new Error('It works.');
      },
      tidyUp: async () => {},
    });
    worker.nudge();
    await worker.close(60_000);
  });
});
