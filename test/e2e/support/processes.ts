import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { COMPILE_CACHE } from '../../support/compile-cache.ts';
import { multipartForm } from '../../support/multipart-form.ts';
import { PlantedSecrets } from '../../support/planted-secrets.ts';

/** How a process ended, and all it printed. */
export interface Ended {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A process of the project, started as a person would start it. */
export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves with all of standard output once `text` was printed anywhere; rejects when the process ends before. */
  printed(text: string): Promise<string>;
}

/** The service, ready. */
export interface RunningService extends Started {
  readonly url: string;
  /** Everything printed to standard output so far. */
  readonly announcement: string;
  readonly token: string;
}

const started = new Set<Started>();
const directories = new Set<string>();

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Runs `node` on a file of the project, with no environment but the one given. */
export function start(file: string, environment: Readonly<Record<string, string>>): Started {
  return run([process.execPath, join(ROOT, file)], environment);
}

/** Runs `npm` as a person would, in the project's directory, with no environment but the one given. */
export function startNpm(args: readonly string[], environment: Readonly<Record<string, string>>): Started {
  return run(['npm', ...args], environment);
}

function run(
  [command, ...args]: [string, ...string[]],
  environment: Readonly<Record<string, string>>,
): Started {
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, NO_COLOR: '1', ...COMPILE_CACHE, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that what it leaves behind can be ended with it.
    detached: true,
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const ended = once(child, 'close').then(() => ({
    exitCode: child.exitCode,
    signal: child.signalCode,
    ...output,
  }));
  const printed = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        if (`${output.stdout}\n${output.stderr}`.includes(text)) resolve(output.stdout);
      };
      child.stdout.on('data', look);
      child.stderr.on('data', look);
      look();
      void ended.then(({ stderr }) => reject(new Error(`The process ended without "${text}": ${stderr}`)));
    });
  const running = { child, ended, printed };
  started.add(running);
  return running;
}

/** Starts the service on a data directory and a free port, and waits until it has announced itself. */
export async function startMain(environment: Readonly<Record<string, string>>): Promise<RunningService> {
  const running = start('src/main.ts', { PORT: '0', LOG_LEVEL: 'info', ...environment });
  const announcement = await running.printed('good for 8 hours');
  return {
    ...running,
    announcement,
    url: /^Endpoint +(\S+)\/graphql$/m.exec(announcement)?.[1] ?? '',
    token: /^Token +(\S+)$/m.exec(announcement)?.[1] ?? '',
  };
}

/** A directory of the test's own, which the account of PostgreSQL can reach. */
export async function temporaryDirectory(): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'state-archive-e2e-'));
  await chmod(parent, 0o755);
  directories.add(parent);
  return join(parent, 'data');
}

/**
 * A data directory in which the service has run before, with its sample, its keys and no operations: the copy of one
 * that is made once. Making a cluster takes longer than most tests.
 */
export async function usedDataDirectory(): Promise<string> {
  template ??= makeTemplate();
  const directory = await temporaryDirectory();
  // Files of the cluster belong to another account than ours when we are root.
  await promisify(execFile)('cp', ['-a', await template, directory]);
  return directory;
}

let template: Promise<string> | undefined;

async function makeTemplate(): Promise<string> {
  const directory = await temporaryDirectory();
  directories.delete(dirname(directory));
  const { child, ended } = await startMain({ DATA_DIR: directory });
  child.kill('SIGTERM');
  await ended;
  return directory;
}

/** Removes what {@link usedDataDirectory} copies. Call it in `afterAll`. */
export async function removeTemplate(): Promise<void> {
  if (template !== undefined) await rm(dirname(await template), { recursive: true, force: true });
}

/** Ends what a test left running, and removes its directories. Call it in `afterEach`. */
export async function cleanUp(): Promise<void> {
  for (const { child, ended } of started) {
    endGroup(child);
    const { stdout, stderr } = await ended;
    const secrets = new PlantedSecrets();
    const [, token] = /^Token +(\S+)$/m.exec(stdout) ?? [];
    if (token !== undefined) secrets.add(token);
    secrets.checkText('The log of a process', stderr);
  }
  started.clear();
  for (const directory of directories) {
    const pid = await postmasterPid(join(directory, 'data'));
    if (pid !== null) process.kill(pid, 'SIGKILL');
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
  directories.clear();
}

function endGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody of the group is left.
  }
}

/** The process id of the PostgreSQL that runs on a data directory, or null when none does. */
export async function postmasterPid(dataDirectory: string): Promise<number | null> {
  const file = join(dataDirectory, 'postgres', 'cluster', 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(() => '');
  const pid = Number(text.split('\n')[0]);
  if (!(pid > 0)) return null;
  try {
    process.kill(pid, 0);
    return pid;
  } catch {
    return null;
  }
}

/** Runs one statement on the embedded database of a data directory whose service is running. */
export async function onEmbedded<Row>(dataDirectory: string, text: string): Promise<Row[]> {
  const home = join(dataDirectory, 'postgres');
  const password = (await readFile(join(home, 'password'), 'utf8')).trim();
  const lines = (await readFile(join(home, 'cluster', 'postmaster.pid'), 'utf8')).split('\n');
  const client = new pg.Client({
    host: '127.0.0.1',
    port: Number(lines[3]),
    user: 'postgres',
    password,
    database: 'kilolock',
  });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** Sends a GraphQL document to a running service; throws when there is no data. */
export async function ask<Data>(
  { url, token }: Pick<RunningService, 'url' | 'token'>,
  query: string,
  variables: Readonly<Record<string, unknown>> = {},
  file?: Blob,
  headers: Readonly<Record<string, string>> = {},
): Promise<Data> {
  const form = multipartForm(query, variables, file && { bytes: file, name: 'in.klstate' });
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'apollo-require-preflight': 'true',
      ...(file === undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: file === undefined ? JSON.stringify({ query, variables }) : form,
  });
  const { data, errors } = (await response.json()) as { data?: Data; errors?: { message: string }[] };
  if (data === undefined || errors !== undefined) throw new Error(errors?.[0]?.message ?? 'no data');
  return data;
}
