import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readdir, rm, symlink, utimes } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { loadOrCreateDevelopmentKey, signDevelopmentToken } from '../../src/auth/development-key.ts';
import { connectDatabase } from '../../src/database/connection.ts';
import { findNamespace } from '../../src/history/namespace.ts';
import { MAX_ATTEMPTS } from '../../src/operations/operation-lifecycle.ts';
import { destinationOf } from '../../src/restore/destination.ts';
import { appendSnapshot } from '../../src/restore/snapshot.ts';
import { documentOf } from '../graphql/support/states.ts';
import { freePort } from '../support/free-port.ts';
import { startPgbouncer } from '../support/pgbouncer.ts';
import { type S3Server, startS3Server } from '../support/s3-server.ts';
import { Client, type ToldOperation, UnexpectedAnswerError } from './load.ts';
import { Machine, ROOT } from './machines.ts';

/** What is to happen. */
export interface ChaosOptions {
  /** A prepared database of its own, self-hosted, without states. */
  readonly connectionString: string;
  /** Decides what is asked for, who is killed and when, as far as clocks let it. */
  readonly seed: number;
  /** How many processes are killed, one after another. */
  readonly kills: number;
  /** The least number of exports and imports. */
  readonly operations: number;
  /** The longest pause between two kills. */
  readonly pauseMs: number;
  /** How many versions each history has. */
  readonly versions: number;
  readonly store: 'file' | 's3';
  /** What the processes reach the database by: itself, or pgbouncer in transaction mode. */
  readonly pooler: 'none' | 'pgbouncer';
  /** The commit of another release, which the second replica and the second worker run; null: all run this one. */
  readonly beside: string | null;
  /** How often a process of PostgreSQL is killed, upon which it ends all sessions and starts anew. The server must be its own. */
  readonly databaseCrashes: number;
  readonly tell: (line: string) => void;
}

/** What was found. */
export interface ChaosReport {
  readonly killed: Readonly<Record<string, number>>;
  readonly killedAtCommit: number;
  /** How many processes stood still for a while, and woke when others had done their work. */
  readonly frozen: number;
  /** Operations by kind and outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Operations by how often they were begun. */
  readonly attempts: Readonly<Record<string, number>>;
  readonly previews: { readonly count: number; readonly p50Ms: number; readonly p99Ms: number };
  /** What must not be. */
  readonly problems: readonly string[];
}

const SOURCES = 4;
const OUTSTANDING = 8;
const STOP_MS = 60_000;
const SETTLE_MS = 180_000;
/** After so long a balancer would ask another replica. */
const PREVIEW_PATIENCE_MS = 5_000;
/** Fewer than the four processes would take, so that they share them. */
const POOLED_CONNECTIONS = 12;
/** Longer than anything is kept that nobody knows. */
const LONG_MS = 8 * 86_400_000;
/** What one of the histories does not compress to less than, so that its archive is sent to a bucket in parts. */
const PARTED_BYTES = 12 * 1024 * 1024;
/** One of so many is frozen, beside those that are killed, */
const KILLS_A_FREEZE = 8;
/** for longer than it is believed to be at work. */
const FREEZE_MS = 20_000;

interface Source {
  readonly label: string;
  readonly historyDigest: string;
  readonly archive: Uint8Array<ArrayBuffer>;
}

/** What is asked for, and how it has to end. */
interface Task {
  readonly what: string;
  readonly start: (client: Client, key: string) => Promise<ToldOperation>;
  readonly mayEnd: readonly string[];
  /** The state it is about, with its digest when it succeeded, and when it did not. */
  readonly leaves: { readonly label: string; readonly succeeded: string; readonly otherwise: string } | null;
  readonly isCancelled: boolean;
}

const OPERATION = 'operation { id status error { code message } } userErrors { code message }';
const EXPORT = `mutation ($name: String!, $key: String, $wait: Int!) {
  exportStateArchive(input: { name: $name, idempotencyKey: $key, waitSeconds: $wait }) { ${OPERATION} } }`;
