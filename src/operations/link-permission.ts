import type { VerifiedLink } from '../auth/links.ts';
import { mayIn, type Scope } from '../auth/principal.ts';
import type { StateNamespace } from '../history/namespace.ts';
import type { ArchiveServices } from './services.ts';

/** Whether the token a link rests on still permits what the link does. One that rests on a JWT ends with it. */
export async function isStillPermitted(
  { readCredential }: Pick<ArchiveServices, 'readCredential'>,
  { token }: VerifiedLink,
  scope: Scope,
  namespace: StateNamespace,
): Promise<boolean> {
  if (token === null) return true;
  const principal = await readCredential(token);
  return principal !== null && mayIn(principal, scope, namespace);
}
