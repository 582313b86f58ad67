import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import { sweepOperations } from '../../src/operations/operation-sweep.ts';
import { until } from '../support/until.ts';
import { type Backend, createCaller, ended, openBackend, operationOf, runExport } from './support/backend.ts';
import { postFirstDocument } from './support/histories.ts';
import { interceptQueries } from './support/intercept-queries.ts';

let backend: Backend;
let caller: Caller;

/** What happens to the statements of the queue; `left` counts down. */
const fault = { matches: /^$/, when: 'before' as 'before' | 'after', left: 0 };

function fail(statement: string, when: 'before' | 'after'): void {
  if (fault.when !== when || fault.left === 0 || !fault.matches.test(statement)) return;
  fault.left -= 1;
  throw new Error('The connection broke.');
}

beforeAll(async () => {
  backend = await openBackend((database) =>
    interceptQueries(
      database,
      (statement) => fail(statement, 'before'),
      (statement) => fail(statement, 'after'),
    ),
  );
});
beforeEach(async () => {
  caller = await createCaller(backend);
  await postFirstDocument(backend.database, caller, 'app');
});
afterAll(() => backend.close());

/** As time goes by: whoever holds a job and says nothing is believed dead, and what was never queued is. */
async function letTimePass(): Promise<void> {
  await backend.query(
    `update state_archive_queue.job set heartbeat_on = heartbeat_on - interval '1 minute', start_after = now()`,
  );
  await backend.query(
    `update state_archive.operation set created_at = created_at - interval '1 minute' where status = 'PENDING'`,
  );
  await backend.query(`update state_archive_queue.queue set monitor_claim_on = null, monitor_on = null`);
  await backend.services.queue.putBackAbandoned();
  await sweepOperations(backend.database, backend.services.queue);
}

const STATEMENTS = {
  send: /^\s*insert into state_archive_queue/i,
  take: /fetched|for update.*skip locked/is,
  remove: /delete from state_archive_queue/i,
};

describe('a queue whose connection breaks', () => {
  test.each(
    Object.keys(STATEMENTS).flatMap((what) => [
      [what, 'before'],
      [what, 'after'],
    ]) as [keyof typeof STATEMENTS, 'before' | 'after'][],
  )('at the %s, %s it was carried out, loses no operation and does none twice', async (what, when) => {
    Object.assign(fault, { matches: STATEMENTS[what], when, left: 1 });
    const { id } = await runExport(backend, caller, 'app', { waitSeconds: 0 });
    const isOver = async () => (await operationOf(backend, caller, id)).status === 'SUCCEEDED';
    await until(async () => {
      if (fault.left > 0) return false;
      await letTimePass();
      return (await isOver()) && (await jobsOf(id)) === 0;
    });
    expect(await backend.query('select attempt from state_archive.operation where id = $1', [id])).toEqual([
      { attempt: 1 },
    ]);
    expect(
      await backend.query(`select count(*)::int from events where payload ->> 'archive_id' = $1`, [id]),
    ).toEqual([{ count: 1 }]);
  });

  test('for long keeps operations waiting, tells their callers so, and does them when it is over', async () => {
    Object.assign(fault, { matches: /./, when: 'before', left: Number.POSITIVE_INFINITY });
    const waiting = await runExport(backend, caller, 'app', { waitSeconds: 1 });
    expect(waiting).toMatchObject({ status: 'PENDING', error: null });
    fault.left = 0;
    await letTimePass();
    await ended(backend.services, caller, waiting.id);
    expect((await operationOf(backend, caller, waiting.id)).status).toBe('SUCCEEDED');
  });

  const jobsOf = async (id: string) =>
    (await backend.query('select id from state_archive_queue.job where id = $1', [id])).length;
});
