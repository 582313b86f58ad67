import { setTimeout as pause } from 'node:timers/promises';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import { describeError } from '../base/error-log.ts';
import { type ObservedService, resourceOf } from './resource.ts';

/** How long a shutdown waits until the last spans are sent. */
const FLUSH_MS = 2_000;
const TELL_AGAIN_MS = 60_000;

/**
 * Begins to keep traces, and to send them to where the OTEL_* variables say, which the SDK reads itself: in the background, in
 * batches, from a queue with an end. Nothing ever waits for the collector.
 *
 * @returns sends what is left, as far as that goes quickly, and ends it.
 */
export function startTraces(service: ObservedService, logger: Logger): () => Promise<void> {
  let toldAt = Number.NEGATIVE_INFINITY;
  setGlobalErrorHandler((error) => {
    // A collector that is away is so for every batch.
    if (performance.now() - toldAt < TELL_AGAIN_MS) return;
    toldAt = performance.now();
    logger.warn(
      { error: describeError(error) },
      'spans could not be sent; they are lost, and nothing else is',
    );
  });
  const provider = new BasicTracerProvider({
    resource: resourceOf(service),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return async () => {
    const sent = provider.shutdown().catch(() => {});
    await Promise.race([sent, pause(FLUSH_MS, undefined, { ref: false })]);
    for (const api of [trace, propagation, context]) api.disable();
  };
}
