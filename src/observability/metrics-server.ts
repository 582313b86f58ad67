import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { METRICS_MEDIA_TYPE, type Metrics } from './metrics.ts';

/** Who collects asks once in a while, by one connection each. */
const MAX_CONNECTIONS = 32;
const REQUEST_MS = 10_000;

/** Where metrics are served by themselves. */
export interface MetricsServer {
  /** Such as `http://127.0.0.1:9464/metrics`. */
  readonly url: string;
  close(): void;
}

/**
 * Serves `GET /metrics` on a port of its own, and nothing else.
 *
 * @param mayAsk whether whoever shows this header `Authorization` may.
 * @throws the errors of listening.
 */
export async function serveMetrics(
  { host, port }: { readonly host: string; readonly port: number },
  { scrape }: Pick<Metrics, 'scrape'>,
  mayAsk: (authorization: string | undefined) => boolean,
): Promise<MetricsServer> {
  const server = createServer(
    { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS, connectionsCheckingInterval: REQUEST_MS },
    (request, response) => void answer(request, response, scrape, mayAsk),
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.setTimeout(2 * REQUEST_MS);
  await once(server.listen(port, host), 'listening');
  const { address, family, port: listened } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${listened}/metrics`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  scrape: Metrics['scrape'],
  mayAsk: (authorization: string | undefined) => boolean,
): Promise<void> {
  const end = (status: number, text: string, headers: Readonly<Record<string, string>> = {}) => {
    response
      .writeHead(status, {
        'content-type': 'text/plain; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        ...headers,
      })
      .end(request.method === 'HEAD' ? undefined : text);
  };
  // Nobody sends a body here.
  request.resume();
  if (request.url?.split('?', 1)[0] !== '/metrics') return end(404, 'Metrics are at /metrics.\n');
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return end(405, 'This address serves GET, HEAD.\n', { allow: 'GET, HEAD' });
  if (!mayAsk(request.headers.authorization))
    return end(401, 'Show METRICS_TOKEN as a bearer token.\n', { 'www-authenticate': 'Bearer' });
  try {
    end(200, await scrape(), { 'content-type': METRICS_MEDIA_TYPE });
  } catch {
    end(500, 'The metrics could not be collected.\n');
  }
}
