import type { FastifyInstance } from 'fastify';
import { describeError } from '../base/error-log.ts';
import { HttpError } from './http-error.ts';
import { refuseOtherMethods } from './route-methods.ts';

/** What the health routes ask. */
export interface HealthRoutesOptions {
  /** Whether the service can do its work: the database answers and is prepared. */
  isReady(): Promise<boolean>;
  /** Whether the process is on its way out. */
  isDraining(): boolean;
}

/** `GET /livez`: the process answers. `GET /readyz`: send it work, or 503. Neither looks at a credential. */
export function addHealthRoutes(server: FastifyInstance, options: HealthRoutesOptions): void {
  /** The check under way. Nobody shows a credential here, so that however many ask at once make one. */
  let checking: Promise<boolean> | null = null;
  const isReady = () => {
    checking ??= options.isReady().finally(() => {
      checking = null;
    });
    return checking;
  };
  server.route({
    method: ['GET', 'HEAD'],
    url: '/livez',
    async handler(_request, reply) {
      return reply.send({ status: 'ok' });
    },
  });
  server.route({
    method: ['GET', 'HEAD'],
    url: '/readyz',
    async handler(request, reply) {
      if (options.isDraining()) throw new HttpError('NOT_READY', 'The service is shutting down.');
      const ready = await isReady().catch((error: unknown) => {
        request.scope.logger.warn({ error: describeError(error) }, 'the readiness check failed');
        return false;
      });
      if (!ready) throw new HttpError('NOT_READY', 'The service is not ready.');
      return reply.send({ status: 'ok' });
    },
  });
  for (const url of ['/livez', '/readyz']) refuseOtherMethods(server, url, ['GET', 'HEAD']);
}
