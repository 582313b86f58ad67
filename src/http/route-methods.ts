import type { FastifyInstance, HTTPMethods } from 'fastify';
import { HttpError } from './http-error.ts';

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/**
 * Answers 405 with an `Allow` header to every method of an address but those served there, before the body is looked
 * at.
 */
export function refuseOtherMethods(
  server: FastifyInstance,
  url: string,
  allowed: readonly HTTPMethods[],
): void {
  const allow = allowed.join(', ');
  const refuse = async () => {
    throw new HttpError('METHOD_NOT_ALLOWED', `This address serves ${allow}.`, { allow });
  };
  server.route({
    method: METHODS.filter((method) => !allowed.includes(method)),
    url,
    onRequest: refuse,
    handler: refuse,
  });
}
