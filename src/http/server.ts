import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { DISK_FULL, isDiskFull } from '../base/errno.ts';
import { describeError } from '../base/error-log.ts';
import { present } from '../base/invariant.ts';
import { noteRefusal, observeRequest } from '../base/telemetry.ts';
import { DatabaseUnavailableError } from '../database/errors.ts';
import { StoreUnavailableError } from '../store/object-store.ts';
import { addDownloadRoute, DOWNLOAD_PATH, type DownloadRouteOptions } from './download-route.ts';
import { addGraphqlRoute, GRAPHQL_PATH, type GraphqlRouteOptions } from './graphql-route.ts';
import { addHealthRoutes, type HealthRoutesOptions } from './health-routes.ts';
import { errorBody, graphqlErrorBody, HttpError, INTERNAL_ERROR_MESSAGE } from './http-error.ts';
import { closeOnlyIdleConnections } from './idle-connections.ts';
import { addMetricsRoute, type MetricsRouteOptions } from './metrics-route.ts';
import { addPlaygroundRoutes } from './playground-routes.ts';
import type { RequestScope } from './request-scope.ts';
import { addUploadRoute, UPLOAD_PATH, type UploadRouteOptions } from './upload-route.ts';

/** What the HTTP layer needs from the rest. */
export interface HttpServerOptions<Context extends object>
  extends GraphqlRouteOptions<Context>,
    DownloadRouteOptions,
    UploadRouteOptions,
    Pick<HealthRoutesOptions, 'isReady'> {
  /**
   * Whether the value of the gateway's header is its secret; null: it has none to show. Where it has one, traces of others are
   * not gone on with.
   */
  readonly isGateway: ((secret: string | undefined) => boolean) | null;
  /** The metrics of the process; null: they are not served here. */
  readonly metrics: MetricsRouteOptions | null;
  /** The address clients reach the service at, without a trailing slash; null: the one listened on. */
  readonly publicUrl: string | null;
}

/** The service's HTTP side. */
export interface HttpServer {
  /** @returns the address listened on, such as `http://127.0.0.1:4001`. */
  listen(address: { host: string; port: number }): Promise<string>;
  /** `readyz` answers 503 from here on; requests are still served. */
  startDraining(): void;
  /** Accepts no more connections, lets the requests at work finish, and closes. */
  close(): Promise<void>;
}

/** How long a request may take to arrive whole, headers and body. */
const REQUEST_TIMEOUT_MS = 600_000;
/** How long a connection may stand still; longer than any answer takes. */
const IDLE_SOCKET_TIMEOUT_MS = 120_000;
/** How long an idle connection is kept for the next request. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** How long the rest of a body that nobody wants is received, so that its sender gets to read the answer. */
const LINGER_MS = 5_000;

const PLAIN_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Makes the server with all its routes. Every response carries `x-request-id`; every response that is not a file or the
 * playground is JSON, `{ "error": { code, message, requestId } }`, or GraphQL's own shape on `/graphql`.
 *
 * One log line is written for each request. It holds no query string, since links carry tokens there, no header and no
 * variable.
 */