const IMPORT = `mutation ($file: Upload!, $name: String!, $key: String!, $dryRun: Boolean!, $onConflict: StateArchiveConflictPolicy!,
  $confirmName: String, $serial: BigInt) {
  importStateArchive(input: { file: $file, name: $name, idempotencyKey: $key, waitSeconds: 1, dryRun: $dryRun,
    onConflict: $onConflict, confirmName: $confirmName, expectedCurrentSerial: $serial, allowSharedLineage: true }) { ${OPERATION} } }`;
const STATUS = 'query ($id: ID!) { stateArchiveOperation(id: $id) { id status error { code message } } }';
const CANCEL =
  'mutation ($id: ID!) { cancelStateArchiveOperation(input: { id: $id }) { operation { id status } } }';
const PREVIEW =
  'query ($name: String!) { stateArchive(name: $name) { manifest { historyDigest versionCount } } }';
const LINK = 'query ($id: ID!) { stateArchiveOperation(id: $id) { archive { downloadUrl } } }';

/**
 * Puts two replicas and two workers, with disks of their own, one database and one store, to work on exports and imports beside
 * previews, and kills one of the four again and again, some while their transaction commits. Then looks for what must not be:
 * an operation that ended in no way of its own, twice, or by half; a row, a file, an upload, a job or a lock too many.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const directory = await mkdtemp(join(tmpdir(), 'state-archive-chaos-'));
  const s3 = options.store === 's3' ? await startS3Server() : null;
  s3?.createBucket('chaos');
  const pooler =
    options.pooler === 'pgbouncer'
      ? await startPgbouncer(options.connectionString, POOLED_CONNECTIONS)
      : null;
  const sql = new pg.Pool({ connectionString: options.connectionString, max: 4 });
  // The tests' server tells of a commit before it is safe: a crash would lose operations that somebody was told of.
  await sql.query(
    `do $$ begin execute format('alter database %I set synchronous_commit = on', current_database()); end $$`,
  );
  sql.on('error', () => {});
  const machines: Machine[] = [];
  try {
    const checkout =
      options.beside === null ? ROOT : await checkOut(options.beside, join(directory, 'beside'));
    const token = await signDevelopmentToken(await loadOrCreateDevelopmentKey(directory), {
      subject: 'chaos',
      scopes: ['state.read', 'state.export', 'state.import', 'state.overwrite'],
      ttlSeconds: 6 * 3600,
    });
    for (const name of ['replica-1', 'replica-2', 'worker-1', 'worker-2']) {
      const DATA_DIR = join(directory, name);
      await mkdir(DATA_DIR, { mode: 0o700 });
      await copyFile(join(directory, 'development-key.jwk'), join(DATA_DIR, 'development-key.jwk'));
      const environment = {
        DATA_DIR,
        DATABASE_URL: pooler?.connectionString ?? options.connectionString,
        ARCHIVE_STORE_URL: s3 === null ? `file://${join(directory, 'store')}` : 's3://chaos/archives',
        ...s3?.environment,
        LINK_KEYS: 'the-links-of-the-chaos-and-nothing-else',
        AUTH_DEV_KEY: 'true',
        MAX_OPERATIONS_PER_PRINCIPAL: '1000',
        DRAIN_SECONDS: '0',
        LOG_LEVEL: 'warn',
        WORKER_CONCURRENCY: '2',
      };
      machines.push(
        new Machine(name, name.startsWith('replica') ? 'replica' : 'worker', {
          port: await freePort(),
          environment,
          checkout: name.endsWith('2') ? checkout : ROOT,
        }),
      );
    }
    return await new Chaos(options, sql, machines, token, directory, s3).run();
  } finally {
    await Promise.all(machines.map((machine) => machine.stop(1_000)));
    await sql.end();
    await pooler?.stop();
    await s3?.close();
    await rm(directory, { recursive: true, force: true });
  }
}

/** A checkout of another release, on the packages that are installed for this one. */
async function checkOut(commit: string, directory: string): Promise<string> {
  const files = execFileSync('git', ['archive', '--format=tar', commit], { cwd: ROOT, maxBuffer: 2 ** 30 });
  await mkdir(directory);
  execFileSync('tar', ['-x', '-C', directory], { input: files });
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  return directory;
}

