import type { Logger } from 'pino';
import type { Principal } from '../auth/principal.ts';
import type { ArchiveServices } from '../operations/services.ts';
import { createReaders, type Reader } from './reader.ts';
import type { StateScopeInput } from './schema-types.ts';

/** What every resolver of a request is given. */
export interface GraphqlContext extends RequestFacts, ServiceFacts {
  /**
   * Opens the environment that a scope names, or the caller's own; null when there is none that is anything to the
   * caller. Nothing is read from the database before a resolver asks.
   */
  readonly reader: (scope: StateScopeInput | null | undefined) => Promise<Reader | null>;
}

/** What is the same for every request. */
export interface ServiceFacts {
  readonly services: ArchiveServices;
  /** The largest file accepted inside a request, in bytes. */
  readonly maxInlineUploadBytes: number;
  readonly logger: Logger;
}

/** What the HTTP layer knows of a request. */
export interface RequestFacts {
  /** Who is calling, verified; null for an anonymous caller, whom the directives deny. */
  readonly principal: Principal | null;
  /** Whether the request has proven to come through the gateway. */
  readonly fromGateway: boolean;
  readonly requestId: string;
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal;
  /** Where clients reach this service; links are built on it. */
  readonly publicUrl: string;
}

/** Makes the context of one request. */
export function createContext(service: ServiceFacts, request: RequestFacts): GraphqlContext {
  return { ...service, ...request, reader: createReaders({ ...service, ...request }) };
}