export async function createHttpServer<Context extends object>(
  options: HttpServerOptions<Context>,
): Promise<HttpServer> {
  const { logger } = options;
  let draining = false;
  /** The last response on each connection. */
  const responses = new WeakMap<Socket, ServerResponse>();
  let listenedUrl: string | null = null;

  // Fastify's own log lines hold URLs, so it is given no logger.
  const server = Fastify({
    logger: false,
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    exposeHeadRoutes: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: IDLE_SOCKET_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    return503OnClosing: false,
    frameworkErrors: (_error, request, reply) => answerBadUrl(request, reply.raw, logger),
    clientErrorHandler: (error, socket) => answerUnparsable(error, socket, responses.get(socket)),
  });

  closeOnlyIdleConnections(server.server);
  server.decorateRequest('scope');
  server.addHook('onRequest', async (request, reply) => {
    const gone = new AbortController();
    responses.set(request.socket, reply.raw);
    request.scope = openScope(request, reply, options, gone.signal);
    // Not the onResponse hook, which is not run for a client that went away before its answer.
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) gone.abort();
      drainBody(request.raw, request.scope.closeAfterBody);
      logRequest(request, reply);
      const { observed, operationName } = request.scope;
      observed.end({ status: reply.statusCode, operationName });
    });
    reply.header('x-request-id', request.id);
    if (request.is404) throw new HttpError('NOT_FOUND', 'There is nothing at this address.');
  });
  server.addHook('onSend', async (request, reply) => {
    reply.header('x-content-type-options', 'nosniff');
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store');
    const closing = draining || !reply.raw.shouldKeepAlive;
    if (request.raw.complete) {
      if (closing) reply.header('connection', 'close');
    } else {
      // To say "close" here is to reset the connection under a client that is still sending.
      request.scope.closeAfterBody = closing;
      reply.raw.shouldKeepAlive = true;
    }
  });
  server.setErrorHandler((error, request, reply) => answerError(error, request, reply));
  server.setNotFoundHandler(() => {
    throw new Error('unreachable: onRequest answers what has no route');
  });

  await addGraphqlRoute(
    server,
    () => present(options.publicUrl ?? listenedUrl, 'a request comes to an address listened on'),
    options,
  );
  addDownloadRoute(server, options);
  addUploadRoute(server, options);
  if (options.metrics !== null) addMetricsRoute(server, options.metrics);
  addHealthRoutes(server, { isReady: () => options.isReady(), isDraining: () => draining });
  if (options.playground) addPlaygroundRoutes(server);
  await server.ready();

  return {
    async listen({ host, port }) {
      await server.listen({ host, port });
      listenedUrl = server.listeningOrigin.replace(/\/\/(0\.0\.0\.0|\[::\]):/, '//localhost:');
      return listenedUrl;
    },
    startDraining() {
      draining = true;
    },
    async close() {
      draining = true;
      await server.close();
    },
  };
}

/** The routes that have spans: what people and gateways ask for, and not what machines ask for by the clock. */
const TRACED_ROUTES: ReadonlySet<string | undefined> = new Set([GRAPHQL_PATH, DOWNLOAD_PATH, UPLOAD_PATH]);

function openScope(
  request: FastifyRequest,
  reply: FastifyReply,
  { logger, isGateway }: HttpServerOptions<object>,
  signal: AbortSignal,
): RequestScope {
  const { traceparent, 'x-gateway-secret': secret } = request.headers;
  const fromGateway = isGateway?.(typeof secret === 'string' ? secret : undefined) ?? false;
  const route = request.routeOptions.url;
  return {
    requestId: request.id,
    startedAt: performance.now(),
    logger: logger.child({ requestId: request.id }),
    signal,
    response: reply.raw,
    principal: null,
    fromGateway,
    observed: observeRequest({
      method: request.method,
      route,
      requestId: request.id,
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
      isTrusted: fromGateway || isGateway === null,
      isTraced: TRACED_ROUTES.has(route),
    }),
    operationName: undefined,
    closeAfterBody: false,
    loggedErrors: new Set(),
  };
}

/**
 * After the answer, receives what is left of a body that was refused or not read. Closing at once would reset the
 * connection under a client still sending, which then never reads the answer; receiving for ever would be a gift.
 */
function drainBody(request: IncomingMessage, closeAfterBody: boolean): void {
  const { socket } = request;
  if (request.destroyed || request.readableEnded) {
    if (closeAfterBody) socket.end();
    return;
  }
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  timer.unref();
  request.once('close', () => {
    clearTimeout(timer);
    if (closeAfterBody) socket.end();
  });
  request.resume();
}

function logRequest(request: FastifyRequest, reply: FastifyReply): void {
  const { scope } = request;
  const clientRequestId = String(request.headers['x-request-id'] ?? '');
  scope.logger.info(
    {
      method: request.method,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      ms: Math.round(performance.now() - scope.startedAt),
      operationName: scope.operationName,
      subject: scope.principal?.subject,
      clientRequestId: PLAIN_REQUEST_ID.test(clientRequestId) ? clientRequestId : undefined,
      traceId: scope.observed.traceId,
      ...(!reply.raw.writableFinished && { aborted: true }),
    },
    'request',
  );
}

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const answer = asHttpError(error, request.scope.logger);
  noteRefusal('http', answer.code);
  dropFileHeaders(reply);
  const body = request.routeOptions.url === GRAPHQL_PATH ? graphqlErrorBody : errorBody;
  return reply
    .code(answer.statusCode)
    .headers(answer.headers)
    .type('application/json; charset=utf-8')
    .send(body(answer, request.id));
}

