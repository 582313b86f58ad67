import { randomUUID } from 'node:crypto';
import { connectDatabase, type KilolockDatabase } from '../../src/database/connection.ts';
import { findNamespace } from '../../src/history/namespace.ts';
import { type Caller, findStatesByLabel, listStates } from '../../src/history/states.ts';
import {
  countAtWork,
  countKept,
  insertOperation,
  refuseWithoutRoom,
} from '../../src/operations/operation-admission.ts';
import {
  beat,
  claimOperation,
  expireArchives,
  findUnqueued,
  giveUpAbandoned,
  markQueued,
  markSucceeded,
} from '../../src/operations/operation-lifecycle.ts';
import { OperationQueue } from '../../src/operations/operation-queue.ts';
import { findLastSuccesses, searchOperations } from '../../src/operations/operation-records.ts';
import { recordEnded } from '../../test/operations/support/many-operations.ts';
import { effortsOf } from '../../test/support/explain.ts';
import type { BenchDatabase } from '../databases.ts';
import { SeededRandom } from '../history/seeded-random.ts';
import { median, percentile } from '../statistics.ts';

/** How much there is. */
export interface Size {
  readonly workspaces: number;
  readonly environmentsEach: number;
  readonly statesEach: number;
  /** Operations that have ended. */
  readonly ended: number;
  /** Operations that wait. */
  readonly waiting: number;
}

/** What a step takes, one at a time. */
export interface StepCost {
  readonly step: string;
  readonly medianMs: number;
  readonly p99Ms: number;
  /** How many pages of 8 KiB PostgreSQL looks at; null where a library asks. */
  readonly pages: number | null;
  readonly statements: number | null;
}

/** Fills a database with environments and their states, and with operations that have ended and that wait. */
export async function fill(database: BenchDatabase, size: Size, tell: (what: string) => void): Promise<void> {
  const { workspaces, environmentsEach, statesEach, ended, waiting } = size;
  await database.query(`insert into tenants (workspace_id, slug, name)
    select 'ws_' || n, 'ws-' || n, 'ws-' || n from generate_series(1, ${workspaces}) n`);
  await database.query(`insert into environments (tenant_id, env_public_id, slug)
    select id, 'env_' || n || substr(workspace_id, 3), 'env-' || n from tenants, generate_series(1, ${environmentsEach}) n
    where workspace_id like 'ws\\_%' and slug like 'ws-%'`);
  tell('states');
  await database.query(`insert into states (id, tenant_id, name, lineage)
    select md5(env_public_id || 'app-' || n)::uuid, tenant_id, workspace_id || '/' || env_public_id || '/app-' || n, gen_random_uuid()
    from environments join tenants on tenants.id = tenant_id, generate_series(0, ${statesEach - 1}) n
    where env_public_id like 'env\\_%\\_%'`);
  tell('operations');
  const connected = connectDatabase({ connectionString: database.connectionString });
  try {
    await recordEnded(connected, ended);
  } finally {
    await connected.close();
  }
  await database.query(`insert into state_archive.operation (kind, status, tenant_id, workspace_id, environment_id, state_name,
      state_label, actor, subject, heartbeat_at, request)
    select 'EXPORT', 'PENDING', tenant_id, workspace_id, env_public_id, workspace_id || '/' || env_public_id || '/waiting-' || n,
      'waiting-' || n, 'somebody', 'somebody', now(), '{}'
    from environments join tenants on tenants.id = tenant_id, generate_series(1, ${Math.ceil(waiting / (workspaces * environmentsEach))}) n
    where env_public_id like 'env\\_%\\_%' limit ${waiting}`);
  await database.query('vacuum analyze');
}

const page = { after: null, limit: 20 };
const everything = { kind: null, statuses: null, labelPrefix: '', actor: null, since: null };
const progress = { versionsDone: 1n, versionsTotal: 2n, bytesDone: 1n, bytesTotal: null };
const quota = { maxArchives: 1_000_000, maxArchiveBytesKept: 1e15 };

