import {
  type Context,
  context,
  isSpanContextValid,
  metrics,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';

/**
 * @file What the service tells of its work to whoever watches it, by OpenTelemetry's API. While nobody does, that API does
 * nothing, and none of the SDK is loaded: `observability/` sets it going.
 *
 * What is told has few values that are known beforehand, or is a number or an id of ours: no name of a state, a tenant or a
 * caller, and nothing of what a state or a request holds. That is why the labels are types here, and not text.
 */

const SCOPE = 'kilolock-state-archive';

/** The kinds of operation that are told apart. */
export type ObservedKind = 'export' | 'import' | 'dry_run';

/** How an attempt at an operation ended. */
export const OUTCOMES = ['succeeded', 'failed', 'cancelled', 'handed back', 'lost', 'undecided'] as const;
export type ObservedOutcome = (typeof OUTCOMES)[number];

/** A part of the work whose time is told by itself; docs/observability.md says what each is. */
export type Phase =
  | `export.${'plan' | 'write' | 'verify' | 'seal' | 'store' | 'record'}`
  | 'receive'
  | 'admit'
  | 'wait'
  | `import.${'keep' | 'fetch' | 'plan' | 'inspect' | 'turn' | 'apply'}`
  | `import.${'versions' | 'resources' | 'other_rows' | 'prove' | 'commit'}`;

/** Where something was refused: by HTTP, by GraphQL, by a mutation in its `userErrors`, or by an operation that failed. */
export type RefusedBy = 'http' | 'graphql' | 'mutation' | 'operation';

/** Seconds: a phase of a small state takes milliseconds, and an import of a long history an hour. */
const WORK_SECONDS = [0.01, 0.05, 0.25, 1, 5, 15, 60, 300, 900, 3600];
/** A request may wait for its operation up to 25 seconds. */
const REQUEST_SECONDS = [0.005, 0.025, 0.1, 0.25, 1, 5, 30];

// The names are spelt as Prometheus has them, whose exporter adds no units.
const COUNTERS = {
  state_archive_operations: 'Attempts at operations that have ended, by how',
  state_archive_versions: 'Versions that operations which succeeded have moved',
  state_archive_raw_bytes: 'Bytes of raw states that operations which succeeded have moved',
  state_archive_archive_bytes: 'Bytes of the archives of operations which succeeded',
  state_archive_upload_bytes: 'Bytes of files received, within a request or by an upload link',
  state_archive_downloads: 'Downloads that have ended, by how',
  state_archive_download_bytes: 'Bytes of archives handed out by this process',
  state_archive_refusals: 'Requests and operations that were refused or failed, by the code that was told',
};
const ACTIVE = 'state_archive_operations_active';
const WORK = {
  state_archive_operation_duration_seconds:
    'How long attempts at operations took, without waiting in the queue',
  state_archive_queue_wait_seconds: 'How long operations waited before they were taken up for the first time',
  state_archive_phase_duration_seconds: 'How long the phases of operations took',
};
const REQUESTS = { http_server_request_duration_seconds: 'How long HTTP requests took' };

let instruments = makeInstruments();

/** Makes the instruments anew: those of a moment ago go on telling the provider of that moment. */
export function useCurrentMeterProvider(): void {
  instruments = makeInstruments();
}

function makeInstruments() {
  const meter = metrics.getMeter(SCOPE);
  const secondsIn = (explicitBucketBoundaries: number[]) => (name: string, description: string) =>
    meter.createHistogram(name, { description, advice: { explicitBucketBoundaries } });
  const made = {
    ...makeEach(COUNTERS, (name, description) => meter.createCounter(name, { description })),
    ...makeEach(WORK, secondsIn(WORK_SECONDS)),
    ...makeEach(REQUESTS, secondsIn(REQUEST_SECONDS)),
    [ACTIVE]: meter.createUpDownCounter(ACTIVE, { description: 'Operations that this process works on' }),
  };
  // What has not happened is told as nothing, and not left out: an increase from nothing to one is seen only so.
  for (const kind of ['export', 'import', 'dry_run'] satisfies ObservedKind[]) {
    for (const outcome of OUTCOMES) made.state_archive_operations.add(0, labelsOf(kind, outcome));
    made[ACTIVE].add(0, { kind });
    made.state_archive_versions.add(0, { kind });
    made.state_archive_raw_bytes.add(0, { kind });
    made.state_archive_archive_bytes.add(0, { kind });
  }
  for (const by of ['http', 'graphql', 'mutation', 'operation'] satisfies RefusedBy[]) {
    made.state_archive_refusals.add(0, { by, code: 'INTERNAL' });
  }
  for (const outcome of ['whole', 'cut', 'redirected']) made.state_archive_downloads.add(0, { outcome });
  made.state_archive_download_bytes.add(0);
  for (const way of ['inline', 'staged']) made.state_archive_upload_bytes.add(0, { way });
  return made;
}

/** Makes something of each entry of a table, under the entry's name. */
export function makeEach<Name extends string, Entry, Made>(
  table: Readonly<Record<Name, Entry>>,
  make: (name: string, entry: Entry) => Made,
): Record<Name, Made> {
  const made = Object.entries<Entry>(table).map(([name, entry]) => [name, make(name, entry)]);
  return Object.fromEntries(made);
}

function labelsOf(kind: ObservedKind, outcome: ObservedOutcome) {
  return { kind, outcome: outcome.replace(' ', '_') };
}

const tracer = () => trace.getTracer(SCOPE);

/** An HTTP request while it is served. */
export type ObservedRequest = ReturnType<typeof observeRequest>;

/** What is known of a request when it comes in. */
export interface IncomingRequest {
  readonly method: string;
  /** The pattern of its address; undefined when it has none. */
  readonly route: string | undefined;
  /** What the log knows it by. */
  readonly requestId: string;
  /** The header `traceparent` (W3C Trace Context), as it came. */
  readonly traceparent: string | undefined;
  /** Whether the trace it names is one to go on with; from others it is noted as a link. */
  readonly isTrusted: boolean;
  /** Whether it is worth a span of its own. */
  readonly isTraced: boolean;
}

/** The methods that have a label of their own; whatever else HTTP knows shares one. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Begins to observe a request. */
export function observeRequest(request: IncomingRequest) {
  const { route, isTraced } = request;
  const method = METHODS.has(request.method) ? request.method : '_OTHER';
  const begun = performance.now();
  const span = isTraced ? beginRequestSpan(request, method) : null;
  const within = span === null ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, span);
  return {
    /** Its trace's id; undefined when none is kept of it. */
    traceId: span?.isRecording() ? span.spanContext().traceId : undefined,
    /** Does work whose phases belong to the request. */
    run: <Result>(work: () => Result): Result => (span === null ? work() : context.with(within, work)),
    /** To be called once, when the response is over. */
    end({ status, operationName }: { readonly status: number; readonly operationName: string | undefined }) {
      instruments.http_server_request_duration_seconds.record((performance.now() - begun) / 1000, {
        http_request_method: method,
        ...(route !== undefined && { http_route: route }),
        http_response_status_code: String(status),
      });
      if (span === null) return;
      span.setAttribute('http.response.status_code', status);
      if (operationName !== undefined) span.setAttribute('graphql.operation.name', operationName);
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
  };
}

function beginRequestSpan(
  { route, requestId, traceparent, isTrusted }: IncomingRequest,
  method: string,
): Span {
  const told = traceOf(traceparent);
  const toldBy = trace.getSpanContext(told);
  return tracer().startSpan(
    `${method} ${route ?? ''}`.trim(),
    {
      kind: SpanKind.SERVER,
      attributes: {
        'http.request.method': method,
        ...(route !== undefined && { 'http.route': route }),
        'state_archive.request_id': requestId,
      },
      links: toldBy !== undefined && !isTrusted ? [{ context: toldBy }] : [],
    },
    isTrusted ? told : ROOT_CONTEXT,
  );
}

/**
 * The context that a `traceparent` tells of; none, when it tells of none. Nothing else is taken over: `tracestate` and
 * `baggage` are whatever their senders like.
 */
function traceOf(traceparent: string | undefined): Context {
  return traceparent === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, { traceparent });
}

