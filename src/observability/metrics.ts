import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { metrics, type Observable } from '@opentelemetry/api';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { useCurrentMeterProvider } from '../base/telemetry.ts';
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

/** Begins to keep metrics. */
export function startMetrics(service: ObservedService, sources: MetricSources): Metrics {
  // It listens nowhere: who may ask is for our own routes to say.
  const reader = new PrometheusExporter({ preventServerStart: true });
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  const provider = new MeterProvider({ resource: resourceOf(service), readers: [reader] });
  metrics.setGlobalMeterProvider(provider);
  useCurrentMeterProvider();

  const queue = new QueueLook(sources.queueDepth);
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  observeProcess(provider, sources, queue, loop);

  let scraping: Promise<string> | null = null;
  const scrape = async () => {
    await queue.look();
    const { resourceMetrics } = await reader.collect();
    loop.reset();
    return serializer.serialize(resourceMetrics);
  };
  return {
    scrape() {
      scraping ??= scrape().finally(() => {
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

/** The last look at the queue. However often it is asked for, one statement is at work at a time. */
class QueueLook {
  readonly #read: MetricSources['queueDepth'];
  #reading: Promise<void> | null = null;
  /** Null while the database does not say. */
  depth: QueueDepth | null = null;

  constructor(read: MetricSources['queueDepth']) {
    this.#read = read;
  }

  /** Looks, and does not wait long for it. */
  async look(): Promise<void> {
    this.depth = null;
    this.#reading ??= this.#read()
      .then((depth) => {
        this.depth = depth;
      })
      // That it is not known is what is told.
      .catch(() => {})
      .finally(() => {
        this.#reading = null;
      });
    await Promise.race([this.#reading, pause(QUEUE_MS, undefined, { ref: false })]);
  }
}

type EventLoopDelay = ReturnType<typeof monitorEventLoopDelay>;

function observeProcess(
  provider: MeterProvider,
  { pools }: MetricSources,
  queue: QueueLook,
  loop: EventLoopDelay,
): void {
  const meter = provider.getMeter('kilolock-state-archive');
  const gauge = (name: string, description: string) => meter.createObservableGauge(name, { description });
  const operations = gauge(
    'state_archive_queue_operations',
    'Operations in the queue, of all processes and environments',
  );
  const oldest = gauge(
    'state_archive_queue_oldest_seconds',
    'For how long the oldest operation that waits has been in the queue',
  );
  const known = gauge('state_archive_queue_known', 'Whether the database said what is in the queue: 1 or 0');
  const connections = gauge('state_archive_database_connections', 'Connections of the pools that are open');
  const maxConnections = gauge(
    'state_archive_database_connections_max',
    'Connections that the pools may have open',
  );
  const waiting = gauge('state_archive_database_waiting', 'Work that waits for a connection');
  const delay = gauge(
    'nodejs_eventloop_delay_seconds',
    'How much later than meant the event loop came to a timer, since the last scrape',
  );
  const resident = gauge('process_resident_memory_bytes', 'Memory of the process');
  const heap = gauge('nodejs_heap_size_used_bytes', 'Memory of JavaScript objects in the main thread');
  const external = gauge('nodejs_external_memory_bytes', 'Memory of buffers in the main thread');
  const all: Observable[] = [
    ...[operations, oldest, known, connections, maxConnections, waiting],
    ...[delay, resident, heap, external],
  ];
  meter.addBatchObservableCallback((result) => {
    result.observe(known, queue.depth === null ? 0 : 1);
    // What is not observed is told again as it was.
    const depth = queue.depth ?? { waiting: Number.NaN, active: Number.NaN, oldestSeconds: Number.NaN };
    result.observe(operations, depth.waiting, { status: 'waiting' });
    result.observe(operations, depth.active, { status: 'active' });
    result.observe(oldest, depth.oldestSeconds);
    for (const { name: pool, ...use } of pools()) {
      result.observe(connections, use.used, { pool, state: 'used' });
      result.observe(connections, use.idle, { pool, state: 'idle' });
      result.observe(maxConnections, use.max, { pool });
      result.observe(waiting, use.waiting, { pool });
    }
    for (const [quantile, percentile] of [
      ['0.5', 50],
      ['0.99', 99],
      ['1', 100],
    ] as const) {
      // What is measured is the time between two looks, which is the resolution when nothing is late.
      const late = loop.percentile(percentile) / NANOSECONDS - LOOP_RESOLUTION_MS / 1000;
      result.observe(delay, Math.max(0, late), { quantile });
    }
    const memory = process.memoryUsage();
    result.observe(resident, memory.rss);
    result.observe(heap, memory.heapUsed);
    result.observe(external, memory.external);
  }, all);
}
