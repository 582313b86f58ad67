import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readArchiveFile } from '../../src/archive/archive-file.ts';
import { readArchive } from '../../src/archive/reader.ts';
import type { Group } from '../group.ts';
import { usualHistory } from '../history/shape.ts';
import { megabytes, verdict } from '../report.ts';
import { type BenchService, startBenchService } from '../service/service.ts';

const KL = fileURLToPath(new URL('../../bin/kl', import.meta.url));
const GOAL_MB = 300;

/** Has the program say at its end what it took, on standard error, behind whatever it says. */
const SAY_USAGE = `data:text/javascript,import { writeSync } from 'node:fs';
process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  writeSync(2, JSON.stringify({ bytes: maxRSS * 1024, seconds: (userCPUTime + systemCPUTime) / 1e6 }));
});`.replaceAll('\n', ' ');

/** What `kl` takes for a long history, in each thing it does with one. */
export const kl: Group = {
  name: 'kl',
  minutes: { full: 6, quick: 1 },
  async run({ histories, directory, quick, tell }) {
    const shape = usualHistory(quick ? 100 : 1000);
    const work = await mkdtemp(join(directory, 'kl-'));
    const rows: string[][] = [];
    const measure = async (service: BenchService | null, ...args: string[]) => {
      const what = args.slice(0, 2).join(' ');
      tell(what);
      rows.push([what, ...(await measured(work, service, args))]);
    };

    const source = await histories.copy(shape);
    const exporting = await startBenchService(source);
    await measure(exporting, 'export', 'state', shape.name, '--out', 'home.klstate');
    await exporting.stop();
    await source.drop();

    // Without the archive there is nothing to go on with.
    if (existsSync(join(work, 'home.klstate'))) {
      await measure(null, 'archive', 'inspect', 'home.klstate', '--versions');
      await measure(null, 'archive', 'verify', 'home.klstate');
      await measure(null, 'archive', 'extract', 'home.klstate', '--out', 'current.tfstate');
      await measure(null, 'archive', 'diff', 'home.klstate@1', 'home.klstate@current');
      tell('takes the history apart');
      await takeApart(join(work, 'home.klstate'), join(work, 'parts'));
      await measure(null, 'archive', 'build', 'parts', '--out', 'built.klstate');

      const destination = await histories.empty();
      const importing = await startBenchService(destination);
      await measure(importing, 'import', 'archive', 'home.klstate', '--yes');
      await importing.stop();
      await destination.drop();
    }
    await rm(work, { recursive: true });
    return [
      {
        title: `kl, ${shape.versions} versions of 1 MB`,
        head: ['command', 'time', 'processor', 'peak RSS', 'goal', ''],
        rows,
        notes: ['Each in a new process, whose peak includes its start. The service is another process.'],
      },
    ];
  },
};

async function measured(
  cwd: string,
  service: BenchService | null,
  args: readonly string[],
): Promise<string[]> {
  const began = performance.now();
  const { stderr, code = 0 } = (await promisify(execFile)(KL, args, {
    cwd,
    maxBuffer: 2 ** 26,
    env: {
      PATH: process.env.PATH,
      HOME: cwd,
      NODE_OPTIONS: `--import="${SAY_USAGE}"`,
      ...(service !== null && { KL_ENDPOINT: service.endpoint, KL_TOKEN: service.token }),
    },
  }).catch((error: { stderr: string; code: number }) => error)) as { stderr: string; code?: number };
  const seconds = (performance.now() - began) / 1000;
  const said = /\{"bytes":.*\}$/.exec(stderr)?.[0];
  // Of `diff`, 1 says that there is a difference.
  if (said === undefined || code > (args[1] === 'diff' ? 1 : 0))
    return [
      `failed: ${stderr.split('\n').find((line) => line.startsWith('kl: '))}`,
      '',
      '',
      '',
      verdict(false),
    ];
  const usage = JSON.parse(said) as { bytes: number; seconds: number };
  return [
    `${seconds.toFixed(1)} s`,
    `${usage.seconds.toFixed(1)} s`,
    megabytes(usage.bytes),
    `≤ ${GOAL_MB} MB`,
    verdict(usage.bytes <= GOAL_MB * 1e6),
  ];
}

/** Writes each raw state of an archive to a file, as a bucket with versions would have given them. */
async function takeApart(path: string, into: string): Promise<void> {
  await mkdir(into);
  for await (const member of readArchive(readArchiveFile(path))) {
    if (member.kind !== 'version') continue;
    await using file = await open(join(into, `${member.version.serial}.tfstate`), 'wx');
    for await (const chunk of member.content) await file.writeFile(chunk);
  }
}
