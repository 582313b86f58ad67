import { mayIn } from '../auth/principal.ts';
import type { Caller } from '../history/states.ts';
import { selectorOf } from './current-caller.ts';
import type { OpenEnvironment } from './environments.ts';
import type { ArchiveServices } from './services.ts';

/** Where each link leads, below the public address, and what it permits. */
const LINKS = {
  download: { path: 'archives', scope: 'state.export' },
  upload: { path: 'uploads', scope: 'state.import' },
} as const;

/** A link, and what it leads to: the operation whose archive is downloaded, or the upload. */
interface Leading {
  readonly purpose: keyof typeof LINKS;
  readonly resourceId: string;
}

/** How many seconds a link that is made for a caller may be good: as long as the caller's credential, so many at most. */
export function linkSeconds({ principal }: Pick<Caller, 'principal'>, most: number): number {
  const { expiresAt = Number.POSITIVE_INFINITY } = principal;
  return Math.min(most, Math.floor(expiresAt - Date.now() / 1000));
}

/** The address of a link that is made for a caller. Whoever has it may use it: it is a secret. */
export async function linkFor(
  { links }: Pick<ArchiveServices, 'links'>,
  caller: Caller,
  { purpose, resourceId }: Leading,
  expiresInSeconds: number,
  publicUrl: string,
): Promise<string> {
  const { subject, token = null } = caller.principal;
  const { workspace, environment } = selectorOf(caller) ?? { workspace: null, environment: null };
  const link = { purpose, resourceId, workspace, environment, subject, token, expiresInSeconds };
  const signed = await links.sign(link);
  return `${publicUrl}/${LINKS[purpose].path}/${resourceId}?token=${encodeURIComponent(signed)}`;
}

/**
 * Whom a link was made for, and the environment it leads to; null when it is not good, the environment is not open any more, or
 * the token it rests on does not permit what it does any longer. A link that rests on a JWT ends with it.
 */
export async function followLink(
  { environments, links, readCredential }: Pick<ArchiveServices, 'environments' | 'links' | 'readCredential'>,
  { purpose, resourceId }: Leading,
  signed: string,
): Promise<(OpenEnvironment & { readonly subject: string }) | null> {
  const link = await links.verify(signed, purpose, resourceId);
  if (link === null) return null;
  const { subject, token, workspace, environment } = link;
  const opened = await environments.open(
    workspace === null || environment === null ? null : { workspace, environment },
  );
  if (opened === null) return null;
  const principal = token && (await readCredential(token));
  const isPermitted =
    token === null || (principal !== null && mayIn(principal, LINKS[purpose].scope, opened.namespace));
  return isPermitted ? { ...opened, subject } : null;
}
