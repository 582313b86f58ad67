import type { BenchDatabase } from '../databases.ts';
import { copyFloor, dumpFloor } from '../floors/export-floor.ts';
import { writeCopyFiles } from '../floors/import-floor.ts';
import type { Bench, Group } from '../group.ts';
import { type HistoryShape, usualHistory } from '../history/shape.ts';
import { megabytes, type Table, verdict } from '../report.ts';
import { Series } from '../series.ts';
import { exportArchive, importArchive, JobFailedError, preview } from '../service/jobs.ts';
import { startBenchService } from '../service/service.ts';

/** How long exports and imports take beside what an expert could do with the database. */
export const ratios: Group = {
  name: 'ratios',
  minutes: { full: 6, quick: 1 },
  async run(bench) {
    const shape = usualHistory(bench.quick ? 40 : 200);
    const repetitions = bench.quick ? 2 : 5;
    bench.tell(`making ${shape.versions} versions`);
    return [await exportRatios(bench, shape, repetitions), await importRatios(bench, shape, repetitions)];
  },
};

async function exportRatios(bench: Bench, shape: HistoryShape, repetitions: number): Promise<Table> {
  const copied = await copyFloor();
  const dumped = await dumpFloor(bench.server.version);
  const floor = new Series();
  const cold = new Series();
  const warm = new Series();
  const dump = new Series();
  const bytes = { archive: Number.NaN, dump: Number.NaN };
  let temporaryFiles = 0;
  for (let repetition = 1; repetition <= repetitions; repetition += 1) {
    bench.tell(`exports, ${repetition} of ${repetitions}`);
    const database = await bench.histories.copy(shape);
    await floor.time(async () => (await copied.run(database, bench.directory)).seconds);
    const service = await startBenchService(database);
    await cold.time(async () => {
      bytes.archive = (await exportArchive(service, shape.name)).sizeBytes;
    });
    await warm.time(() => exportArchive(service, shape.name));
    await service.stop();
    temporaryFiles += await temporaryFilesOf(database);
    await dump.time(async () => {
      const measured = await dumped.run(database, bench.directory);
      bytes.dump = measured.bytes;
      return measured.seconds;
    });
    await database.drop();
  }
  const faster = dump.median / cold.median;
  const smaller = bytes.dump / bytes.archive;
  return {
    title: `Export of ${shape.versions} versions`,
    head: ['work', 'median of the runs', 'beside', 'goal', ''],
    rows: [
      ['floor: COPY through zstd', String(floor), '', '', ''],
      ['export, cold', String(cold), ...besideFloor(cold, floor, 1.15)],
      ['export, warm', String(warm), `${(warm.median / floor.median).toFixed(2)} × the floor`, '', ''],
      [
        'dump',
        String(dump),
        `${faster.toFixed(2)} × the time of the export, cold`,
        '≥ 1.5 ×',
        verdict(faster >= 1.5),
      ],
      [
        'size of the archive',
        megabytes(bytes.archive),
        `the dump, ${megabytes(bytes.dump)}, is ${smaller.toFixed(0)} × as large`,
        '≥ 70 ×',
        verdict(smaller >= 70),
      ],
      ['temporary files of the server', String(temporaryFiles), '', 'none', verdict(temporaryFiles === 0)],
    ],
    notes: [`The floor: ${copied.how}. The dump: ${dumped.how}.`],
  };
}

/** How many files sorts and the like have needed in a database, as its sessions told when they ended. */
async function temporaryFilesOf(database: BenchDatabase): Promise<number> {
  const [row] = await database.query<{ files: string }>(
    'select temp_files as files from pg_stat_database where datname = current_database()',
  );
  return Number(row?.files);
}

async function importRatios(bench: Bench, shape: HistoryShape, repetitions: number): Promise<Table> {
  const { server, histories, directory } = bench;
  const archive = await histories.archive(shape);
  const original = await histories.original(shape);
  const text = await writeCopyFiles(original, directory, 'text');
  const binary = await writeCopyFiles(original, directory, 'binary');
  const floors = { text: new Series(), binary: new Series(), lz4: new Series() };
  const dryRun = new Series();
  const usual = new Series();
  const pglz = new Series();

  const onEmpty = async (series: Series, work: (database: BenchDatabase) => Promise<{ seconds: number }>) => {
    const database = await histories.empty();
    await series.time(async () => (await work(database)).seconds);
    await database.drop();
  };
  const restore = async (series: Series, database: BenchDatabase) => {
    const service = await startBenchService(database);
    const { path, historyDigest } = archive;
    await dryRun.time(() => importArchive(service, path, { name: shape.name, dryRun: true }));
    await series.time(async () => {
      const began = performance.now();
      await importArchive(service, path, { name: shape.name });
      const seconds = (performance.now() - began) / 1000;
      if ((await preview(service, shape.name)) === historyDigest) return seconds;
      throw new JobFailedError('The imported history has another digest than its archive.');
    });
    await service.stop();
    await database.drop();
  };
  for (let repetition = 1; repetition <= repetitions; repetition += 1) {
    bench.tell(`imports, ${repetition} of ${repetitions}`);
    await onEmpty(floors.text, (database) => text.copyInto(database, 'pglz'));
    if (server.knowsLz4) await restore(usual, await histories.empty());
    await onEmpty(floors.binary, (database) => binary.copyInto(database, 'pglz'));
    const database = await histories.empty();
    await database.query(
      `alter database ${new URL(database.connectionString).pathname.slice(1)} set default_toast_compression = pglz`,
    );
    await restore(pglz, database);
    if (server.knowsLz4) await onEmpty(floors.lz4, (empty) => text.copyInto(empty, 'lz4'));
  }
  const beside = (series: Series) => `${(series.median / floors.text.median).toFixed(2)} × the floor`;
  return {
    title: `Import of ${shape.versions} versions`,
    head: ['work', 'median of the runs', 'beside', 'goal', ''],
    rows: [
      ['floor: COPY as text, pglz', String(floors.text), '', '', ''],
      ['COPY as binary, pglz', String(floors.binary), beside(floors.binary), '', ''],
      ...(server.knowsLz4
        ? [
            ['COPY as text, lz4', String(floors.lz4), beside(floors.lz4), '', ''],
            ['import where the server knows lz4', String(usual), ...besideFloor(usual, floors.text, 1)],
          ]
        : []),
      ['import with pglz', String(pglz), ...besideFloor(pglz, floors.text, 1.3)],
      ['dry run', String(dryRun), ...besideFloor(dryRun, floors.text, 0.25)],
    ],
    notes: [
      'The floors: one session, one transaction, every row of the history, in a lean process of Node.js.',
    ],
  };
}

/** The cells that say how a job stands beside its floor. */
function besideFloor(job: Series, floor: Series, goal: number): string[] {
  const ratio = job.median / floor.median;
  return [`${ratio.toFixed(2)} × the floor`, `≤ ${goal} ×`, verdict(job.failure === null && ratio <= goal)];
}