/** The trace that is kept of the work at hand, as a `traceparent` for whoever goes on with it; undefined when none is. */
export function currentTraceparent(): string | undefined {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent;
}

/** An attempt at an operation, as it is told of. */
export interface ObservedOperation {
  readonly id: string;
  readonly kind: ObservedKind;
  readonly attempt: number;
  /** What the log knows the request by that asked for it. */
  readonly requestId: string;
  /** How long it had to wait before somebody took it up, in seconds; null for what had not to, or had been taken up before. */
  readonly waitedSeconds: number | null;
}

/**
 * Observes an attempt at an operation.
 *
 * @param origin the `traceparent` of whoever asked for it, undefined when it is not known; `here` for a part of the work at
 *   hand.
 */
export async function observeOperation(
  { id, kind, attempt, requestId, waitedSeconds }: ObservedOperation,
  origin: string | undefined | 'here',
  work: () => Promise<ObservedOutcome>,
): Promise<ObservedOutcome> {
  const begun = performance.now();
  const parent = origin === 'here' ? context.active() : traceOf(origin);
  const attributes = {
    'state_archive.operation.id': id,
    'state_archive.operation.attempt': attempt,
    'state_archive.request_id': requestId,
  };
  if (waitedSeconds !== null) {
    instruments.state_archive_queue_wait_seconds.record(waitedSeconds, { kind });
    const now = Date.now();
    if (trace.getSpanContext(parent) !== undefined) {
      tracer()
        .startSpan('queue', { startTime: now - waitedSeconds * 1000 }, parent)
        .end(now);
    }
  }
  const span = tracer().startSpan(
    kind,
    { kind: origin === 'here' ? SpanKind.INTERNAL : SpanKind.CONSUMER, attributes },
    parent,
  );
  instruments[ACTIVE].add(1, { kind });
  try {
    const outcome = await context.with(trace.setSpan(parent, span), work);
    const labels = labelsOf(kind, outcome);
    span.setAttribute('state_archive.operation.outcome', labels.outcome);
    instruments.state_archive_operations.add(1, labels);
    instruments.state_archive_operation_duration_seconds.record((performance.now() - begun) / 1000, labels);
    return outcome;
  } finally {
    span.end();
    instruments[ACTIVE].add(-1, { kind });
  }
}

