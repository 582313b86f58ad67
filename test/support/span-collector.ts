import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** A span that was sent. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, string>>;
  /** The trace ids it is linked to. */
  readonly links: readonly string[];
  readonly isError: boolean;
  /** Whose it is: the attributes of the process. */
  readonly resource: Readonly<Record<string, string>>;
}

/** A collector of OTLP over HTTP, as processes send their spans to it. */
export interface SpanCollector {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** All that was sent, as it came. */
  readonly bodies: readonly Buffer[];
  /** Resolves when somebody has connected. */
  readonly connected: Promise<unknown>;
  close(): Promise<void>;
}

/** @param isFrozen takes connections and never answers. */
export async function startSpanCollector({ isFrozen = false } = {}): Promise<SpanCollector> {
  const spans: CollectedSpan[] = [];
  const bodies: Buffer[] = [];
  const server: Server = createServer(async (request, response) => {
    if (isFrozen) return;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const sent = Buffer.concat(chunks);
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    bodies.push(body);
    spans.push(...readSpans(body));
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  const connected = once(server, 'connection');
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    connected,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * The spans of a trace as a tree, one a line: when each began, how long it took, in which process.
 *
 * @param processes names for `service.instance.id`.
 */
export function printTrace(
  spans: readonly CollectedSpan[],
  processes: Readonly<Record<string, string>>,
): string {
  const [first = 0n] = spans.map(({ start }) => start).sort((one, other) => Number(one - other));
  const known = new Set(spans.map(({ spanId }) => spanId));
  const milliseconds = (nanoseconds: bigint) => `${String(Number(nanoseconds / 100_000n) / 10)} ms`;
  const lines: [string, string, string, string][] = [];
  const print = (parent: string | null, depth: string) => {
    const children = spans
      .filter(({ parentSpanId }) => (parent === null ? !known.has(parentSpanId) : parentSpanId === parent))
      .sort((a, b) => Number(a.start - b.start));
    for (const [index, span] of children.entries()) {
      const isLast = index === children.length - 1;
      const branch = parent === null ? '' : isLast ? '└─ ' : '├─ ';
      lines.push([
        `${depth}${branch}${span.name}`,
        milliseconds(span.start - first),
        milliseconds(span.end - span.start),
        processes[span.resource['service.instance.id'] ?? ''] ?? '?',
      ]);
      print(span.spanId, parent === null ? '' : `${depth}${isLast ? '   ' : '│  '}`);
    }
  };
  print(null, '');
  const widths = [0, 1, 2].map((column) => Math.max(...lines.map((line) => line[column as 0].length)));
  return lines
    .map(([name, start, length, process]) =>
      [
        name.padEnd(widths[0] ?? 0),
        start.padStart(widths[1] ?? 0),
        length.padStart(widths[2] ?? 0),
        process,
      ].join('  '),
    )
    .join('\n');
}

/** The fields of a protobuf message: numbers and texts by field number, in their order. */
function fieldsOf(message: Buffer): { field: number; bytes: Buffer; number: bigint }[] {
  const fields = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const [field, wireType] = [tag >> 3, tag & 7];
    let bytes: Buffer = Buffer.alloc(0);
    let number = 0n;
    if (wireType === 0) number = varint();
    else if (wireType === 1) {
      number = message.readBigUInt64LE(at);
      at += 8;
    } else if (wireType === 5) {
      number = BigInt(message.readUInt32LE(at));
      at += 4;
    } else {
      const length = Number(varint());
      bytes = message.subarray(at, at + length);
      at += length;
    }
    fields.push({ field, bytes, number });
  }
  return fields;
}

/** The spans of an `ExportTraceServiceRequest` (opentelemetry-proto 1.x). */
function readSpans(request: Buffer): CollectedSpan[] {
  return messagesIn(request, 1).flatMap((resourceSpans) => {
    const resource = attributesOf(messagesIn(resourceSpans, 1)[0] ?? Buffer.alloc(0), 1);
    return messagesIn(resourceSpans, 2)
      .flatMap((scopeSpans) => messagesIn(scopeSpans, 2))
      .map((span) => readSpan(span, resource));
  });
}

function readSpan(span: Buffer, resource: Readonly<Record<string, string>>): CollectedSpan {
  const fields = fieldsOf(span);
  const of = (wanted: number) => fields.find(({ field }) => field === wanted);
  const hex = (wanted: number) => of(wanted)?.bytes.toString('hex') ?? '';
  const status = of(15)?.bytes;
  return {
    traceId: hex(1),
    spanId: hex(2),
    parentSpanId: hex(4),
    name: of(5)?.bytes.toString() ?? '',
    start: of(7)?.number ?? 0n,
    end: of(8)?.number ?? 0n,
    attributes: attributesOf(span, 9),
    links: messagesIn(span, 13).map((link) => messagesIn(link, 1)[0]?.toString('hex') ?? ''),
    isError:
      status !== undefined && fieldsOf(status).some(({ field, number }) => field === 3 && number === 2n),
    resource,
  };
}

function messagesIn(message: Buffer, wanted: number): Buffer[] {
  return fieldsOf(message).flatMap(({ field, bytes }) => (field === wanted ? [bytes] : []));
}

function attributesOf(message: Buffer, wanted: number): Record<string, string> {
  return Object.fromEntries(
    messagesIn(message, wanted).map((pair) => {
      const [key, value] = [messagesIn(pair, 1)[0], messagesIn(pair, 2)[0]];
      const [any] = fieldsOf(value ?? Buffer.alloc(0));
      return [String(key), any?.field === 1 ? String(any.bytes) : String(any?.number)];
    }),
  );
}
