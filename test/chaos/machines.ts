import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { COMPILE_CACHE } from '../support/compile-cache.ts';

/** The checkout of this release. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** How much of a process's log is kept, to tell why it ended. */
const KEPT_LOG_CHARACTERS = 4_000;

/** What a machine runs. */
export type Role = 'replica' | 'worker';

/** A process of the service that can be killed at any moment, and comes back at the same address with the same disk. */
export class Machine {
  readonly name: string;
  readonly role: Role;
  /** Where a replica listens; '' for a worker. */
  readonly url: string;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #checkout: string;
  #child: ChildProcess | null = null;
  #ready: Promise<void> = Promise.resolve();
  #log = '';
  /** How often it was killed. */
  kills = 0;
  /** The exits that nobody asked for. */
  readonly deaths: string[] = [];
  /** Whether it is started again when it ends by itself, as it would be where it is run. */
  isLookedAfter = false;

  constructor(
    name: string,
    role: Role,
    options: {
      readonly port: number;
      readonly environment: Readonly<Record<string, string>>;
      /** The directory of the release that it runs; this one's when absent. */
      readonly checkout?: string;
    },
  ) {
    this.name = name;
    this.role = role;
    this.url = role === 'replica' ? `http://127.0.0.1:${options.port}` : '';
    this.#checkout = options.checkout ?? ROOT;
    this.#environment = { ...options.environment, PORT: String(options.port) };
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Resolves when it works, or listens. */
  get ready(): Promise<void> {
    return this.#ready;
  }

  start(): void {
    const file = this.role === 'replica' ? 'src/main.ts' : 'src/worker.ts';
    const child = spawn(process.execPath, [join(this.#checkout, file)], {
      cwd: this.#checkout,
      env: { PATH: process.env.PATH, NO_COLOR: '1', ...COMPILE_CACHE, ...this.#environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    const sign = this.role === 'replica' ? 'Endpoint' : 'Working on';
    this.#ready = new Promise((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        if (text.includes(sign)) resolve();
      });
      child.once('close', () => resolve());
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-KEPT_LOG_CHARACTERS);
    });
    child.once('exit', (code, signal) => {
      if (this.#child !== child) return;
      if (this.isLookedAfter) {
        this.start();
        return;
      }
      this.deaths.push(`${this.name} ended by itself (${signal ?? code}): ${this.#log}`);
    });
  }

  /** Kills it, and starts it again. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    this.kills += 1;
    if (child !== null && child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    this.start();
  }

  /** Freezes it, and lets it go on after a while, unless it was killed meanwhile. */
  async freeze(milliseconds: number): Promise<void> {
    const child = this.#child;
    child?.kill('SIGSTOP');
    await pause(milliseconds);
    child?.kill('SIGCONT');
  }

  /** Ends it as an operator does, and gives back how it ended; it is killed when it does not end in time. */
  async stop(patienceMs: number): Promise<string> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return 'gone';
    child.kill('SIGTERM');
    const late = new AbortController();
    const ended = once(child, 'exit');
    const isLate = await Promise.race([
      ended.then(() => false),
      pause(patienceMs, true, { signal: late.signal }).catch(() => false),
    ]);
    late.abort();
    if (isLate) {
      child.kill('SIGKILL');
      await ended;
      return `did not end within ${patienceMs / 1000} s: ${this.#log}`;
    }
    return child.exitCode === 0 ? 'ended' : `ended with ${child.exitCode ?? child.signalCode}: ${this.#log}`;
  }
}
