import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type * as pty from '@lydell/node-pty';

/** How a call of `kl` ended. */
export interface Ended {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** How `kl` is called. */
export interface CallOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly input?: string | Uint8Array;
}

/** A call of `kl` that is at work. */
export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves once standard error holds this text; rejects when the program ends before. */
  said(text: string): Promise<void>;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The program, as a person calls it. */
export const KL = `${ROOT}bin/kl`;

/** What `kl` is given of the environment: nothing of who runs the tests, and what it compiled in another call. */
function environmentOf(env: CallOptions['env'] = {}): Record<string, string> {
  const XDG_CACHE_HOME = `${ROOT}node_modules/.cache`;
  return { PATH: process.env.PATH ?? '', HOME: '/nonexistent', XDG_CACHE_HOME, ...env };
}

/** Starts `kl` with pipes for its streams. */
export function startKl(args: readonly string[], { env, cwd, input }: CallOptions = {}): Running {
  const child = spawn(KL, args, { cwd, env: environmentOf(env), stdio: ['pipe', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('latin1').on('data', (text: string) => {
      output[name] += text;
    });
  }
  // It may end before it has read anything.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const ended = once(child, 'close').then(() => ({
    exitCode: child.exitCode,
    stdout: Buffer.from(output.stdout, 'latin1').toString(),
    stderr: Buffer.from(output.stderr, 'latin1').toString(),
  }));
  const said = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (output.stderr.includes(text)) resolve();
      };
      child.stderr.on('data', look);
      look();
      void ended.then(({ stderr }) => reject(new Error(`kl ended without "${text}": ${stderr}`)));
    });
  return { child, ended, said };
}

/** Runs `kl` to its end. */
export function kl(args: readonly string[], options: CallOptions = {}): Promise<Ended> {
  return startKl(args, options).ended;
}

/** Runs `kl` and reads its result as JSON. */
export async function klJson<Result>(args: readonly string[], options: CallOptions = {}): Promise<Result> {
  const { exitCode, stdout, stderr } = await kl([...args, '--format', 'json'], options);
  if (exitCode !== 0) throw new Error(`kl ${args.join(' ')} ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout) as Result;
}

/** A call of `kl` at a terminal. */
export interface AtTerminal {
  readonly ended: Promise<{ readonly exitCode: number; readonly screen: string }>;
  /** Resolves once the screen has shown this. */
  shown(text: string | RegExp): Promise<void>;
  type(text: string): void;
  /** Ends it as it stands. */
  end(): void;
}

/** Runs `kl` at a terminal. */
export function klAtTerminal(args: readonly string[], { env, cwd }: CallOptions = {}): AtTerminal {
  return atTerminal(KL, args, { env: environmentOf(env), cwd });
}

/** Runs a program at a terminal of 100 columns. */
export function atTerminal(
  program: string,
  args: readonly string[],
  { env, cwd = process.cwd() }: { readonly env: Record<string, string>; readonly cwd?: string | undefined },
): AtTerminal {
  const { spawn: spawnAtTerminal } = createRequire(import.meta.url)('@lydell/node-pty') as typeof pty;
  const terminal = spawnAtTerminal(program, [...args], {
    name: env.TERM ?? 'xterm-256color',
    cols: 100,
    rows: 40,
    cwd,
    env,
  });
  let screen = '';
  const watchers = new Set<() => void>();
  terminal.onData((data) => {
    screen += data;
    for (const watcher of watchers) watcher();
  });
  const ended = new Promise<{ exitCode: number; screen: string }>((resolve) =>
    terminal.onExit(({ exitCode }) => resolve({ exitCode, screen })),
  );
  const shown = (text: string | RegExp) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (typeof text === 'string' ? screen.includes(text) : text.test(screen)) resolve();
      };
      watchers.add(look);
      look();
      void ended.then(() => reject(new Error(`kl ended without ${text}: ${screen}`)));
    });
  return { ended, shown, type: (text) => terminal.write(text), end: () => terminal.kill() };
}
