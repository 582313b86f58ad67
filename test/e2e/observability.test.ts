import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { loadSampleHistory, SAMPLE_LABEL } from '../../src/development/sample-history.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { readMetrics, selectorsOf, seriesValue } from '../support/exposition.ts';
import {
  type CollectedSpan,
  printTrace,
  type SpanCollector,
  startSpanCollector,
} from '../support/span-collector.ts';
import {
  ask,
  cleanUp,
  type Ended,
  type Started,
  start,
  startMain,
  temporaryDirectory,
} from './support/processes.ts';

const EXAMPLES = new URL('../../examples/observability/', import.meta.url);
const PAGE = fileURLToPath(new URL('../../docs/observability.md', import.meta.url));
const PRINT_LOADED = `--import=${new URL('support/print-loaded.mjs', import.meta.url).href}`;

const EXPORT = `mutation { exportStateArchive(input: { name: "${SAMPLE_LABEL}", waitSeconds: 25 }) {
  operation { status archive { downloadUrl } } userErrors { code } } }`;
const IMPORT = `mutation ($file: Upload!) {
  importStateArchive(input: { file: $file, name: "restored/network", allowSharedLineage: true, waitSeconds: 25 }) {
    operation { status } userErrors { code } } }`;

interface Exported {
  readonly exportStateArchive: { readonly operation: { readonly archive: { readonly downloadUrl: string } } };
}

let given: TestDatabase;
let collector: SpanCollector | undefined;

beforeAll(async () => {
  given = await createTestDatabase();
  await loadSampleHistory(given.database);
});
afterAll(() => given.drop());
afterEach(async () => {
  await cleanUp();
  await collector?.close();
  collector = undefined;
});

/** A process that serves and one that works, on one database and store. */
async function startPair(
  shared: Readonly<Record<string, string>>,
  ofWorker: Readonly<Record<string, string>> = {},
) {
  const common = {
    DATABASE_URL: given.connectionString,
    ARCHIVE_STORE_URL: `file://${await temporaryDirectory()}`,
    DRAIN_SECONDS: '0',
    ...shared,
  };
  const worker = start('src/worker.ts', {
    ...common,
    DATA_DIR: await temporaryDirectory(),
    OTEL_RESOURCE_ATTRIBUTES: 'service.instance.id=worker',
    ...ofWorker,
  });
  const server = await startMain({
    ...common,
    DATA_DIR: await temporaryDirectory(),
    AUTH_DEV_KEY: 'true',
    WORKER_CONCURRENCY: '0',
    OTEL_RESOURCE_ATTRIBUTES: 'service.instance.id=server',
  });
  const workerOutput = await worker.printed('Working on up to');
  return { server, worker, workerOutput };
}

async function end({ child, ended }: Started): Promise<Ended> {
  child.kill('SIGTERM');
  return ended;
}

/** Which of OpenTelemetry's packages a process loaded. */
function loadedBy({ stderr }: Ended): string[] {
  return [
    ...new Set([...stderr.matchAll(/^loaded @opentelemetry\/(\S+)$/gm)].map(([, name = '']) => name)),
  ].sort();
}

/** The names of a trace's spans, each behind those that it is a part of. */
function pathsOf(spans: readonly CollectedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const pathOf = ({ name, parentSpanId }: CollectedSpan): string => {
    const parent = byId.get(parentSpanId);
    return parent === undefined ? name : `${pathOf(parent)} > ${name}`;
  };
  return spans.map(pathOf).sort();
}

