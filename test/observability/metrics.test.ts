import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pino from 'pino';
import { type MetricSources, startMetrics } from '../../src/observability/metrics.ts';
import { serveMetrics } from '../../src/observability/metrics-server.ts';
import { startObservability } from '../../src/observability/observability.ts';
import { seriesOf, seriesValue } from '../support/exposition.ts';
import { startTestService, type TestService } from '../support/service.ts';

const TOKEN = 'what-the-collector-shows';
const WAITING = 'state_archive_queue_operations{status="waiting"}';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ METRICS_TOKEN: `an-older-one-of-them,${TOKEN}` });
});
afterAll(() => service.stop());

async function scrape(): Promise<string> {
  const response = await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  return response.text();
}

test('metrics beside everything else are for who shows the token alone', async () => {
  for (const authorization of [undefined, '', 'Bearer', 'Bearer guess', `Basic ${TOKEN}`, TOKEN]) {
    const response = await fetch(`${service.url}/metrics`, {
      headers: authorization ? { authorization } : {},
    });
    expect([authorization, response.status]).toEqual([authorization, 401]);
    expect(await response.text()).not.toContain('state_archive_');
  }
  expect((await fetch(`${service.url}/metrics`, { method: 'POST' })).status).toBe(405);
});

test('what is refused is counted by who refused it, and with which code', async () => {
  const count = async (by: string, code: string) =>
    seriesValue(await scrape(), `state_archive_refusals_total{by="${by}",code="${code}"}`) ?? 0;
  const refused = async (by: string, code: string, work: () => Promise<unknown>) => {
    const before = await count(by, code);
    await work();
    return [by, code, (await count(by, code)) - before];
  };
  expect([
    await refused('http', 'NOT_FOUND', () => fetch(`${service.url}/nowhere`)),
    await refused('http', 'UNAUTHENTICATED', () => service.ask('{ __typename }', { token: 'made-up' })),
    await refused('graphql', 'GRAPHQL_VALIDATION_FAILED', () => service.ask('{ nothing }')),
    await refused('mutation', 'STATE_NOT_FOUND', () =>
      service.ask('mutation { exportStateArchive(input: { name: "no/such" }) { userErrors { code } } }'),
    ),
  ]).toEqual([
    ['http', 'NOT_FOUND', 1],
    ['http', 'UNAUTHENTICATED', 1],
    ['graphql', 'GRAPHQL_VALIDATION_FAILED', 1],
    ['mutation', 'STATE_NOT_FOUND', 1],
  ]);
});

test('nobody makes series by what they ask for', async () => {
  const odd = async (name: string) => {
    await fetch(`${service.url}/${name}?${name}=1`, {
      headers: { [`x-${name}`]: name, 'x-request-id': name },
    });
    await bare(`/archives/${name}?token=${name}`, 'SEARCH');
    await bare(`/${name}`, 'PROPFIND');
    await service.ask(`query ${name} { ${name}: __typename }`);
    await service.ask(`{ ${name} }`);
    await service.ask(
      `mutation ${name} { exportStateArchive(input: { name: "${name}" }) { userErrors { code } } }`,
    );
    await service.ask('{ __typename }', {
      token: await service.token({ subject: name, workspace: name, environment: name }),
    });
  };
  await odd('planted1');
  const before = seriesOf(await scrape());
  for (const name of ['planted2', 'planted3']) await odd(name);
  const after = await scrape();
  expect(seriesOf(after)).toEqual(before);
  expect(after).not.toMatch(/planted/);
});

/** Sends a request with a method that `fetch` does not know. */
function bare(path: string, method: string): Promise<void> {
  return new Promise((resolve, reject) => {
    httpRequest(new URL(path, service.url), { method }, (response) => {
      response.resume();
      response.once('end', resolve);
    })
      .once('error', reject)
      .end();
  });
}

test('what is in the queue is told, of all processes', async () => {
  await service.database.pool.query(
    `insert into state_archive_queue.job (name, data, start_after, created_on)
     values ('operations', '{"environment":null}', now() + interval '1 day', now() - interval '1 hour')`,
  );
  let text = '';
  const statements = await service.statementsOf(async () => {
    text = await scrape();
  });
  expect(statements.filter((statement) => statement.includes('state_archive_queue'))).toHaveLength(1);
  expect(seriesValue(text, WAITING)).toBe(1);
  expect(seriesValue(text, 'state_archive_queue_oldest_seconds')).toBeGreaterThanOrEqual(3600);
});

