import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BenchDatabase } from '../databases.ts';
import { GraphqlClient } from './graphql-client.ts';
import type { ProbeQuestion, ProbeReport } from './probe.ts';

/** The real service, in a process of its own. */
export interface BenchService {
  readonly endpoint: string;
  /** One that may do everything. */
  readonly token: string;
  readonly client: GraphqlClient;
  /** The same, as a gateway that has proven to be one. */
  readonly gateway: GraphqlClient;
  /** Begins to watch the event loop, anew if it did so before. */
  watchEventLoop(): Promise<void>;
  /** What its process took so far. */
  report(): Promise<ProbeReport>;
  /** Shuts it down as its operator would. */
  stop(): Promise<void>;
}

/** The service ended before it was asked to. */
export class ServiceEndedError extends Error {
  override readonly name = 'ServiceEndedError';
}

const ROOT = new URL('../../', import.meta.url);
/** How `npm start` runs Node.js: with which variables, and with what behind it, the file to run last. */
const START = readStartScript();
const PROBE = new URL('./probe.ts', import.meta.url).href;
const MAX_FILE_BYTES = 2 ** 31;
const GATEWAY_SECRET = 'the-secret-of-the-bench';
const ANNOUNCEMENT = /^Endpoint +(\S+)\n(?:.*\n)*?Token +(\S+)\n/m;

function readStartScript(): {
  readonly environment: Readonly<Record<string, string>>;
  readonly command: readonly string[];
} {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'));
  const [, variables, command] = /^exec env ((?:\w+=\S+ )+)node (.+)$/.exec(scripts.start) ?? [];
  if (variables === undefined || command === undefined)
    throw new Error('package.json has another script "start" than the bench knows to run.');
  const environment = Object.fromEntries(
    variables
      .trim()
      .split(' ')
      .map((variable) => variable.split('=')),
  );
  return { environment, command: command.split(' ') };
}

/** Starts the service on a database and waits until it can be asked. */
export async function startBenchService(
  database: BenchDatabase,
  {
    nodeOptions = [],
    environment = {},
  }: {
    readonly nodeOptions?: readonly string[];
    /** What else is set, or otherwise. */
    readonly environment?: Readonly<Record<string, string>>;
  } = {},
): Promise<BenchService> {
  const directory = await mkdtemp(join(tmpdir(), 'state-archive-bench-'));
  const child = spawn(process.execPath, [...nodeOptions, '--import', PROBE, ...START.command], {
    cwd: fileURLToPath(ROOT),
    env: {
      PATH: process.env.PATH,
      ...START.environment,
      PORT: '0',
      DATABASE_URL: database.connectionString,
      DATA_DIR: join(directory, 'data'),
      AUTH_DEV_KEY: 'true',
      GATEWAY_SECRET,
      LOG_LEVEL: 'error',
      MAX_OPERATIONS_PER_PRINCIPAL: '100',
      MAX_INLINE_UPLOAD_BYTES: String(MAX_FILE_BYTES),
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-2000);
  });
  const killAtExit = () => child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const ended = once(child, 'close').then(async () => {
    process.off('exit', killAtExit);
    await rm(directory, { recursive: true, force: true });
    const how = child.signalCode ?? `exit code ${child.exitCode}`;
    return new ServiceEndedError(`The service ended with ${how}: ${errors.trim().split('\n').at(-1)}`);
  });
  /** Settles as `work` does, unless the service ends before. */
  const whileRunning = <Result>(work: Promise<Result>): Promise<Result> =>
    Promise.race([
      work,
      ended.then((error) => {
        throw error;
      }),
    ]);
  const askProbe = async (question: ProbeQuestion): Promise<unknown> => {
    const answer = once(child, 'message');
    child.send(question);
    return (await whileRunning(answer))[0];
  };

  const [, endpoint = '', token = ''] = await whileRunning(
    new Promise<RegExpExecArray>((resolve) => {
      let announcement = '';
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        announcement += text;
        const match = ANNOUNCEMENT.exec(announcement);
        if (match !== null) resolve(match);
      });
    }),
  );
  return {
    endpoint,
    token,
    client: new GraphqlClient(endpoint, token),
    gateway: new GraphqlClient(endpoint, token, { 'x-gateway-secret': GATEWAY_SECRET }),
    async watchEventLoop() {
      await askProbe('watch');
    },
    report: async () => (await askProbe('report')) as ProbeReport,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
