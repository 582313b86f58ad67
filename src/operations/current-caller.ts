import type { KilolockDatabase } from '../database/connection.ts';
import type { NamespaceSelector } from '../history/namespace.ts';
import type { Caller } from '../history/states.ts';
import type { ClaimedOperation } from './operation-lifecycle.ts';
import type { ArchiveServices, CallerRequest } from './services.ts';
import { RequestRefusedError } from './user-error.ts';

/**
 * Who asked for an operation, with the rights the credential has now that work on it begins. A JWT's rights are those it was
 * signed with; one that has expired meanwhile was good when it asked.
 *
 * @param database the one that records the operation.
 * @throws RequestRefusedError FORBIDDEN when the token was revoked, or the workspace or the environment is no longer active.
 */
export async function currentCaller(
  { environments, readCredential }: Pick<ArchiveServices, 'environments' | 'readCredential'>,
  { request, requestId, supportReason }: ClaimedOperation,
  database: KilolockDatabase,
): Promise<CallerRequest> {
  const environment = await environments.open(request.environment);
  if (environment === null) throw withdrawn('The environment is no longer active.');
  const { token } = request.principal;
  const principal = token === undefined ? request.principal : await readCredential(token);
  if (principal === null) throw withdrawn('The credential is no longer active.');
  const { namespace } = environment;
  return { caller: { principal, namespace, database, supportReason }, requestId };
}

/** How the caller's environment is named; the self-hosted one is named by nothing. */
export function selectorOf({ namespace }: Pick<Caller, 'namespace'>): NamespaceSelector {
  const { workspace, environment, namePrefix } = namespace;
  return namePrefix === '' ? null : { workspace, environment };
}

/** The refusal of work that was permitted when it was asked for. */
export function withdrawn(what: string): RequestRefusedError {
  return new RequestRefusedError(
    'FORBIDDEN',
    `${what} It was when the operation was asked for; nothing was written.`,
  );
}
