import { rmSync } from 'node:fs';
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBenchServer } from './databases.ts';
import type { Group } from './group.ts';
import { entities } from './groups/entities.ts';
import { footprint } from './groups/footprint.ts';
import { growth } from './groups/growth.ts';
import { kl } from './groups/kl.ts';
import { load } from './groups/load.ts';
import { preview } from './groups/preview.ts';
import { ratios } from './groups/ratios.ts';
import { scale } from './groups/scale.ts';
import { upload } from './groups/upload.ts';
import { Histories } from './histories.ts';
import { describeMachine } from './machine.ts';
import { type Options, readOptions, UsageError } from './options.ts';
import { markdown } from './report.ts';

/**
 * @file `npm run bench`: the real service, a PostgreSQL of its own and generated histories, beside what an expert could do with
 * the database. The report goes to standard output as Markdown, what is being done to standard error.
 */

const GROUPS: readonly Group[] = [ratios, preview, entities, footprint, load, scale, growth, kl, upload];

// Without listeners a signal ends the process past its exit handlers, and the server would stay behind.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await main();

async function main(): Promise<void> {
  try {
    await bench(readOptions(process.argv.slice(2), GROUPS));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 2;
  }
}

async function bench({ groups, parts, quick }: Options): Promise<void> {
  const minutes = groups.reduce((sum, group) => sum + group.minutes[quick ? 'quick' : 'full'], 0);
  tell(`${groups.map(({ name }) => name).join(', ')}: about ${minutes} minutes on two cores`);
  const directory = await ownTemporaryDirectory();
  const server = await startBenchServer();
  // Behind the server's own listener, which ends it.
  process.on('exit', () =>
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }),
  );
  try {
    print(`## Results${quick ? ', a quick look' : ''}`);
    print(describeMachine(server));
    const histories = new Histories(server, directory);
    for (const group of groups) {
      const began = performance.now();
      const sayOfGroup = (what: string) => tell(`${group.name}: ${what}`);
      try {
        const ofGroup = parts.filter((name) => name.startsWith(`${group.name}/`));
        const wants = (part: string) => ofGroup.length === 0 || ofGroup.includes(`${group.name}/${part}`);
        const tables = await group.run({ server, histories, directory, quick, wants, tell: sayOfGroup });
        for (const table of tables) print(markdown(table));
      } catch (error) {
        print(`### ${group.name}\n\nfailed: ${error instanceof Error ? error.message : error}`);
        process.exitCode = 1;
      }
      sayOfGroup(`took ${((performance.now() - began) / 60_000).toFixed(1)} minutes`);
    }
  } finally {
    await server.stop();
  }
}

/** A directory for all that this run keeps on disk, its PostgreSQL's data included. */
async function ownTemporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'state-archive-bench-'));
  // The account of PostgreSQL has to pass.
  await chmod(directory, 0o711);
  process.env.TMPDIR = directory;
  return directory;
}

function print(text: string): void {
  process.stdout.write(`${text}\n\n`);
}

function tell(what: string): void {
  process.stderr.write(`${what}\n`);
}
