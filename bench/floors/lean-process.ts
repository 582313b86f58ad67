import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const TASK = 'STATE_ARCHIVE_BENCH_TASK';

/** What a lean process measured. */
export interface Measured {
  readonly seconds: number;
  /** Bytes written to files. */
  readonly bytes: number;
}

/** Runs a file of this directory in a process that has nothing else to do, and waits for what it measured. */
export async function runLean<Task>(file: string, task: Task): Promise<Measured> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const env = { PATH: process.env.PATH, [TASK]: JSON.stringify(task) };
  const { stdout } = await promisify(execFile)(process.execPath, [path], { env });
  return JSON.parse(stdout) as Measured;
}

/** The other side: does the task this process was started for, and tells how long it took. */
export async function measureTask<Task>(work: (task: Task) => Promise<number>): Promise<void> {
  const task = JSON.parse(process.env[TASK] ?? 'null') as Task;
  const began = performance.now();
  const bytes = await work(task);
  const measured: Measured = { seconds: (performance.now() - began) / 1000, bytes };
  process.stdout.write(JSON.stringify(measured));
}
