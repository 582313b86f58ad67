import type { ContextRequest } from '../http/graphql-route.ts';
import { createReaders, type Reader, type RequestFacts, type ServiceFacts } from './reader.ts';
import type { StateScopeInput } from './schema-types.ts';

/** What every resolver of a request is given. */
export type GraphqlContext = RequestFacts & {
  /**
   * Opens the environment that a scope names, or the caller's own; null when there is none that is anything to the
   * caller. Nothing is read from the database before a resolver asks.
   */
  readonly reader: (scope: StateScopeInput | null | undefined) => Promise<Reader | null>;
};

/** Makes the context of one request. */
export function createContext(service: ServiceFacts, request: ContextRequest): GraphqlContext {
  const facts = { ...service, ...request };
  return { ...facts, reader: createReaders(facts) };
}
