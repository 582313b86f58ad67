import type { Logger } from 'pino';
import type { ContextRequest } from '../http/graphql-route.ts';
import type { ArchiveServices } from '../operations/services.ts';
import { createReaders, type Reader } from './reader.ts';
import type { StateScopeInput } from './schema-types.ts';

/** What every resolver of a request is given. */
export interface GraphqlContext extends ContextRequest, ServiceFacts {
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

/** Makes the context of one request. */
export function createContext(service: ServiceFacts, request: ContextRequest): GraphqlContext {
  const facts = { ...service, ...request };
  return { ...facts, reader: createReaders(facts) };
}
