import type { Bench, Group } from '../group.ts';
import { type HistoryShape, largeVersions, usualHistory } from '../history/shape.ts';
import { megabytes, verdict } from '../report.ts';
import { Series } from '../series.ts';
import { exportArchive, importArchive, listStates, preview } from '../service/jobs.ts';
import { type BenchService, startBenchService } from '../service/service.ts';

const LONGEST_BLOCK_MS = 50;

interface Job {
  readonly part: 'usual' | 'long' | 'large' | 'several';
  readonly title: string;
  readonly shape: HistoryShape;
  /** The most memory it may take, in bytes; null where no goal says. */
  readonly goal: number | null;
  /** Whether the service's database holds the history when it begins. */
  readonly isThere: boolean;
  /** @param path an archive of the history; there is none for what is there already. */
  run(service: BenchService, path: string): Promise<unknown>;
}

/** How much memory the service takes for each job, and for how long its event loop does nothing else. */
export const footprint: Group = {
  name: 'footprint',
  parts: ['usual', 'long', 'large', 'several'],
  minutes: { full: 10, quick: 2 },
  async run(bench) {
    const usual = usualHistory(bench.quick ? 20 : 200);
    const long = usualHistory(bench.quick ? 100 : 1000);
    const megabytesEach = bench.quick ? 20 : 200;
    const large = largeVersions(1, megabytesEach);
    const jobs: Job[] = [
      { part: 'usual', title: 'idle', shape: usual, goal: null, isThere: true, run: listStates },
      {
        part: 'usual',
        title: `first preview of ${usual.versions} versions`,
        shape: usual,
        goal: 300,
        isThere: true,
        run: (service) => preview(service, usual.name),
      },
      ...jobsOn('usual', `${usual.versions} versions of 1 MB`, usual, 300),
      ...jobsOn('long', `${long.versions} versions of 1 MB`, long, 300),
      ...jobsOn('large', `one version of ${megabytesEach} MB`, large, 450),
      {
        part: 'several',
        title: 'four exports at once',
        shape: usual,
        goal: 600,
        isThere: true,
        run: (service) => fourAtOnce(() => exportArchive(service, usual.name)),
      },
      {
        part: 'several',
        title: 'four imports at once',
        shape: usual,
        goal: 600,
        isThere: false,
        run: (service, path) => fourAtOnce((turn) => importArchive(service, path, { name: `copy_${turn}` })),
      },
    ];
    const rows: string[][] = [];
    for (const job of jobs.filter(({ part }) => bench.wants(part))) {
      bench.tell(job.title);
      rows.push(await measure(bench, job));
    }
    return [
      {
        title: 'Memory and event loop',
        head: ['work', 'time', 'peak RSS', 'goal', '', 'longest block', 'most work', 'goal', ''],
        rows,
        notes: [
          'Each in a new process, whose peak includes its start.',
          'Most work: what the thread of the event loop did at most between two looks at it, in time of a processor. A longer block waited for one.',
        ],
      },
    ];
  },
};

async function measure(bench: Bench, job: Job): Promise<string[]> {
  const { histories } = bench;
  const archive = async () => (job.isThere ? '' : (await histories.archive(job.shape)).path);
  // Made before the service starts: the work for it is not the job's.
  await archive().catch(() => {});
  const database = job.isThere ? await histories.copy(job.shape) : await histories.empty();
  const service = await startBenchService(database);
  const series = new Series();
  await service.watchEventLoop();
  await series.time(async () => job.run(service, await archive()));
  const report = await service.report().catch(() => null);
  await service.stop();
  await database.drop();
  if (report === null || series.failure !== null)
    return [job.title, String(series), '', '', verdict(false), '', '', '', ''];
  const { peakMemory, longestBlock, mostWork } = report;
  const isWithin = job.goal === null || peakMemory <= job.goal * 1e6;
  return [
    job.title,
    String(series),
    megabytes(peakMemory),
    job.goal === null ? '' : `≤ ${job.goal} MB`,
    job.goal === null ? '' : verdict(isWithin),
    `${longestBlock.toFixed(0)} ms`,
    `${mostWork.toFixed(0)} ms`,
    `≤ ${LONGEST_BLOCK_MS} ms`,
    verdict(longestBlock <= LONGEST_BLOCK_MS),
  ];
}

function jobsOn(part: Job['part'], what: string, shape: HistoryShape, goal: number): Job[] {
  const on = (work: string): Pick<Job, 'part' | 'title' | 'shape' | 'goal'> => ({
    part,
    title: `${work}, ${what}`,
    shape,
    goal,
  });
  return [
    { ...on('export'), isThere: true, run: (service) => exportArchive(service, shape.name) },
    {
      ...on('dry run'),
      isThere: false,
      run: (service, path) => importArchive(service, path, { name: shape.name, dryRun: true }),
    },
    {
      ...on('import'),
      isThere: false,
      run: (service, path) => importArchive(service, path, { name: shape.name }),
    },
  ];
}

function fourAtOnce(work: (turn: number) => Promise<unknown>): Promise<unknown> {
  return Promise.all([1, 2, 3, 4].map(work));
}
