import type { FastifyInstance } from 'fastify';
import { HttpError } from './http-error.ts';
import { refuseOtherMethods } from './route-methods.ts';

/** What the route of the metrics asks. */
export interface MetricsRouteOptions {
  /** Whether whoever shows this header `Authorization` may have them. */
  readonly mayAsk: (authorization: string | undefined) => boolean;
  readonly scrape: () => Promise<string>;
  /** The media type of what `scrape` gives. */
  readonly mediaType: string;
}

/** `GET /metrics`, for who shows the secret: whoever reaches the service at all reaches this. */
export function addMetricsRoute(
  server: FastifyInstance,
  { mayAsk, scrape, mediaType }: MetricsRouteOptions,
): void {
  server.route({
    method: ['GET', 'HEAD'],
    url: '/metrics',
    async handler(request, reply) {
      if (!mayAsk(request.headers.authorization)) {
        throw new HttpError('UNAUTHENTICATED', 'Show METRICS_TOKEN as a bearer token.', {
          'www-authenticate': 'Bearer',
        });
      }
      return reply.type(mediaType).send(await scrape());
    },
  });
  refuseOtherMethods(server, '/metrics', ['GET', 'HEAD']);
}
