import { setTimeout as pause } from 'node:timers/promises';
import type { Bench, Group } from '../group.ts';
import { largeVersions, usualHistory } from '../history/shape.ts';
import { hostileDocuments, writeHostileArchive } from '../hostile-documents.ts';
import { megabytes, verdict } from '../report.ts';
import { Series } from '../series.ts';
import { importArchive, preview } from '../service/jobs.ts';
import { type BenchService, startBenchService } from '../service/service.ts';
import { percentile } from '../statistics.ts';

const BETWEEN_PREVIEWS_MS = 50;
const ALONE_MS = 10_000;
const LONGEST_BLOCK_MS = 50;
const HEAP_MEGABYTES = 512;
const AT_ONCE = 4;
const HEAD = 'beside,jobs,previews,median,p99,peak RSS,longest block,most work,goal,'.split(',');

/**
 * What people who preview notice of the heaviest imports, and whether the process bears them. Of hostile documents it is a dry run
 * that looks at them as an import does: what a million rows take is PostgreSQL's time.
 */
export const load: Group = {
  name: 'load',
  parts: ['large', 'hostile'],
  minutes: { full: 8, quick: 3 },
  async run(bench) {
    const size = bench.quick ? 20 : 200;
    const nothing = await measure(bench, 'nothing', () => pause(ALONE_MS));
    const rows = [nothing];
    if (bench.wants('large')) {
      bench.tell(`making a version of ${size} MB`);
      const { cells, failure } = await measureImports(
        bench,
        `imports of a version of ${size} MB`,
        false,
        async () => {
          const { path } = await bench.histories.archive(largeVersions(1, size));
          return path;
        },
      );
      // Nothing is wrong with these documents.
      rows.push(failure === null ? cells : cells.with(-1, verdict(false)));
    }
    for (const document of bench.wants('hostile') ? hostileDocuments(bench.quick ? 0.05 : 1) : []) {
      bench.tell(`making ${document.title}`);
      const path = writeHostileArchive(document, bench.directory);
      rows.push((await measureImports(bench, `dry runs of ${document.title}`, true, () => path)).cells);
    }
    return [
      {
        title: `${1000 / BETWEEN_PREVIEWS_MS} previews a second beside ${AT_ONCE} jobs at once, with --max-old-space-size=${HEAP_MEGABYTES}`,
        head: HEAD,
        rows,
        notes: [
          'Latencies from when a preview was due: one that waits for another counts its waiting. A hostile document may be refused; the process has to go on.',
        ],
      },
    ];
  },
};

async function measureImports(
  bench: Bench,
  title: string,
  dryRun: boolean,
  archive: () => Promise<string>,
): Promise<{ readonly cells: string[]; readonly failure: string | null }> {
  const imports = new Series();
  // Made before the previews begin: the work for it is not the service's.
  await archive().catch(() => {});
  const cells = await measure(bench, title, (service) =>
    Promise.all(
      Array.from({ length: AT_ONCE }, (_, turn) =>
        imports.time(async () => importArchive(service, await archive(), { name: `copy_${turn}`, dryRun })),
      ),
    ),
  );
  return { cells: cells.with(1, String(imports)), failure: imports.failure };
}

/** A row: previews at a steady rate for as long as `work` goes on, in a process of their own. */
async function measure(
  { histories, quick, tell }: Bench,
  title: string,
  work: (service: BenchService) => Promise<unknown>,
): Promise<string[]> {
  tell(`previews beside ${title}`);
  const shape = usualHistory(quick ? 20 : 200);
  const database = await histories.copy(shape);
  const service = await startBenchService(database, {
    nodeOptions: [`--max-old-space-size=${HEAP_MEGABYTES}`],
  });
  const ask = () => preview(service, shape.name);
  await ask();
  await service.watchEventLoop();
  const { latencies, failures } = await askSteadily(ask, work(service));
  const report = await service.report().catch(() => null);
  await service.stop();
  await database.drop();
  const failed = failures.length === 0 ? '' : `, ${failures.length} failed: ${failures[0]}`;
  return [
    title,
    '',
    `${latencies.length} answered${failed}`,
    `${percentile(latencies, 0.5).toFixed(1)} ms`,
    `${percentile(latencies, 0.99).toFixed(1)} ms`,
    report === null ? 'the process ended' : megabytes(report.peakMemory),
    report === null ? '' : `${report.longestBlock.toFixed(0)} ms`,
    report === null ? '' : `${report.mostWork.toFixed(0)} ms`,
    `≤ ${LONGEST_BLOCK_MS} ms`,
    verdict(report !== null && failures.length === 0 && report.longestBlock <= LONGEST_BLOCK_MS),
  ];
}

/** In milliseconds from when they were due, and why others have no answer. */
interface Answers {
  readonly latencies: number[];
  readonly failures: string[];
}

/** Asks at fixed times, whether or not earlier questions are answered, until `end`. */
async function askSteadily(ask: () => Promise<unknown>, end: Promise<unknown>): Promise<Answers> {
  const answers: Answers = { latencies: [], failures: [] };
  const asked: Promise<unknown>[] = [];
  let isOver = false;
  void end.then(() => {
    isOver = true;
  });
  const began = performance.now();
  for (let turn = 0; !isOver; turn += 1) {
    const due = began + turn * BETWEEN_PREVIEWS_MS;
    await pause(Math.max(0, due - performance.now()));
    asked.push(
      ask().then(
        () => answers.latencies.push(performance.now() - due),
        (error: unknown) => answers.failures.push(error instanceof Error ? error.message : String(error)),
      ),
    );
  }
  await Promise.all(asked);
  return answers;
}
