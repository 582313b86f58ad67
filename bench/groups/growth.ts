import type { Bench, Group } from '../group.ts';
import {
  changingHistory,
  type HistoryShape,
  largeVersions,
  manySpans,
  manyVersions,
} from '../history/shape.ts';
import { megabytes, type Table, verdict } from '../report.ts';
import { Series } from '../series.ts';
import { importArchive } from '../service/jobs.ts';
import { startBenchService } from '../service/service.ts';

/** How much more a unit of the largest step may take than one of the step before. */
const LINEAR = 1.25;

/** Histories that differ in one dimension. */
interface Dimension {
  readonly part: string;
  readonly title: string;
  /** What the steps count, and one of it. */
  readonly counted: string;
  readonly unit: string;
  readonly steps: readonly { readonly shape: HistoryShape; readonly units: number }[];
}

const JOBS = ['export', 'dry run', 'import'] as const;

type Job = (typeof JOBS)[number];
type Times = Readonly<Record<Job, Series>>;

/** Whether what a job takes grows as the history does, and no faster. */
export const growth: Group = {
  name: 'growth',
  parts: ['versions', 'size', 'spans', 'changes'],
  minutes: { full: 20, quick: 3 },
  async run(bench) {
    const tables: Table[] = [];
    for (const dimension of dimensions(bench.quick)) {
      if (bench.wants(dimension.part)) tables.push(await measure(bench, dimension));
    }
    return tables;
  },
};

function dimensions(quick: boolean): Dimension[] {
  const stepsOf = (units: readonly number[], shapeOf: (units: number) => HistoryShape) =>
    units.map((each) => ({ units: each, shape: shapeOf(each) }));
  return [
    {
      part: 'versions',
      title: 'versions of 0.25 MB',
      counted: 'versions',
      unit: 'version',
      steps: stepsOf(quick ? [4, 20, 100] : [200, 1000, 5000], manyVersions),
    },
    {
      part: 'size',
      title: 'megabytes of a version, two versions',
      counted: 'MB',
      unit: 'MB',
      steps: stepsOf(quick ? [0.2, 2, 20] : [2.4, 24, 240], (size) => largeVersions(2, size)),
    },
    {
      part: 'spans',
      title: 'resource spans',
      counted: '1000 spans',
      unit: '1000 spans',
      steps: stepsOf(quick ? [1, 10, 50] : [50, 500, 5000], (thousands) => manySpans(thousands * 1000)),
    },
    {
      part: 'changes',
      title: 'versions of 1 MB in which everything changes',
      counted: 'versions',
      unit: 'version',
      steps: stepsOf(quick ? [2, 10] : [40, 200], changingHistory),
    },
  ];
}

/** What the jobs of one step took. */
interface Step {
  readonly units: number;
  readonly rawBytes: number;
  readonly times: Times;
}

async function measure(bench: Bench, { title, counted, unit, steps }: Dimension): Promise<Table> {
  const done: Step[] = [];
  for (const { shape, units } of steps) {
    bench.tell(`${units} ${title}`);
    done.push({ units, ...(await timesOf(bench, shape)) });
  }
  return {
    title: `Growth: ${title}`,
    head: [counted, 'raw states', ...JOBS.flatMap((job) => [job, `per ${unit}`]), 'linear'],
    rows: done.map((step, index) => [
      String(step.units),
      megabytes(step.rawBytes),
      ...JOBS.flatMap((job) => [String(step.times[job]), perUnitText(step, job)]),
      index === done.length - 1 ? verdict(isLinear(step, done[index - 1])) : '',
    ]),
    notes: [
      `Linear: a unit of the last step takes at most ${LINEAR} times as long as one of the step before it.`,
    ],
  };
}

function perUnit({ times, units }: Step, job: Job): number {
  return times[job].median / units;
}

function perUnitText(step: Step, job: Job): string {
  const seconds = perUnit(step, job);
  return Number.isNaN(seconds) ? '–' : `${(seconds * 1000).toFixed(1)} ms`;
}

function isLinear(last: Step, before: Step | undefined): boolean {
  return before !== undefined && JOBS.every((job) => perUnit(last, job) <= LINEAR * perUnit(before, job));
}

async function timesOf({ histories }: Bench, shape: HistoryShape): Promise<Omit<Step, 'units'>> {
  const times = { export: new Series(), 'dry run': new Series(), import: new Series() };
  await times.export.time(async () => (await histories.archive(shape)).exportSeconds);
  const target = await histories.empty();
  for (const job of ['dry run', 'import'] as const) {
    const service = await startBenchService(target);
    await times[job].time(async () => {
      const { path } = await histories.archive(shape);
      await importArchive(service, path, { name: shape.name, dryRun: job === 'dry run' });
    });
    await service.stop();
  }
  await target.drop();
  const { rawBytes } = await histories.archive(shape).catch(() => ({ rawBytes: Number.NaN }));
  await histories.forget(shape);
  return { times, rawBytes };
}