test('an export and an import are told of whole: in one trace each, from the gateway on, and in every metric that is asked for', async () => {
  collector = await startSpanCollector();
  const { server, worker, workerOutput } = await startPair({
    METRICS_PORT: '0',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    NODE_OPTIONS: PRINT_LOADED,
  });
  const [exportTrace, importTrace, gatewaySpan] = ['a'.repeat(32), 'b'.repeat(32), 'c'.repeat(16)];
  const through = (traceId: string) => ({ traceparent: `00-${traceId}-${gatewaySpan}-01` });
  const exported = await ask<Exported>(server, EXPORT, {}, undefined, through(exportTrace));
  const { downloadUrl } = exported.exportStateArchive.operation.archive;
  const archive = await (await fetch(downloadUrl)).blob();
  expect(await ask(server, IMPORT, {}, archive, through(importTrace))).toEqual({
    importStateArchive: { operation: { status: 'SUCCEEDED' }, userErrors: [] },
  });

  const scrape = async (output: string) => {
    const [, url = ''] = /^Metrics +(?:at )?(\S+)$/m.exec(output) ?? [];
    return (await fetch(url)).text();
  };
  const ofServer = await scrape(server.announcement);
  const ofWorker = await scrape(workerOutput);
  expect(seriesValue(ofWorker, 'state_archive_operations_total{kind="export",outcome="succeeded"}')).toBe(1);
  expect(seriesValue(ofWorker, 'state_archive_operations_total{kind="import",outcome="succeeded"}')).toBe(1);
  expect(seriesValue(ofWorker, 'state_archive_archive_bytes_total{kind="import"}')).toBe(archive.size);
  expect(seriesValue(ofServer, 'state_archive_download_bytes_total')).toBe(archive.size);
  expect(seriesValue(ofServer, 'state_archive_upload_bytes_total{way="inline"}')).toBe(archive.size);
  expect(seriesValue(ofServer, 'state_archive_queue_known')).toBe(1);
  expectAllFound(`${ofServer}\n${ofWorker}`);
  for (const text of [ofServer, ofWorker]) expect(text).not.toMatch(/network|dev@localhost|restored/);

  // What is left is sent on the way out.
  const [endOfServer, endOfWorker] = [await end(server), await end(worker)];
  expect([endOfServer.exitCode, endOfWorker.exitCode]).toEqual([0, 0]);
  expect(loadedBy(endOfWorker)).toEqual(expect.arrayContaining(['sdk-metrics', 'sdk-trace-base']));
  const { spans: collected, bodies } = collector;
  const traceOf = (traceId: string) => collected.filter((span) => span.traceId === traceId);
  const [ofExport, ofImport] = [traceOf(exportTrace), traceOf(importTrace)];
  const request = 'POST /graphql';
  expect(pathsOf(ofExport)).toEqual(
    [
      request,
      `${request} > admit`,
      `${request} > queue`,
      `${request} > wait`,
      `${request} > export`,
      `${request} > export > export.plan`,
      `${request} > export > export.write`,
      `${request} > export > export.write > export.verify`,
      `${request} > export > export.store`,
      `${request} > export > export.record`,
    ].sort(),
  );
  expect(pathsOf(ofImport)).toEqual(
    [
      request,
      `${request} > receive`,
      `${request} > import.keep`,
      `${request} > admit`,
      `${request} > queue`,
      `${request} > wait`,
      `${request} > import`,
      `${request} > import > import.fetch`,
      `${request} > import > import.plan`,
      `${request} > import > import.plan > import.inspect`,
      `${request} > import > import.apply`,
      ...['versions', 'resources', 'other_rows', 'prove', 'commit'].map(
        (part) => `${request} > import > import.apply > import.${part}`,
      ),
    ].sort(),
  );
  for (const spans of [ofExport, ofImport]) {
    const first = spans.find(({ name }) => name === request);
    expect(first?.parentSpanId).toBe(gatewaySpan);
    const [operation] = spans.filter(({ name }) => name === 'export' || name === 'import');
    expect([first, operation].map((span) => span?.resource['service.instance.id'])).toEqual([
      'server',
      'worker',
    ]);
    expect(operation?.attributes).toMatchObject({
      'state_archive.operation.outcome': 'succeeded',
      'state_archive.request_id': first?.attributes['state_archive.request_id'],
      'state_archive.archive_bytes': String(archive.size),
    });
    expect(endOfServer.stderr).toContain(`"traceId":"${first?.traceId}"`);
    expect(spans.filter(({ isError }) => isError)).toEqual([]);
  }
  const told = bodies.map((body) => body.toString('latin1')).join();
  expect(told).not.toMatch(/demo\/network|dev@localhost|restored/);
  // For people to look at: `PRINT_TRACES=1`.
  if (process.env.PRINT_TRACES) {
    for (const spans of [ofExport, ofImport]) {
      process.stderr.write(`${printTrace(spans, { server: 'server', worker: 'worker' })}\n\n`);
    }
  }
});

