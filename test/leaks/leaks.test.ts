import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { loadOrCreateDevelopmentKey, signDevelopmentToken } from '../../src/auth/development-key.ts';
import {
  cleanUp,
  onEmbedded,
  removeTemplate,
  startMain,
  usedDataDirectory,
} from '../e2e/support/processes.ts';
import { ALL_SCOPES, startTestService } from '../support/service.ts';
import { startSpanCollector } from '../support/span-collector.ts';
import { drive, type Outcomes } from './support/drive.ts';
import { SecretWatch } from './support/secrets.ts';

const KEPT = [
  'events',
  'state_archive.operation',
  'state_archive.version_mapping',
  'state_archive.version_digest',
];

let directory = '';

afterEach(async () => {
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
  delete process.env.OTEL_EXPORTER_OTLP_HEADERS;
  await cleanUp();
  await rm(directory, { recursive: true, force: true });
});
afterAll(() => removeTemplate());

/** What went well and what did not: without it, nothing found would prove nothing. */
function expectEverythingTried(outcomes: Outcomes): void {
  expect(outcomes).toMatchObject({
    'snapshot 1': 'ok',
    'snapshot by literal': 'ok',
    'snapshot by file': 'ok',
    'snapshot that is no JSON': 'UNSUPPORTED_STATE_DOCUMENT',
    'raw state': 'ok',
    export: 'ok',
    download: '200',
    import: 'ok',
    'import tried': 'ok',
    'import of a taken name': 'STATE_ALREADY_EXISTS',
    'import cut short': 'ARCHIVE_TRUNCATED',
    'import with a byte flipped': 'ARCHIVE_CORRUPT',
    'import of something else': 'ARCHIVE_UNSUPPORTED_FORMAT',
    'import of no JSON': 'UNSUPPORTED_STATE_DOCUMENT',
    'snapshot against a constraint': 'INTERNAL',
    'import against a constraint': 'INTERNAL',
    'snapshot against a missing table': 'INTERNAL',
    'export against a missing table': 'INTERNAL',
    'a token of no kind': 'UNAUTHENTICATED',
  });
}

