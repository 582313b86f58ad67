import { rmSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readOptions, USAGE, UsageError } from './options.ts';
import type { Part } from './part.ts';
import { PARTS } from './parts.ts';
import { Postgres } from './postgres.ts';
import { Processes } from './processes.ts';
import { PROGRAMS } from './programs.ts';
import { Report } from './report.ts';
import { Stage } from './stage.ts';

/**
 * @file The whole job against a real Kilolock and a real Terraform: `npm run interop`. docs/interop.md says what it needs.
 *
 * Ends with 0 when every check that could be made has passed, 1 when one failed, 2 when nothing could be checked, and 130
 * when it was interrupted. Whatever it started is stopped, and whatever it made is removed, in every case.
 */

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  let options: ReturnType<typeof readOptions>;
  try {
    options = readOptions(args, process.env, PARTS);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
  if (options === 'help') {
    process.stdout.write(`${USAGE}\nParts: ${PARTS.map(({ name }) => name).join(', ')}\n`);
    return 0;
  }
  const { programs, parts } = options;
  for (const name of PROGRAMS)
    process.stdout.write(`${name.padEnd(10)} ${programs.get(name) ?? 'missing'}\n`);
  if (!programs.has('kld')) {
    process.stderr.write('Nothing can be checked without kld: name it by --kld or KLD. See --help.\n');
    return 2;
  }

  const interruption = interruptible();
  const report = new Report(interruption);
  const directory = await mkdtemp(join(tmpdir(), 'state-archive-interop-'));
  // The account of PostgreSQL has to pass through.
  await chmod(directory, 0o711);
  const removeAtExit = () => rmSync(directory, { recursive: true, force: true });
  process.once('exit', removeAtExit);
  const processes = new Processes(interruption);
  let postgres: Postgres | undefined;
  let stage: Stage | undefined;
  try {
    postgres = await Postgres.start(options.databaseUrl, directory);
    const { migrations } = options;
    stage = new Stage({ report, processes, programs, postgres, directory, migrations, interruption });
    await runParts(parts, stage);
  } catch (error) {
    if (!interruption.aborted) throw error;
  } finally {
    await stage?.stop();
    await postgres?.stop();
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    process.off('exit', removeAtExit);
  }
  process.stdout.write(report.summary());
  if (interruption.aborted) return 130;
  if (report.failed > 0) return 1;
  return report.checked > 0 ? 0 : 2;
}

/** Runs the parts in order. A part that cannot go on is a failure, and those that build on it are skipped. */
async function runParts(parts: readonly Part[], stage: Stage): Promise<void> {
  const { report, programs } = stage;
  const incomplete = new Set<Part>();
  for (const part of parts) {
    const missing = part.needs.filter((name) => !programs.has(name));
    const basis = part.after.find((before) => incomplete.has(before));
    if (missing.length > 0 || basis !== undefined) {
      const why = basis === undefined ? `${missing.join(', ')} missing` : `"${basis.name}" is not complete`;
      report.skip(part.title, why);
      incomplete.add(part);
      continue;
    }
    report.heading(part.title);
    try {
      await untilAborted(part.run(stage), stage.interruption);
    } catch (error) {
      stage.interruption.throwIfAborted();
      report.fail(`"${part.name}" can be gone through to its end`, describe(error));
      incomplete.add(part);
    }
  }
}

/** What becomes of work, or at once the reason why it is called off: it may wait for something that takes long. */
async function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: abortion, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    await Promise.race([work, abortion]);
  } finally {
    signal.removeEventListener('abort', abort);
    // What it still waits for is taken from it.
    work.catch(() => {});
  }
}

/** Where it happened matters: nobody expected it. */
function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Aborted by the first signal, upon which everything is stopped in order; the second one does not wait for that. */
function interruptible(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(130);
      process.stderr.write(`\n${signal}: stopping what was started.\n`);
      controller.abort(new Error(`Interrupted by ${signal}.`));
    });
  }
  return controller.signal;
}