/** Looks for all that the dashboard, the rules and the page speak of in what two processes expose. */
function expectAllFound(text: string): void {
  const metrics = new Map<string, ReturnType<typeof readMetrics>[number]>();
  for (const metric of readMetrics(text)) {
    const known = metrics.get(metric.name);
    const labels = [...new Set([...(known?.labels ?? []), ...metric.labels])].sort();
    metrics.set(metric.name, { ...metric, labels });
  }
  const unknown = expressions().flatMap(({ where, expression }) =>
    selectorsOf(expression).flatMap(({ name, labels }) => {
      const metric = metrics.get(name) ?? metrics.get(name.replace(/_(?:bucket|sum|count)$/, ''));
      if (metric === undefined) return [`${where}: ${name}`];
      // The two that Prometheus adds itself.
      const asked = labels.filter((label) => !['job', 'instance'].includes(label));
      return asked
        .filter((label) => !metric.labels.includes(label))
        .map((label) => `${where}: ${name}{${label}}`);
    }),
  );
  expect(unknown).toEqual([]);

  const rows = [...metrics.values()]
    .filter(({ name }) => name !== 'target_info')
    .sort((one, other) => one.name.localeCompare(other.name))
    .map(({ name, type, labels, help }) => {
      const ticked = labels.map((label) => `\`${label}\``).join(', ');
      return `| \`${name}\` | ${type} | ${ticked || '–'} | ${help} |`;
    });
  const page = readFileSync(PAGE, 'utf8');
  const printed = page.replace(
    /(?<=<!-- metrics -->\n)[\s\S]*?(?=<!-- \/metrics -->)/,
    () => `| metric | kind | labels | what it tells |\n|---|---|---|---|\n${rows.join('\n')}\n`,
  );
  if (process.env.UPDATE_DOCS === '1') writeFileSync(PAGE, printed);
  expect(printed).toBe(readFileSync(PAGE, 'utf8'));
}

interface Expression {
  readonly where: string;
  readonly expression: string;
}

/** Every expression of the dashboard and of the rules, by the panel or the alert. */
function expressions(): Expression[] {
  const read = (name: string) => readFileSync(new URL(name, EXAMPLES), 'utf8');
  const { panels, templating } = JSON.parse(read('dashboard.json'));
  const { groups } = parse(read('rules.yaml'));
  return [
    ...panels.flatMap(({ title, targets }: { title: string; targets: { expr: string }[] }) =>
      targets.map(({ expr }) => ({ where: title, expression: expr })),
    ),
    ...templating.list.flatMap(({ name, query }: { name: string; query: { query?: string } }) =>
      // label_values(metric, label)
      query.query === undefined
        ? []
        : [{ where: name, expression: query.query.replace(/^label_values\((.*), \w+\)$/, '$1') }],
    ),
    ...groups.flatMap(({ rules }: { rules: { alert: string; expr: string }[] }) =>
      rules.map(({ alert, expr }) => ({ where: alert, expression: expr })),
    ),
  ];
}

describe('who watches costs nothing', () => {
  test('while nobody does: of OpenTelemetry no more than its API is loaded', async () => {
    const server = await startMain({
      DATABASE_URL: given.connectionString,
      DATA_DIR: await temporaryDirectory(),
      AUTH_DEV_KEY: 'true',
      DRAIN_SECONDS: '0',
      NODE_OPTIONS: PRINT_LOADED,
    });
    await ask(server, EXPORT);
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404);
    expect(loadedBy(await end(server))).toEqual(['api']);
  });

  test('when the collector is frozen, or not there: operations end, and so do the processes', async () => {
    collector = await startSpanCollector({ isFrozen: true });
    const { server, worker } = await startPair(
      { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '1' },
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_TIMEOUT: '100' },
    );
    await ask<Exported>(server, EXPORT);
    await Promise.all([collector.connected, worker.printed('spans could not be sent')]);
    expect(await ask(server, '{ __typename }')).toEqual({ __typename: 'Query' });
    expect((await end(server)).exitCode).toBe(0);
    expect((await end(worker)).exitCode).toBe(0);
  });
});

const promtool = await new Promise<boolean>((resolve) =>
  execFile('promtool', ['--version'], (error) => resolve(error === null)),
);

(promtool ? test : test.skip)(
  'promtool takes the rules, and does what they say (skipped where there is none)',
  async () => {
    for (const args of [
      ['check', 'rules', 'rules.yaml'],
      ['test', 'rules', 'rules.test.yaml'],
      ['check', 'config', '--syntax-only', 'prometheus.yaml'],
    ]) {
      const output = await new Promise<string>((resolve) =>
        execFile('promtool', args, { cwd: fileURLToPath(EXAMPLES) }, (error, stdout, stderr) =>
          resolve(error === null ? '' : stdout + stderr),
        ),
      );
      expect(output).toBe('');
    }
  },
);