describe('nothing secret leaves the service but where it is asked for by right', () => {
  test('from inside: no answer, header, log line, event or record holds a state value, token, link, password or path', async () => {
    directory = await mkdtemp(join(tmpdir(), 'leaks-'));
    const watch = new SecretWatch();
    const metricsToken = watch.plant('the token of the metrics');
    const collector = await startSpanCollector();
    // The SDK reads its own.
    process.env.OTEL_EXPORTER_OTLP_ENDPOINT = collector.url;
    process.env.OTEL_EXPORTER_OTLP_HEADERS = `authorization=${watch.plant('the credential of the collector')}`;
    const service = await startTestService({
      LOG_LEVEL: 'trace',
      METRICS_TOKEN: metricsToken,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    });
    const { database, dataDirectory } = service;
    watch.add('the data directory', dataDirectory);
    const token = await service.token();
    const outcomes = await drive({
      url: service.url,
      token,
      sql: (text) => database.pool.query(text),
      directory,
      watch,
    });
    expectEverythingTried(outcomes);

    await unreachableEnvironment(watch, service);
    await unusableStore(watch, service);

    for (const [index, line] of service.log.entries()) watch.note(`log line ${index}`, line);
    for (const table of KEPT) {
      const { rows } = await database.pool.query(`select to_jsonb(kept)::text as row from ${table} kept`);
      for (const { row } of rows) watch.note(`a row of ${table}`, row);
    }
    const scraped = await fetch(`${service.url}/metrics`, {
      headers: { authorization: `Bearer ${metricsToken}` },
    });
    const metrics = await scraped.text();
    await service.stop();
    await collector.close();
    const spans = Buffer.concat(collector.bodies).toString('latin1');
    for (const [where, text] of Object.entries({ metrics, spans })) {
      watch.note(`the ${where}`, text);
      // Nor what is no secret, and not theirs to tell: whose states there are, and what they are called.
      expect([where, text.match(/alice@test|secret\/|restored\/|ws_leak|env_leak/)]).toEqual([where, null]);
    }
    expect(metrics).toContain('state_archive_refusals_total{by="operation",code="ARCHIVE_CORRUPT"} 1');
    expect(collector.spans.filter(({ name }) => name === 'import').length).toBeGreaterThanOrEqual(2);
    expect(service.log.filter((line) => line.includes('operation failed')).length).toBeGreaterThanOrEqual(2);
    expect(watch.leaks()).toEqual([]);
    expect(watch.seen().sort()).toEqual(['a link', 'a value of a state']);
  });

  test('from outside: nor does a line the process prints, PostgreSQL and all, at the most talkative level', async () => {
    directory = await mkdtemp(join(tmpdir(), 'leaks-'));
    const dataDirectory = await usedDataDirectory();
    const service = await startMain({ DATA_DIR: dataDirectory, LOG_LEVEL: 'trace' });
    const watch = new SecretWatch();
    watch.add('the announced token', service.token);
    watch.add(
      'the password of the database',
      (await readFile(join(dataDirectory, 'postgres', 'password'), 'utf8')).trim(),
    );
    const token = await signDevelopmentToken(await loadOrCreateDevelopmentKey(dataDirectory), {
      subject: 'alice@test',
      scopes: ALL_SCOPES,
      ttlSeconds: 600,
    });
    const outcomes = await drive({
      url: service.url,
      token,
      sql: (text) => onEmbedded(dataDirectory, text),
      directory,
      watch,
    });
    expectEverythingTried(outcomes);
    for (const table of KEPT) {
      for (const row of await onEmbedded(
        dataDirectory,
        `select to_jsonb(kept)::text as row from ${table} kept`,
      )) {
        watch.note(`a row of ${table}`, JSON.stringify(row));
      }
    }
    service.child.kill('SIGTERM');
    const { stdout, stderr } = await service.ended;
    watch.note('standard output', stdout, ['the announced token']);
    watch.note('standard error', stderr);
    expect(stderr).toContain('operation failed');
    expect(watch.leaks()).toEqual([]);
    expect(watch.seen()).toContain('the announced token');
  });
});

type TestService = Awaited<ReturnType<typeof startTestService>>;

/** An environment whose own database refuses the connection: its address holds a password. */
async function unreachableEnvironment(
  watch: SecretWatch,
  { database, ask, token }: TestService,
): Promise<void> {
  const password = watch.plant('the password of an environment');
  await database.pool.query(
    `insert into tenants (workspace_id, slug, name) values ('ws_leak', 'ws_leak', 'ws_leak')`,
  );
  await database.pool.query(
    `insert into environments (tenant_id, env_public_id, slug, database_dsn, status)
     select id, 'env_leak', 'env_leak', $1, 'ready' from tenants where workspace_id = 'ws_leak'`,
    [`postgresql://app:${password}@127.0.0.1:1/leak`],
  );
  const credential = await token({ workspace: 'ws_leak', environment: 'env_leak' });
  const answer = await ask('{ stateArchives { nodes { id } } }', { token: credential });
  expect(answer.denials).toEqual(['stateArchives: UNAVAILABLE']);
  watch.note('the answer of an environment that is not reached', answer.text);
}

/** A store that is a file where a directory should be: the errors of the file system name it. */
async function unusableStore(watch: SecretWatch, { dataDirectory, ask }: TestService): Promise<void> {
  const archives = join(dataDirectory, 'store', 'archives');
  await rm(archives, { recursive: true });
  await writeFile(archives, '');
  const answer = await ask(
    'mutation { exportStateArchive(input: { name: "secret/app" }) { operation { error { code message } } userErrors { code message } } }',
  );
  expect(answer.text).toContain('INTERNAL');
  watch.note('the answer to an export without a store', answer.text);
}
