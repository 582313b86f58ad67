import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { metrics, type Observable } from '@opentelemetry/api';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { makeEach, useCurrentMeterProvider } from '../base/telemetry.ts';
import { type ObservedService, resourceOf } from './resource.ts';

/** The connections of a pool, at this moment. */
export interface PoolUse {
  /** A name of ours: which databases, and for what work. */
  readonly name: string;
  readonly used: number;
  readonly idle: number;
  /** How much work waits for a connection. */
  readonly waiting: number;
  readonly max: number;
}

/** What is in the queue, at this moment. */
export interface QueueDepth {
  /** How many operations wait. */
  readonly waiting: number;
  /** How many are worked on, by whichever process. */
  readonly active: number;
  /** For how long the oldest of those that wait has been in the queue, in seconds; 0 when none waits. */
  readonly oldestSeconds: number;
}

/** What is asked when metrics are. */
export interface MetricSources {
  readonly pools: () => readonly PoolUse[];
  /** Asks the database: one statement. */
  readonly queueDepth: () => Promise<QueueDepth>;
}

/** The metrics of this process. */
export interface Metrics {
  /** All of them, as Prometheus reads them. Whoever asks at the same moment gets the same text. */
  readonly scrape: () => Promise<string>;
  readonly close: () => Promise<void>;
}

/** The media type of what {@link Metrics.scrape} gives. */
export const METRICS_MEDIA_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** How long a scrape waits for the database; those who collect give up after ten seconds. */
const QUEUE_MS = 2_000;
const LOOP_RESOLUTION_MS = 10;
const NANOSECONDS = 1e9;

/** What is looked at when metrics are asked for, beside what the work itself counts. */
const GAUGES = {
  state_archive_queue_operations: 'Operations in the queue, of all processes and environments',
  state_archive_queue_oldest_seconds: 'For how long the oldest operation that waits has been in the queue',
  state_archive_queue_known: 'Whether the database said what is in the queue: 1 or 0',
  state_archive_database_connections: 'Connections of the pools that are open',
  state_archive_database_connections_max: 'Connections that the pools may have open',
  state_archive_database_waiting: 'Work that waits for a connection',
  nodejs_eventloop_delay_seconds:
    'How much later than meant the event loop came to a timer, since the last scrape',
  process_resident_memory_bytes: 'Memory of the process',
  nodejs_heap_size_used_bytes: 'Memory of JavaScript objects in the main thread',
  nodejs_external_memory_bytes: 'Memory of buffers in the main thread',
};

const QUANTILES = { '0.5': 50, '0.99': 99, '1': 100 };
// What is not observed is told again as it was.
const UNKNOWN: QueueDepth = { waiting: Number.NaN, active: Number.NaN, oldestSeconds: Number.NaN };

/** Begins to keep metrics. */
export function startMetrics(service: ObservedService, { pools, queueDepth }: MetricSources): Metrics {
  // It listens nowhere: who may ask is for our own routes to say.
  const reader = new PrometheusExporter({ preventServerStart: true });
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  const provider = new MeterProvider({ resource: resourceOf(service), readers: [reader] });
  metrics.setGlobalMeterProvider(provider);
  useCurrentMeterProvider();
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();

  const meter = provider.getMeter('kilolock-state-archive');
  const gauges: Record<keyof typeof GAUGES, Observable> = makeEach(GAUGES, (name, description) =>
    meter.createObservableGauge(name, { description }),
  );
  let reading: Promise<QueueDepth> | null = null;
  /** However often it is asked for, one statement is at work at a time; null when the database does not say, or not soon. */
  const lookAtQueue = (): Promise<QueueDepth | null> => {
    reading ??= queueDepth().finally(() => {
      reading = null;
    });
    return Promise.race([reading, pause(QUEUE_MS, null, { ref: false })]).catch(() => null);
  };
  meter.addBatchObservableCallback(async (result) => {
    const observe = (name: keyof typeof GAUGES, value: number, labels?: Readonly<Record<string, string>>) =>
      result.observe(gauges[name], value, labels);
    const known = await lookAtQueue();
    const { waiting, active, oldestSeconds } = known ?? UNKNOWN;
    observe('state_archive_queue_known', known === null ? 0 : 1);
    observe('state_archive_queue_operations', waiting, { status: 'waiting' });
    observe('state_archive_queue_operations', active, { status: 'active' });
    observe('state_archive_queue_oldest_seconds', oldestSeconds);
    for (const { name: pool, ...use } of pools()) {
      observe('state_archive_database_connections', use.used, { pool, state: 'used' });
      observe('state_archive_database_connections', use.idle, { pool, state: 'idle' });
      observe('state_archive_database_connections_max', use.max, { pool });
      observe('state_archive_database_waiting', use.waiting, { pool });
    }
    for (const [quantile, percentile] of Object.entries(QUANTILES)) {
      // What is measured is the time between two looks, which is the resolution when nothing is late.
      const late = loop.percentile(percentile) / NANOSECONDS - LOOP_RESOLUTION_MS / 1000;
      observe('nodejs_eventloop_delay_seconds', Math.max(0, late), { quantile });
    }
    loop.reset();
    const memory = process.memoryUsage();
    observe('process_resident_memory_bytes', memory.rss);
    observe('nodejs_heap_size_used_bytes', memory.heapUsed);
    observe('nodejs_external_memory_bytes', memory.external);
  }, Object.values(gauges));

  let scraping: Promise<string> | null = null;
  return {
    scrape() {
      scraping ??= reader
        .collect()
        .then(({ resourceMetrics }) => serializer.serialize(resourceMetrics))
        .finally(() => {
          scraping = null;
        });
      return scraping;
    },
    async close() {
      // It waits for no more than the database may take.
      await scraping?.catch(() => {});
      loop.disable();
      metrics.disable();
      useCurrentMeterProvider();
      await provider.shutdown().catch(() => {});
    },
  };
}
