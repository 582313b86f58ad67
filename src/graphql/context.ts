import type { Logger } from 'pino';
import type { Principal } from '../auth/principal.ts';
import { findNamespace } from '../history/namespace.ts';
import type { Caller } from '../history/states.ts';
import type { ArchiveServices } from '../operations/services.ts';
import { createLoaders, type Loaders } from './loaders.ts';
import type { StateScopeInput } from './schema-types.ts';

/** What every resolver of a request is given. */
export interface GraphqlContext {
  /** Who is calling, verified; null for an anonymous caller, whom the directives deny. */
  readonly principal: Principal | null;
  readonly requestId: string;
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal;
  /** Where clients reach this service; links are built on it. */
  readonly publicUrl: string;
  readonly services: ArchiveServices;
  /** The largest file accepted inside a request, in bytes. */
  readonly maxInlineUploadBytes: number;
  readonly logger: Logger;
  /** The caller in its own workspace and environment; null when these are not there or not active. */
  readonly caller: () => Promise<Caller | null>;
  readonly loaders: Loaders;
}

/** What the HTTP layer knows of a request. */
export interface RequestFacts {
  readonly principal: Principal | null;
  readonly requestId: string;
  readonly signal: AbortSignal;
  readonly publicUrl: string;
}

/** Makes the context of one request. Nothing is read from the database before a resolver asks. */
export function createContext(
  service: Pick<GraphqlContext, 'services' | 'maxInlineUploadBytes' | 'logger'>,
  request: RequestFacts,
): GraphqlContext {
  const { db } = service.services.database;
  let found: Promise<Caller | null> | undefined;
  const caller = () => {
    found ??= findCaller(service.services, request.principal);
    return found;
  };
  return { ...service, ...request, caller, loaders: createLoaders(db, caller) };
}

/**
 * The caller, when `scope` is absent or names the caller's own workspace and environment; else null, as for one that
 * does not exist.
 */
export async function callerIn(
  { caller }: GraphqlContext,
  scope: StateScopeInput | null | undefined,
): Promise<Caller | null> {
  const own = await caller();
  if (own === null || !scope) return own;
  const { workspace, environment } = own.namespace;
  return scope.workspace === workspace && scope.environment === environment ? own : null;
}

async function findCaller(services: ArchiveServices, principal: Principal | null): Promise<Caller | null> {
  if (principal === null) return null;
  const { workspace, environment } = principal;
  const selector = workspace === null || environment === null ? null : { workspace, environment };
  const namespace = await findNamespace(services.database.db, selector);
  return namespace === null ? null : { principal, namespace };
}