/** What the caller did wrong, or can ask again later, when that is what happened. Whatever else it was is for the log. */
function asHttpError(error: unknown, logger: Logger): HttpError {
  if (error instanceof HttpError) return error;
  const code = error instanceof Error && 'code' in error ? error.code : null;
  // Apollo's adapter makes a URL with the Host header.
  if (code === 'ERR_INVALID_URL') return new HttpError('BAD_REQUEST', 'The Host header is not valid.');
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new HttpError('UNSUPPORTED_MEDIA_TYPE', 'The media type is not accepted.');
  }
  const outage = outageOf(error);
  logger[outage ? 'warn' : 'error']({ error: describeError(error) }, outage?.what ?? 'request failed');
  return outage
    ? new HttpError('UNAVAILABLE', outage.message, { 'retry-after': outage.retryAfter })
    : new HttpError('INTERNAL', INTERNAL_ERROR_MESSAGE);
}

/** What is out of order at this moment, and after how many seconds the same may be asked again; null for everything else. */
function outageOf(error: unknown) {
  if (error instanceof DatabaseUnavailableError)
    return { what: 'the database is unavailable', message: error.message, retryAfter: '5' };
  if (error instanceof StoreUnavailableError)
    return { what: 'the archive store is unavailable', message: error.message, retryAfter: '5' };
  if (isDiskFull(error)) return { what: 'the disk is full', message: DISK_FULL, retryAfter: '60' };
  return null;
}

/** A file that fails to open has its headers set already, and they are not those of the error. */
function dropFileHeaders(reply: FastifyReply): void {
  for (const name of ['content-length', 'content-range', 'content-disposition', 'etag', 'accept-ranges']) {
    reply.removeHeader(name);
    reply.raw.removeHeader(name);
  }
}

/** An address that cannot be decoded is refused before there are hooks to run. */
function answerBadUrl(request: FastifyRequest, response: ServerResponse, logger: Logger): void {
  const requestId = request.id;
  const body = errorBody(new HttpError('BAD_REQUEST', 'The address is not a valid URL.'), requestId);
  response.writeHead(400, rawHeaders(requestId, body)).end(body);
  response.once('close', () => drainBody(request.raw, true));
  logger.info({ requestId, method: request.method, route: null, status: 400 }, 'request');
  noteRefusal('http', 'BAD_REQUEST');
}

/**
 * What is not HTTP, or takes too long to arrive, never becomes a request: it is answered on the bare socket.
 *
 * @param last the response that was begun last on the connection.
 */
function answerUnparsable(
  error: Error & { code?: string },
  socket: Socket,
  last: ServerResponse | undefined,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  // What follows a request that has its answer, and is no other: an answer would be taken for that to the next request.
  if (last?.headersSent && (!last.req.complete || error.code === 'HPE_CLOSED_CONNECTION')) {
    socket.end(() => socket.destroy());
    return;
  }
  const answer =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new HttpError('HEADERS_TOO_LARGE', 'The request headers are too large.')
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new HttpError('REQUEST_TIMEOUT', 'The request took too long to arrive.')
        : new HttpError('BAD_REQUEST', 'The request is not valid HTTP.');
  const requestId = randomUUID();
  const body = errorBody(answer, requestId);
  const head = Object.entries({ ...rawHeaders(requestId, body), connection: 'close' })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  noteRefusal('http', answer.code);
  const status = `${answer.statusCode} ${STATUS_CODES[answer.statusCode]}`;
  socket.end(`HTTP/1.1 ${status}\r\n${head}\r\n${body}`, () => socket.destroy());
}

function rawHeaders(requestId: string, body: string): Record<string, string> {
  return {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-request-id': requestId,
  };
}
