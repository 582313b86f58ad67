import type { NamespaceSelector } from '../history/namespace.ts';
import type { Caller } from '../history/states.ts';
import type { ArchiveServices, CallerRequest } from './services.ts';
import { RequestRefusedError } from './user-error.ts';

/**
 * The caller with the rights the credential has now, when work begins that was asked for a while ago. A JWT's rights are
 * those it was signed with; one that has expired meanwhile was good when it asked.
 *
 * @throws RequestRefusedError FORBIDDEN when the token was revoked, or the workspace or the environment is no longer active.
 */
export async function withCurrentRights(
  { environments, readCredential }: Pick<ArchiveServices, 'environments' | 'readCredential'>,
  request: CallerRequest,
): Promise<CallerRequest> {
  const { caller } = request;
  const { token } = caller.principal;
  const environment = await environments.open(selectorOf(caller));
  if (environment === null) throw withdrawn('The environment is no longer active.');
  const principal = token === undefined ? caller.principal : await readCredential(token);
  if (principal === null) throw withdrawn('The credential is no longer active.');
  return { ...request, caller: { ...caller, principal, namespace: environment.namespace } };
}

/** How the caller's environment is named; the self-hosted one is named by nothing. */
export function selectorOf({ namespace }: Pick<Caller, 'namespace'>): NamespaceSelector {
  return namespace.namePrefix === '' ? null : namespace;
}

/** The refusal of work that was permitted when it was asked for. */
export function withdrawn(what: string): RequestRefusedError {
  return new RequestRefusedError(
    'FORBIDDEN',
    `${what} It was when the operation was asked for; nothing was written.`,
  );
}
