import { afterEach, expect, test } from '@jest/globals';
import pino from 'pino';
import { observeOperation, observeRequest } from '../../src/base/telemetry.ts';
import { startTraces } from '../../src/observability/traces.ts';
import { sweepOperations } from '../../src/operations/operation-sweep.ts';
import { GATEWAY_SECRET, startTestServer } from '../http/support/test-server.ts';
import { createCaller, ended, openBackend, runExport } from '../operations/support/backend.ts';
import { postFirstDocument } from '../operations/support/histories.ts';
import { type CollectedSpan, type SpanCollector, startSpanCollector } from '../support/span-collector.ts';

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';

let collector: SpanCollector;
afterEach(async () => {
  delete process.env[ENDPOINT];
  await collector.close();
});

/** The spans of what `work` does. */
async function spansOf(work: () => Promise<void>): Promise<readonly CollectedSpan[]> {
  collector = await startSpanCollector();
  process.env[ENDPOINT] = collector.url;
  const stop = startTraces({ name: 'test', version: '0' }, pino({ level: 'silent' }));
  try {
    await work();
  } finally {
    await stop();
  }
  return collector.spans;
}

const TRACE = 'd'.repeat(32);
const TOLD = {
  traceparent: `00-${TRACE}-${'e'.repeat(16)}-01`,
  tracestate: 'vendor=planted',
  baggage: 'who=planted',
};

async function ask(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{"query":"query Named { hello }"}',
  });
  await response.text();
}

test.each([
  ['the gateway’s, where it proves itself', true, { 'x-gateway-secret': GATEWAY_SECRET }, true],
  ['a stranger’s, where the gateway would have proven itself', true, {}, false],
  ['anybody’s, where nobody has to', false, {}, true],
])('a trace is gone on with or linked to: %s', async (_whose, gatewayProofRequired, proof, goesOn) => {
  const spans = await spansOf(async () => {
    const { url, stop } = await startTestServer(gatewayProofRequired ? {} : { isGateway: null });
    await ask(url, { ...TOLD, ...proof });
    await stop();
  });
  expect(spans.map(({ name, attributes }) => [name, attributes['graphql.operation.name']])).toEqual([
    ['POST /graphql', 'Named'],
  ]);
  const [{ traceId, links } = { traceId: '', links: [] }] = spans;
  expect([traceId === TRACE, links]).toEqual(goesOn ? [true, []] : [false, [TRACE]]);
  // What else the sender says goes nowhere.
  expect(collector.bodies.map(String).join()).not.toContain('planted');
});

test('what machines ask for by the clock, and what is nowhere, has no spans', async () => {
  const spans = await spansOf(async () => {
    const { url, stop } = await startTestServer();
    for (const path of ['/livez', '/readyz', '/nowhere']) await fetch(url + path, { headers: TOLD });
    await stop();
  });
  expect(spans).toEqual([]);
});

test('a traceparent that is none begins a trace of its own', async () => {
  const spans = await spansOf(async () => {
    for (const traceparent of [
      '',
      'nonsense',
      `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`,
      'x'.repeat(5000),
    ]) {
      const request = { method: 'POST', route: '/graphql', requestId: 'one', traceparent };
      observeRequest({ ...request, isTrusted: true, isTraced: true }).end({
        status: 200,
        operationName: undefined,
      });
    }
  });
  expect(spans.map(({ parentSpanId, links }) => [parentSpanId, links])).toEqual(Array(4).fill(['', []]));
});

test('an operation that the queue has lost and the sweep queues again goes on with the trace of its request', async () => {
  const backend = await openBackend();
  try {
    const caller = await createCaller(backend);
    await postFirstDocument(backend.database, caller, 'app');
    const spans = await spansOf(async () => {
      const release = backend.holdQueue();
      const request = {
        method: 'POST',
        route: '/graphql',
        requestId: 'one',
        isTrusted: true,
        isTraced: true,
      };
      const observed = observeRequest({ ...request, traceparent: TOLD.traceparent });
      const { id } = await observed.run(() => runExport(backend, caller, 'app', { waitSeconds: 0 }));
      await backend.query('delete from state_archive_queue.job where id = $1', [id]);
      await backend.query(
        "update state_archive.operation set heartbeat_at = now() - interval '1 hour' where id = $1",
        [id],
      );
      await sweepOperations(backend.database, backend.services.queue);
      release();
      await ended(backend.services, caller, id);
      observed.end({ status: 200, operationName: undefined });
    });
    expect(spans.find(({ name }) => name === 'export')?.traceId).toBe(TRACE);
  } finally {
    await backend.close();
  }
});

test('a failure tells its kind, and not what it says', async () => {
  class PlantedError extends Error {
    override readonly name = 'PlantedError';
  }
  const operation = { id: 'one', kind: 'export', attempt: 2, requestId: 'two', waitedSeconds: null } as const;
  const { inPhase } = await import('../../src/base/telemetry.ts');
  const spans = await spansOf(async () => {
    await observeOperation(operation, undefined, async () => {
      await inPhase('export.write', () => Promise.reject(new PlantedError('planted'))).catch(() => {});
      return 'handed back';
    });
  });
  expect(spans.map(({ name, isError, attributes }) => [name, isError, attributes['error.type']])).toEqual([
    ['export.write', true, 'PlantedError'],
    ['export', false, undefined],
  ]);
  expect(spans[1]?.attributes['state_archive.operation.outcome']).toBe('handed_back');
  expect(collector.bodies.map(String).join()).not.toContain('"planted"');
  expect(collector.bodies.map(String).join()).not.toContain(' at ');
});
