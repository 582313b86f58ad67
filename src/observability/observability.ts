import { DiagLogLevel, diag } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { clip } from '../base/clip.ts';
import { redactSecrets } from '../base/error-log.ts';
import { blameOperator } from '../base/operator-error.ts';
import { createSecretProof } from '../base/shown-secret.ts';
import type { MetricSources } from './metrics.ts';
import type { ObservedService } from './resource.ts';

/** How the process is watched from outside; `Config.observability` says what each means. */
export interface ObservabilityOptions {
  readonly metrics: { readonly port: number | null; readonly tokens: readonly string[] } | null;
  readonly traces: boolean;
  /** Where the port of the metrics is listened on. */
  readonly host: string;
  readonly service: ObservedService;
  readonly logger: Logger;
}

/** What the process tells whoever watches it. */
export interface Observability {
  /** Where metrics are served by themselves; null: nowhere. */
  readonly metricsUrl: string | null;
  /** The metrics, for who shows this header `Authorization`; null where they are not served with all the rest. */
  readonly metricsRoute: MetricsRoute | null;
  /** Sends what is left, as far as that goes quickly. */
  close(): Promise<void>;
}

/** Metrics that are served with all the rest. */
export interface MetricsRoute {
  readonly mediaType: string;
  readonly mayAsk: (authorization: string | undefined) => boolean;
  readonly scrape: () => Promise<string>;
}

/** Nobody is told anything. */
const UNOBSERVED: Observability = { metricsUrl: null, metricsRoute: null, close: async () => {} };

/**
 * Begins to tell whoever watches the process, as far as anybody asked for it: what nobody asked for is not even loaded.
 *
 * @throws OperatorError when the port of the metrics cannot be listened on.
 */
export async function startObservability(
  options: ObservabilityOptions,
  sources: MetricSources,
): Promise<Observability> {
  const { traces, service, logger } = options;
  if (options.metrics === null && !traces) return UNOBSERVED;
  listenToSdk(logger);
  const metrics =
    options.metrics === null ? UNOBSERVED : await openMetrics(options.metrics, options, sources);
  const endTraces = traces ? (await import('./traces.ts')).startTraces(service, logger) : async () => {};
  return {
    ...metrics,
    async close() {
      await Promise.all([endTraces(), metrics.close()]);
      diag.disable();
    },
  };
}

async function openMetrics(
  { port, tokens }: NonNullable<ObservabilityOptions['metrics']>,
  { host, service }: ObservabilityOptions,
  sources: MetricSources,
): Promise<Observability> {
  const { METRICS_MEDIA_TYPE: mediaType, startMetrics } = await import('./metrics.ts');
  const { serveMetrics } = await import('./metrics-server.ts');
  const { scrape, close } = startMetrics(service, sources);
  const isShown = createSecretProof(tokens);
  const mayAsk = (authorization = '') => {
    const scheme = /^Bearer +/i.exec(authorization)?.[0];
    return isShown(scheme && authorization.slice(scheme.length));
  };
  if (port === null) return { metricsUrl: null, metricsRoute: { mediaType, mayAsk, scrape }, close };
  const server = await serveMetrics(
    { host, port },
    { scrape },
    tokens.length === 0 ? () => true : mayAsk,
  ).catch(async (error) => {
    await close();
    return blameOperator('HOST and METRICS_PORT cannot be listened on')(error);
  });
  return {
    metricsUrl: server.url,
    metricsRoute: null,
    async close() {
      server.close();
      await close();
    },
  };
}

const MAX_MESSAGE = 300;

/** What the SDK complains of, such as a variable of its own that it cannot read, belongs in the log. */
function listenToSdk(logger: Logger): void {
  const warn = (message: string) =>
    logger.warn({ message: clip(redactSecrets(message), MAX_MESSAGE) }, 'OpenTelemetry');
  const nothing = () => {};
  diag.setLogger(
    { error: warn, warn, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