test('a queue that cannot be looked at is told as such, with all the rest', async () => {
  const { pool } = service.database;
  await pool.query('alter table state_archive_queue.job rename to job_away');
  try {
    const text = await scrape();
    expect(seriesValue(text, 'state_archive_queue_known')).toBe(0);
    expect(seriesValue(text, WAITING)).toBeNaN();
    expect(seriesValue(text, 'state_archive_queue_oldest_seconds')).toBeNaN();
    expect(seriesValue(text, 'state_archive_database_connections_max{pool="control.reads"}')).toBeGreaterThan(
      0,
    );
  } finally {
    await pool.query('alter table state_archive_queue.job_away rename to job');
  }
  expect(seriesValue(await scrape(), 'state_archive_queue_known')).toBe(1);
});

/** Metrics by themselves, of a database that answers as the test says. */
async function servedAlone(
  queueDepth: MetricSources['queueDepth'],
  mayAsk: (authorization: string | undefined) => boolean,
  work: (url: string) => Promise<void>,
): Promise<void> {
  const metrics = startMetrics({ name: 'test', version: '0' }, { pools: () => [], queueDepth });
  const server = await serveMetrics({ host: '127.0.0.1', port: 0 }, metrics, mayAsk);
  try {
    await work(server.url);
  } finally {
    server.close();
    await metrics.close();
  }
}

test('whoever collects at the same moment shares one look at the queue', async () => {
  let asked = 0;
  let arrived = 0;
  const all = Promise.withResolvers<void>();
  const queueDepth = async () => {
    asked += 1;
    await all.promise;
    return { waiting: 7, active: 0, oldestSeconds: 1 };
  };
  const arrives = () => {
    arrived += 1;
    if (arrived === 10) all.resolve();
    return true;
  };
  await servedAlone(queueDepth, arrives, async (url) => {
    const texts = await Promise.all(Array.from({ length: 10 }, async () => (await fetch(url)).text()));
    expect(new Set(texts.map((text) => seriesValue(text, WAITING)))).toEqual(new Set([7]));
  });
  expect(asked).toBe(1);
});

test('a database that is frozen is asked once, and nobody who collects waits for it', async () => {
  let asked = 0;
  const never = () => {
    asked += 1;
    return new Promise<never>(() => {});
  };
  const metrics = startMetrics({ name: 'test', version: '0' }, { pools: () => [], queueDepth: never });
  try {
    expect(seriesValue(await metrics.scrape(), 'state_archive_queue_known')).toBe(0);
    const again = metrics.scrape();
    expect(asked).toBe(1);
    await metrics.close();
    expect(seriesValue(await again, 'state_archive_queue_known')).toBe(0);
  } finally {
    await metrics.close();
  }
});

test('a port that cannot be listened on ends the start in one line for the operator', async () => {
  const taken = createServer();
  await once(taken.listen(0, '127.0.0.1'), 'listening');
  const { port } = taken.address() as AddressInfo;
  const options = {
    metrics: { port, tokens: [] },
    traces: false,
    host: '127.0.0.1',
    service: { name: 'test', version: '0' },
    logger: pino({ level: 'silent' }),
  };
  const sources: MetricSources = { pools: () => [], queueDepth: () => Promise.reject(new Error('away')) };
  await expect(startObservability(options, sources)).rejects.toThrow(
    'HOST and METRICS_PORT cannot be listened on',
  );
  taken.close();
});

test('a port of its own serves metrics alone, to whom they are for', async () => {
  const away = () => Promise.reject(new Error('away'));
  await servedAlone(
    away,
    (authorization) => authorization === 'Bearer it',
    async (url) => {
      const ask = async (path: string, init: RequestInit = {}) =>
        (await fetch(new URL(url).origin + path, init)).status;
      const headers = { authorization: 'Bearer it' };
      expect([
        await ask('/metrics', { headers }),
        await ask('/metrics?a=b', { headers, method: 'HEAD' }),
        await ask('/metrics'),
        await ask('/metrics', { headers, method: 'POST', body: 'x' }),
        await ask('/graphql', { headers }),
        await ask('//metrics', { headers }),
      ]).toEqual([200, 200, 401, 405, 404, 404]);
    },
  );
});