class Chaos {
  readonly #options: ChaosOptions;
  readonly #sql: pg.Pool;
  readonly #machines: readonly Machine[];
  readonly #client: Client;
  readonly #directory: string;
  readonly #s3: S3Server | null;
  readonly #problems: string[] = [];
  readonly #previewsMs: number[] = [];
  readonly #tasks = new Map<string, Task>();
  readonly #random: () => number;
  #killedAtCommit = 0;
  #frozen = 0;
  #isOver = false;

  constructor(
    options: ChaosOptions,
    sql: pg.Pool,
    machines: readonly Machine[],
    token: string,
    directory: string,
    s3: S3Server | null,
  ) {
    this.#options = options;
    this.#sql = sql;
    this.#machines = machines;
    this.#directory = directory;
    this.#s3 = s3;
    this.#random = randomOf(options.seed);
    const replicas = machines.filter(({ role }) => role === 'replica');
    this.#client = new Client(replicas, token, (below) => this.#below(below));
  }

  async run(): Promise<ChaosReport> {
    const { tell, kills } = this.#options;
    await this.#slowCommits();
    const labels = await this.#postSources();
    for (const machine of this.#machines) machine.start();
    await Promise.all(this.#machines.map(({ ready }) => ready));
    const deaths = this.#machines.flatMap((machine) => machine.deaths);
    if (deaths.length > 0) throw new Error(deaths.join('\n'));
    // One that starts while PostgreSQL does ends with a line that says so.
    for (const machine of this.#machines) machine.isLookedAfter = this.#options.databaseCrashes > 0;
    const sources = await this.#takeArchives(labels);
    tell(`${this.#machines.length} processes are up; ${kills} will be killed`);

    const previews = [1, 2].map(() => this.#previewWhileRunning(sources));
    const load = this.#submitWhileRunning(sources);
    const databaseCrashes = this.#crashDatabase();
    await this.#killSome();
    await databaseCrashes;
    this.#isOver = true;
    await Promise.all([load, ...previews]);
    tell('nobody is killed any more');

    await this.#settle();
    await this.#compareDigests();
    for (const machine of this.#machines) {
      machine.isLookedAfter = false;
      const end = await machine.stop(STOP_MS);
      if (end !== 'ended') this.#problems.push(`${machine.name} was asked to end, and ${end}`);
      this.#problems.push(...machine.deaths);
    }
    await this.#keepHouse();
    await this.#lookForRows();
    await this.#lookForFiles();
    return this.#report();
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  async #query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.#sql.query<Row>(text, values)).rows;
  }

  /** Every COMMIT of a success takes a while, so that a kill can meet it. */
  async #slowCommits(): Promise<void> {
    await this.#sql.query(`
      create schema chaos;
      create function chaos.dawdle() returns trigger language plpgsql as
        $$ begin perform pg_catalog.pg_sleep(0.1 + pg_catalog.random() * 0.4); return null; end $$;
      create constraint trigger dawdle after update on state_archive.operation deferrable initially deferred
        for each row when (old.status = 'RUNNING' and new.status = 'SUCCEEDED') execute function chaos.dawdle()`);
  }

  async #postSources(): Promise<string[]> {
    const database = connectDatabase({ connectionString: this.#options.connectionString });
    try {
      const namespace = await findNamespace(database.for('read'), null);
      if (namespace === null) throw new Error('There is no self-hosted environment.');
      const labels = Array.from({ length: SOURCES }, (_, index) => `chaos/source-${index}`);
      for (const [index, label] of labels.entries()) {
        const lineage = crypto.randomUUID();
        const parted =
          this.#s3 !== null && index === 0 ? Math.ceil(PARTED_BYTES / this.#options.versions) : 0;
        for (let version = 1; version <= this.#options.versions; version += 1) {
          const resources = Object.fromEntries(
            Array.from({ length: 20 }, (_, n) => [`r${n}`, `${label} ${version} ${'x'.repeat(500)}`]),
          );
          if (parted > 0) resources.r0 = randomBytes(parted).toString('hex');
          const document = Buffer.from(documentOf(lineage, { resources }));
          const snapshot = { document, source: 'apply', actor: 'ci' } as const;
          await appendSnapshot(database, destinationOf(namespace, label), snapshot);
        }
      }
      // A state without a version: its export fails.
      await this.#sql.query(`insert into states (name) values ('chaos/shell')`);
      return labels;
    } finally {
      await database.close();
    }
  }

  async #takeArchives(labels: readonly string[]): Promise<Source[]> {
    const sources: Source[] = [];
    for (const label of labels) {
      const { exportStateArchive } = await this.#client.ask<{
        exportStateArchive: { operation: ToldOperation };
      }>(EXPORT, { name: label, key: null, wait: 25 });
      const { id } = exportStateArchive.operation;
      const { stateArchiveOperation } = await this.#client.ask<{
        stateArchiveOperation: { archive: { downloadUrl: string } };
      }>(LINK, { id });
      const archive = await this.#client.download(stateArchiveOperation.archive.downloadUrl);
      sources.push({ label, archive, historyDigest: await this.#digestOf(label) });
    }
    return sources;
  }

  async #digestOf(label: string): Promise<string> {
    const { stateArchive } = await this.#client.ask<{
      stateArchive: { manifest: { historyDigest: string } } | null;
    }>(PREVIEW, { name: label });
    return stateArchive?.manifest.historyDigest ?? 'none';
  }

  async #previewWhileRunning(sources: readonly Source[]): Promise<void> {
    while (!this.#isOver) {
      const source = sources[this.#below(sources.length)];
      const begun = performance.now();
      try {
        const answer = await this.#client.once(PREVIEW, { name: source?.label }, null, PREVIEW_PATIENCE_MS);
        if (answer !== null) this.#previewsMs.push(performance.now() - begun);
      } catch (error) {
        this.#problems.push(`a preview: ${(error as Error).message}`);
      }
      await pause(50);
    }
  }

  async #submitWhileRunning(sources: readonly Source[]): Promise<void> {
    const { operations } = this.#options;
    const lanes = Array.from({ length: OUTSTANDING }, async () => {
      while (!this.#isOver || this.#tasks.size < operations) {
        const number = this.#tasks.size + 1;
        const key = `chaos-${number}`;
        const task = this.#taskOf(number, sources);
        // Taken before it is started: so many are asked for.
        this.#tasks.set(key, task);
        try {
          const { id } = await task.start(this.#client, key);
          this.#tasks.delete(key);
          this.#tasks.set(id, task);
          if (task.isCancelled) await this.#client.ask(CANCEL, { id });
          await this.#ended(id);
        } catch (error) {
          if (!(error instanceof UnexpectedAnswerError)) throw error;
          this.#problems.push(`${task.what}: ${error.message}`);
        }
      }
    });
    await Promise.all(lanes);
  }

  #taskOf(number: number, sources: readonly Source[]): Task {
    const source = sources[this.#below(sources.length)];
    const other = sources[this.#below(sources.length)];
    if (source === undefined || other === undefined) throw new Error('There is no source.');
    const label = `chaos/copy-${number}`;
    const importing =
      (name: string, variables: Readonly<Record<string, unknown>> = {}, archive = source.archive) =>
      async (client: Client, key: string) => {
        const { importStateArchive } = await client.ask<{ importStateArchive: { operation: ToldOperation } }>(
          IMPORT,
          { name, key, dryRun: false, onConflict: 'REFUSE', ...variables },
          archive,
        );
        return importStateArchive.operation;
      };
    const exporting = (name: string) => async (client: Client, key: string) => {
      const { exportStateArchive } = await client.ask<{ exportStateArchive: { operation: ToldOperation } }>(
        EXPORT,
        { name, key, wait: 1 },
      );
      return exportStateArchive.operation;
    };
    const plain = { mayEnd: ['SUCCEEDED'], leaves: null, isCancelled: false };
    switch (this.#below(8)) {
      case 0:
      case 1:
        return { ...plain, what: 'an export', start: exporting(source.label) };
      case 2:
        return {
          ...plain,
          what: 'an export of nothing',
          start: exporting('chaos/shell'),
          mayEnd: ['FAILED STATE_EMPTY'],
        };
      case 3:
        return { ...plain, what: 'a dry run', start: importing(label, { dryRun: true }) };
      case 4:
        return {
          ...plain,
          what: 'an import that is cancelled',
          start: importing(label),
          mayEnd: ['SUCCEEDED', 'CANCELLED'],
          leaves: { label, succeeded: source.historyDigest, otherwise: 'none' },
          isCancelled: true,
        };
      case 5:
        return {
          ...plain,
          what: 'an overwrite',
          start: async (client, key) => {
            const first = await importing(label)(client, `${key}-before`);
            await this.#ended(first.id);
            this.#tasks.set(first.id, {
              ...plain,
              what: 'an import before an overwrite',
              start: importing(label),
            });
            return importing(
              label,
              {
                onConflict: 'OVERWRITE',
                confirmName: label,
                serial: String(this.#options.versions),
              },
              other.archive,
            )(client, key);
          },
          leaves: { label, succeeded: other.historyDigest, otherwise: source.historyDigest },
        };
      default:
        return {
          ...plain,
          what: 'an import',
          start: importing(label),
          leaves: { label, succeeded: source.historyDigest, otherwise: 'none' },
        };
    }
  }

  /** Waits until an operation has ended, by its record. */
  async #ended(id: string): Promise<ToldOperation> {
    for (;;) {
      const { stateArchiveOperation } = await this.#client.ask<{
        stateArchiveOperation: ToldOperation | null;
      }>(STATUS, { id });
      const told = stateArchiveOperation;
      if (told !== null && told.status !== 'PENDING' && told.status !== 'RUNNING') return told;
      await pause(200);
    }
  }

  async #killSome(): Promise<void> {
    const { kills, pauseMs, tell } = this.#options;
    const frozen: Promise<void>[] = [];
    for (let kill = 1; kill <= kills; kill += 1) {
      if (kill % KILLS_A_FREEZE === 0) {
        const machine = this.#machines[this.#below(this.#machines.length)];
        if (machine !== undefined) frozen.push(machine.freeze(FREEZE_MS));
      }
      await pause(pauseMs * (0.25 + 0.75 * this.#random()));
      const committing = kill % 3 === 0 ? await this.#whoeverCommits() : null;
      if (committing !== null) this.#killedAtCommit += 1;
      const victim = committing ?? this.#machines[this.#below(this.#machines.length)];
      await victim?.kill();
      if (kill % 10 === 0) tell(`${kill} killed, ${this.#tasks.size} operations`);
    }
    await Promise.all(frozen);
    this.#frozen = frozen.length;
  }

  /** The machine whose record of success is being committed at this moment; null when none does so for a while. */
  async #whoeverCommits(): Promise<Machine | null> {
    const prefix = `${hostname()}:`;
    for (let look = 0; look < 150; look += 1) {
      const rows = await this.#query<{ worker: string }>(
        `select worker from state_archive.operation operation join pg_stat_activity activity
           on activity.backend_xid = operation.xmax
         where operation.status = 'RUNNING' and activity.state = 'active' and activity.query = 'commit'`,
      ).catch(() => []);
      const pids = rows.map(({ worker }) => Number(worker.slice(prefix.length)));
      const found = this.#machines.find(({ pid }) => pids.includes(pid));
      if (found !== undefined) return found;
      await pause(20);
    }
    return null;
  }

  /** Kills a process of PostgreSQL, now and then. */
  async #crashDatabase(): Promise<void> {
    const { databaseCrashes, kills, pauseMs, tell } = this.#options;
    for (let crash = 1; crash <= databaseCrashes; crash += 1) {
      await pause((kills * pauseMs * 0.6) / (databaseCrashes + 1));
      const [backend] = await this.#query<{ pid: number }>(
        `select pid from pg_stat_activity
         where application_name = 'kilolock-state-archive' and datname = current_database() limit 1`,
      );
      if (backend === undefined) continue;
      process.kill(backend.pid, 'SIGKILL');
      tell('PostgreSQL crashed');
    }
  }

  /** Every operation has to end, now that nobody is killed. */
  async #settle(): Promise<void> {
    const end = performance.now() + SETTLE_MS;
    for (;;) {
      const left = await this.#query<{ id: string; status: string }>(
        `select id, status from state_archive.operation where status in ('PENDING', 'RUNNING')`,
      );
      const jobs = await this.#query('select id from state_archive_queue.job');
      const uploads = await this.#uploadsInUse();
      if (left.length === 0 && jobs.length === 0 && uploads.length === 0) return;
      if (performance.now() > end) {
        const what = { operations: left, jobs: jobs.length, uploads };
        this.#problems.push(`still there after ${SETTLE_MS / 1000} s: ${JSON.stringify(what)}`);
        return;
      }
      await pause(500);
    }
  }

  async #compareDigests(): Promise<void> {
    for (const [id, { what, leaves }] of this.#tasks) {
      const [row] = await this.#query<{ status: string }>(
        'select status from state_archive.operation where id::text = $1',
        [id],
      );
      if (leaves === null) continue;
      const found = await this.#digestOf(leaves.label);
      const expected = row?.status === 'SUCCEEDED' ? leaves.succeeded : leaves.otherwise;
      if (found !== expected) {
        this.#problems.push(
          `${what} ${id} ${row?.status}: ${leaves.label} has the digest ${found}, not ${expected}`,
        );
      }
    }
  }

  /** The uploads that an operation uses. Others were received by a process that died before there was one. */
  async #uploadsInUse(): Promise<string[]> {
    const rows = await this.#query<{ id: string }>(
      'select id from state_archive.upload where operation_id is not null',
    );
    return rows.map(({ id }) => id);
  }

  /** What processes that were killed left behind goes when one starts, and what was received for nothing after a day. */
  async #keepHouse(): Promise<void> {
    await this.#sql.query(`update state_archive.upload set expires_at = now() - interval '1 day'`);
    // What somebody who was killed left between two steps is found by the next look through the store, whose turn is now.
    await this.#sql.query("update state_archive.housekeeping set begun_at = '-infinity', position = ''");
    this.#s3?.letTimePass(LONG_MS);
    if (this.#s3 === null) {
      const longAgo = new Date(Date.now() - LONG_MS);
      const uploads = join(this.#directory, 'store', 'uploads');
      for (const name of await readdir(uploads)) await utimes(join(uploads, name), longAgo, longAgo);
    }
    for (const machine of this.#machines) {
      machine.start();
      await machine.ready;
      const end = await machine.stop(STOP_MS);
      if (end !== 'ended') this.#problems.push(`${machine.name} ${end}`);
    }
  }

  async #lookForRows(): Promise<void> {
    const rows = await this.#query<{
      id: string;
      kind: string;
      outcome: string;
      attempt: number;
      isPart: boolean;
      isDryRun: boolean;
      events: number;
      mapped: number;
      versions: number;
    }>(
      `select id, kind, status || coalesce(' ' || error_code, '') as outcome, attempt, request is null as "isPart",
         coalesce((request #>> '{order,dryRun}')::boolean, false) as "isDryRun",
         (select count(*)::int from events where payload ->> 'archive_id' = operation.id::text
           and events.kind in ('state_export', 'state_import')) as events,
         (select count(*)::int from state_archive.version_mapping where operation_id = operation.id) as mapped,
         versions_done::int as versions
       from state_archive.operation`,
    );
    for (const { id, kind, outcome, attempt, isPart, isDryRun, events, mapped, versions } of rows) {
      const task = this.#tasks.get(id);
      const said = `${task?.what ?? kind} ${id} ${outcome}`;
      const isExhausted = outcome === 'FAILED OPERATION_INTERRUPTED' && attempt === MAX_ATTEMPTS;
      if (task !== undefined && !task.mayEnd.includes(outcome) && !isExhausted) {
        this.#problems.push(`${said}: not its own end`);
      }
      const expectedEvents = isDryRun && outcome === 'SUCCEEDED' ? 0 : 1;
      if (events !== expectedEvents) this.#problems.push(`${said}: ${events} events`);
      const isRestored = kind === 'IMPORT' && outcome === 'SUCCEEDED' && !isDryRun;
      if (mapped !== (isRestored ? versions : 0))
        this.#problems.push(`${said}: ${mapped} versions are mapped`);
      // What was asked for by nobody who is left, before a kill, has to end as well; a part ends with its whole.
      if (task === undefined && !isPart && outcome !== 'SUCCEEDED' && !isExhausted)
        this.#problems.push(`${said}: nobody's`);
    }
    const known = new Set(rows.map(({ id }) => id));
    for (const [id, { what }] of this.#tasks) {
      if (!known.has(id) && !id.startsWith('chaos-')) this.#problems.push(`${what} ${id} has no record`);
    }
    const checks: readonly (readonly [what: string, text: string])[] = [
      ['states of one name', 'select name from states group by tenant_id, name having count(*) > 1'],
      [
        'states without a version',
        `select name from states where current_version_id is null and name <> 'chaos/shell'`,
      ],
      [
        'histories that are not whole',
        `select state_id from state_versions group by state_id having count(*) <> ${this.#options.versions}`,
      ],
      [
        'advisory locks',
        `select objid from pg_locks where locktype = 'advisory'
           and database = (select oid from pg_database where datname = current_database())`,
      ],
      [
        'transactions',
        `select query from pg_stat_activity
         where datname = current_database() and state like 'idle in transaction%'`,
      ],
      ['jobs', 'select id from state_archive_queue.job'],
      ['records of uploads', 'select id, operation_id from state_archive.upload'],
      [
        'rows of no state',
        `select id from resources where not exists (select from states where states.id = resources.state_id)`,
      ],
    ];
    for (const [what, text] of checks) {
      const found = await this.#query(text);
      if (found.length > 0)
        this.#problems.push(`${found.length} ${what}: ${JSON.stringify(found.slice(0, 3))}`);
    }
  }

  async #lookForFiles(): Promise<void> {
    const kept = await this.#query<{ key: string }>(
      `select archive_object_key as key from state_archive.operation
       where kind = 'EXPORT' and status = 'SUCCEEDED' order by 1`,
    );
    const expected = kept.map(({ key }) => key).sort();
    const found = (await this.#objects('archives')).sort();
    const [missing, extra] = [
      expected.filter((key) => !found.includes(key)),
      found.filter((key) => !expected.includes(key)),
    ];
    if (missing.length > 0) this.#problems.push(`archives that are not there: ${missing.join(' ')}`);
    if (extra.length > 0) this.#problems.push(`archives of nobody: ${extra.join(' ')}`);
    const uploads = await this.#objects('uploads');
    if (uploads.length > 0) this.#problems.push(`uploads of nobody: ${uploads.join(' ')}`);
    const begun = this.#s3?.openUploads ?? 0;
    if (begun > 0) this.#problems.push(`${begun} multipart uploads that nobody completes`);
    for (const { name } of this.#machines) {
      const scratch = join(this.#directory, name, 'scratch');
      const entries = await readdir(scratch, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map((entry) => entry.name);
      if (files.length > 0) this.#problems.push(`${name} left ${files.join(' ')}`);
    }
  }

  async #objects(kind: 'archives' | 'uploads'): Promise<string[]> {
    if (this.#s3 === null) return readdir(join(this.#directory, 'store', kind));
    const prefix = `archives/${kind}/`;
    return this.#s3.keys('chaos').flatMap((key) => (key.startsWith(prefix) ? key.slice(prefix.length) : []));
  }

  async #report(): Promise<ChaosReport> {
    const outcomes = await this.#query<{ outcome: string; count: number }>(
      `select kind || ' ' || status || coalesce(' ' || error_code, '') as outcome, count(*)::int
       from state_archive.operation group by 1 order by 1`,
    );
    const attempts = await this.#query<{ attempt: number; count: number }>(
      'select attempt, count(*)::int from state_archive.operation group by 1 order by 1',
    );
    const sorted = this.#previewsMs.toSorted((a, b) => a - b);
    const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
    return {
      killed: Object.fromEntries(this.#machines.map(({ name, kills }) => [name, kills])),
      killedAtCommit: this.#killedAtCommit,
      frozen: this.#frozen,
      outcomes: Object.fromEntries(outcomes.map(({ outcome, count }) => [outcome, count])),
      attempts: Object.fromEntries(attempts.map(({ attempt, count }) => [attempt, count])),
      previews: { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99) },
      problems: this.#problems,
    };
  }
}

/** Numbers from 0 to 1 that a seed repeats (mulberry32, by T. Ettinger). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
