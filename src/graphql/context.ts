import type { ContextRequest } from '../http/graphql-route.ts';
import { createReaders, type OpenReader, type RequestFacts, type ServiceFacts } from './reader.ts';

/** What every resolver of a request is given. */
export type GraphqlContext = RequestFacts & {
  /** Nothing is read from the database before a resolver asks. */
  readonly reader: OpenReader;
};

/** Makes the context of one request. */
export function createContext(service: ServiceFacts, request: ContextRequest): GraphqlContext {
  const facts = { ...service, ...request };
  return { ...facts, reader: createReaders(facts) };
}
