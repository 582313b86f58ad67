import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Principal } from '../auth/principal.ts';
import type { ObservedRequest } from '../base/telemetry.ts';

/** What is known of one HTTP request while it is served. */
export interface RequestScope {
  /** Made here for every request; a client's own id is never taken for it. */
  readonly requestId: string;
  /** When it began, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  /** Logs with the request id. */
  readonly logger: Logger;
  /** Aborts when the client goes away before it has its answer. */
  readonly signal: AbortSignal;
  /** The response being written. */
  readonly response: ServerResponse;
  /** Who calls; null when no credential was given or none is looked at. */
  principal: Principal | null;
  /** Whether the request has proven to come through the gateway. */
  readonly fromGateway: boolean;
  /** What is told of it to whoever watches. */
  readonly observed: ObservedRequest;
  /** The name of the GraphQL operation, once known. */
  operationName: string | undefined;
  /** Whether the connection ends once the rest of a body that was answered early has been received. */
  closeAfterBody: boolean;
  /** The failures already logged for this request, so that one that shows at many fields is logged once. */
  readonly loggedErrors: Set<unknown>;
}

declare module 'fastify' {
  interface FastifyRequest {
    scope: RequestScope;
  }
}

/** The scope of the request being served, for code the server calls back without one: Apollo's `formatError`. */
export const requestScope: AsyncLocalStorage<RequestScope> = new AsyncLocalStorage();
