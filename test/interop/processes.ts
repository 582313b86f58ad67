import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';

/** How a program ended, and what it printed. */
export interface Finished {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a program is run. */
export interface RunOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly input?: string;
}

/** A server that runs until it is stopped. */
export interface Running {
  /** All it printed so far, standard output and standard error in the order they came. */
  readonly log: string;
  /** Asks it to end, and waits until it has. */
  stop(): Promise<void>;
}

const RUN_MS = 600_000;
const START_MS = 180_000;
const STOP_MS = 20_000;
const POLL_MS = 100;

/**
 * Starts programs, each in a process group of its own: Ctrl-C on the terminal is for us alone, and whatever a program
 * has started itself ends with it.
 */
export class Processes {
  readonly #signal: AbortSignal;
  readonly #running = new Set<ChildProcess>();

  /** @param signal when it is aborted, programs that run to their end are killed. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    process.once('exit', () => {
      for (const child of this.#running) kill(child, 'SIGKILL');
    });
  }

  /**
   * Runs a program to its end, whatever its exit code.
   *
   * @throws Error when it cannot be started, runs for more than ten minutes, or the signal is aborted.
   */
  async run(program: string, args: readonly string[], options: RunOptions): Promise<Finished> {
    this.#signal.throwIfAborted();
    const child = this.#spawn(program, args, options);
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text;
      });
    }
    // A program that does not read its input may be gone before all of it is written.
    child.stdin.on('error', () => {}).end(options.input ?? '');
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(RUN_MS)]);
    const killAll = () => kill(child, 'SIGKILL');
    signal.addEventListener('abort', killAll);
    try {
      await once(child, 'close');
      signal.throwIfAborted();
      return { exitCode: child.exitCode, ...output };
    } finally {
      signal.removeEventListener('abort', killAll);
    }
  }

  /**
   * Starts a server.
   *
   * @param isReady is asked again and again, with all that was printed, until it says so.
   * @throws Error with what it printed when it ends before that, or takes longer than three minutes.
   */
  async serve(
    program: string,
    args: readonly string[],
    options: RunOptions,
    isReady: (log: string) => boolean | Promise<boolean>,
  ): Promise<Running> {
    this.#signal.throwIfAborted();
    const child = this.#spawn(program, args, options);
    child.stdin.end();
    let log = '';
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        log += text;
      });
    }
    const closed = once(child, 'close');
    const running = {
      get log() {
        return log;
      },
      async stop() {
        kill(child, 'SIGTERM');
        const late = setTimeout(() => kill(child, 'SIGKILL'), STOP_MS);
        await closed;
        clearTimeout(late);
      },
    };
    const deadline = Date.now() + START_MS;
    while (!(await isReady(log))) {
      const hasEnded = child.exitCode !== null || child.signalCode !== null;
      if (!hasEnded && Date.now() < deadline && !this.#signal.aborted) {
        await pause(POLL_MS);
        continue;
      }
      await running.stop();
      this.#signal.throwIfAborted();
      throw new Error(
        `${program} ${hasEnded ? 'ended at once' : 'is not ready after three minutes'}:\n${log}`,
      );
    }
    return running;
  }

  #spawn(program: string, args: readonly string[], { environment = {}, directory }: RunOptions) {
    const child = spawn(program, args, {
      cwd: directory,
      env: { PATH: process.env.PATH, HOME: directory, ...environment },
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#running.add(child);
    child.once('close', () => this.#running.delete(child));
    return child;
  }
}

/** Runs a program that has to succeed. */
export function succeeded(finished: Finished, what: string): Finished {
  if (finished.exitCode === 0) return finished;
  throw new Error(`${what} ended with ${finished.exitCode}: ${finished.stderr || finished.stdout}`);
}

function kill({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended already.
  }
}