/** Tells of work that it failed, or was refused, with a code of the API's: on the span at hand too, for an operation. */
export function noteRefusal(by: RefusedBy, code: string): void {
  instruments.state_archive_refusals.add(1, { by, code });
  if (by === 'operation') markFailed(trace.getActiveSpan(), code);
}

/** Tells how much an operation that succeeded has moved. */
export function noteMoved(
  kind: ObservedKind,
  moved: {
    readonly versions: number;
    readonly rawBytes: bigint;
    readonly archive: { readonly sizeBytes: bigint };
  },
): void {
  const { versions } = moved;
  const [rawBytes, archiveBytes] = [Number(moved.rawBytes), Number(moved.archive.sizeBytes)];
  instruments.state_archive_versions.add(versions, { kind });
  instruments.state_archive_raw_bytes.add(rawBytes, { kind });
  instruments.state_archive_archive_bytes.add(archiveBytes, { kind });
  trace.getActiveSpan()?.setAttributes({
    'state_archive.versions': versions,
    'state_archive.raw_bytes': rawBytes,
    'state_archive.archive_bytes': archiveBytes,
  });
}

/** Tells how many bytes of a file were received. */
export function noteUpload(way: 'inline' | 'staged', bytes: number): void {
  instruments.state_archive_upload_bytes.add(bytes, { way });
}

/** Tells how a download ended, and how many bytes were handed out here. */
export function noteDownload(outcome: 'whole' | 'cut' | 'redirected', bytes: bigint): void {
  instruments.state_archive_downloads.add(1, { outcome });
  instruments.state_archive_download_bytes.add(Number(bytes));
}

/** Does a part of the work at hand, and tells how long it took; within a trace, as a span of its own. */
export async function inPhase<Result>(phase: Phase, work: () => Promise<Result>): Promise<Result> {
  const begun = beginPhase(phase);
  try {
    return await begun.run(work);
  } catch (error) {
    begun.fail(error);
    throw error;
  } finally {
    begun.end();
  }
}

/** Begins a phase of the work at hand, for whoever cannot do with {@link inPhase}. */
export function beginPhase(phase: Phase) {
  const begun = performance.now();
  const around = context.active();
  // Where no trace is kept of what it is a part of, there is nothing to be a part of.
  const span = trace.getSpan(around) && tracer().startSpan(phase, {}, around);
  return {
    run: <Result>(work: () => Result): Result =>
      span === undefined ? work() : context.with(trace.setSpan(around, span), work),
    fail: (error: unknown) => markFailed(span, typeOf(error)),
    end() {
      span?.end();
      instruments.state_archive_phase_duration_seconds.record((performance.now() - begun) / 1000, { phase });
    },
  };
}

/** What an error is, without a word of what it says: it may quote what the failing code was given. */
function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return code !== undefined && /^[A-Z0-9_]{1,64}$/.test(code) ? code : error.name;
}

function markFailed(span: Span | undefined, type: string): void {
  if (span === undefined || !isSpanContextValid(span.spanContext())) return;
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