/** Measures each step in the life of an operation, and what looks after them, in environments chosen at random. */
export async function measure(
  given: BenchDatabase,
  { workspaces, environmentsEach, waiting }: Size,
  rounds: number,
): Promise<StepCost[]> {
  const database = connectDatabase({ connectionString: given.connectionString });
  const random = new SeededRandom('statements');
  const someone = async (): Promise<Caller> => {
    const n = 1 + random.below(workspaces);
    const selector = { workspace: `ws_${n}`, environment: `env_${1 + random.below(environmentsEach)}_${n}` };
    const namespace = await findNamespace(database.for('read'), selector);
    if (namespace === null) throw new Error(`There is no ${selector.environment}.`);
    const principal = {
      ...selector,
      subject: 'subject-3',
      actor: 'somebody',
      scopes: new Set(['state.read', 'state.export']),
      statePatterns: null,
    };
    return { database, namespace, principal, supportReason: null };
  };
  const record = async (caller: Caller): Promise<string> => {
    const id = randomUUID();
    await insertOperation(caller.database.for('record'), caller, {
      id,
      kind: 'EXPORT',
      label: 'app-1',
      stateName: `${caller.namespace.namePrefix}app-${id}`,
      stateId: null,
      archiveSha256: null,
      requestId: 'bench',
      idempotency: null,
      order: { kind: 'EXPORT' },
    });
    return id;
  };
  const options = { worker: 'bench', maxRunning: 20 };
  const success = {
    stateId: null,
    archive: { sha256: '00', sizeBytes: 1n, historyDigest: '00', fileName: '', objectKey: '' },
    report: null,
    versions: 1,
    rawBytes: 1n,
    kept: { retentionSeconds: 3600, retainUntil: null, legalHold: false },
    replacedOperationId: null,
  };
  let [caller, id] = [await someone(), ''];
  const statementsOf: readonly (readonly [string, (on: KilolockDatabase) => Promise<unknown>])[] = [
    ['admission: how many are at work', (on) => countAtWork(on.for('record'), caller)],
    ['admission: how many archives a caller has', (on) => countKept(on.for('record'), caller)],
    [
      'admission: what the environment keeps',
      (on) => refuseWithoutRoom(on.for('record'), { ...caller, database: on }, quota),
    ],
    [
      'recording',
      async (on) => {
        id = await record({ ...caller, database: on });
      },
    ],
    ['noting that it is queued', (on) => markQueued(on.for('record'), [id])],
    ['claim', (on) => claimOperation(on, id, options)],
    ['heartbeat', (on) => beat(on.for('record'), [{ id, attempt: 1, progress }])],
    ['success', (on) => markSucceeded(on.for('record'), { id, attempt: 1 }, success).catch(() => {})],
    ['sweep: whom nobody takes up', (on) => giveUpAbandoned(on.for('housekeeping'))],
    ['sweep: what is not queued', (on) => findUnqueued(on.for('housekeeping'))],
    ['housekeeping: whose time is past', (on) => expireArchives(on.for('housekeeping'), 1_000)],
    ['the operations of an environment', (on) => searchOperations(on.for('read'), caller, everything, page)],
    [
      'those that failed',
      (on) => searchOperations(on.for('read'), caller, { ...everything, statuses: ['FAILED'] }, page),
    ],
    [
      'a state by its name, and its last export',
      async (on) => {
        const state = (await findStatesByLabel(on.for('read'), caller, ['app-7'])).get('app-7');
        await findLastSuccesses(on.for('read'), caller, 'EXPORT', [state?.id ?? randomUUID()]);
      },
    ],
    [
      'a page of states',
      (on) => listStates(on.for('read'), caller, { labelPrefix: '', after: null, limit: 20 }),
    ],
  ];
  const times = new Map<string, number[]>();
  for (let round = 0; round < rounds; round += 1) {
    caller = await someone();
    for (const [step, work] of statementsOf) {
      const began = performance.now();
      await work(database);
      times.set(step, [...(times.get(step) ?? []), performance.now() - began]);
    }
  }
  const costs: StepCost[] = [];
  for (const [step, work] of statementsOf) {
    const efforts = await effortsOf(database, work);
    costs.push({
      step,
      ...spread(times.get(step) ?? []),
      pages: efforts.reduce((sum, { pages }) => sum + pages, 0),
      statements: efforts.length,
    });
  }
  costs.push(...(await measureQueue(database, waiting, rounds)));
  await database.close();
  return costs;
}

/** The queue's own statements, with as many jobs in it as operations wait. */
async function measureQueue(
  database: KilolockDatabase,
  waiting: number,
  rounds: number,
): Promise<StepCost[]> {
  const queue = new OperationQueue(database);
  for (let sent = 0; sent < waiting; sent += 1_000) {
    const jobs = Array.from({ length: Math.min(1_000, waiting - sent) }, () => ({
      id: randomUUID(),
      environment: null,
    }));
    await queue.send(jobs);
  }
  const times = new Map<string, number[]>();
  const timed = async <Result>(step: string, work: () => Promise<Result>): Promise<Result> => {
    const began = performance.now();
    const result = await work();
    times.set(step, [...(times.get(step) ?? []), performance.now() - began]);
    return result;
  };
  for (let round = 0; round < rounds; round += 1) {
    await timed('queue: send', () => queue.send([{ id: randomUUID(), environment: null }]));
    const jobs = await timed('queue: take four', () => queue.take(4));
    await timed('queue: hold four', () => queue.hold(jobs));
    const [first, ...others] = jobs;
    if (first === undefined) throw new Error('There is no job.');
    await timed('queue: remove', () => queue.remove(first));
    for (const job of others) await timed('queue: put back', () => queue.putBack(job));
    await timed('queue: look for the abandoned', () => queue.putBackAbandoned());
  }
  return [...times].map(([step, taken]) => ({ step, ...spread(taken), pages: null, statements: null }));
}

function spread(times: readonly number[]): Pick<StepCost, 'medianMs' | 'p99Ms'> {
  return { medianMs: median(times), p99Ms: percentile(times, 0.99) };
}
