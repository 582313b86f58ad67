import { createHash } from 'node:crypto';
import type { KilolockDatabase } from '../database/connection.ts';
import { readApiToken, verifyApiToken } from './api-tokens.ts';
import { readPersonalAccessToken, verifyPersonalAccessToken } from './personal-access-tokens.ts';
import type { Principal, TokenReference } from './principal.ts';
import type { TokenPolicy } from './token-policy.ts';

/** What this service lets Kilolock's own credentials do, beyond what Kilolock's roles grant. */
export interface CredentialPolicies {
  /** Of an API token, in its own environment. */
  readonly token: TokenPolicy;
  /** Of a personal access token, in the environments of the workspaces that its account owns or administers. */
  readonly owner: TokenPolicy;
}

/**
 * Looks a secret up among Kilolock's API tokens, then among its personal access tokens (data model 7.4). Nothing is
 * remembered between requests, so that a token is refused from the moment it is revoked.
 *
 * @param hint the workspace its sender says it belongs to, which is the user name of HTTP Basic; null when none was given.
 * @returns null when it is none, is revoked, or belongs to something that is not active: which of these is not told.
 */
export async function verifyKilolockCredential(
  database: KilolockDatabase,
  policies: CredentialPolicies,
  secret: Buffer,
  hint: string | null,
): Promise<Principal | null> {
  const hash = createHash('sha256').update(secret).digest();
  return (
    (await verifyApiToken(database, policies.token, { hash, hint })) ??
    (await verifyPersonalAccessToken(database, policies.owner, { hash, hint }))
  );
}

/**
 * Who a token of Kilolock's stands for now.
 *
 * @returns null when it is revoked, or belongs to something that is no longer active.
 */
export function readKilolockCredential(
  database: KilolockDatabase,
  policies: CredentialPolicies,
  { kind, tokenId }: TokenReference,
): Promise<Principal | null> {
  return kind === 'api-token'
    ? readApiToken(database, policies.token, tokenId)
    : readPersonalAccessToken(database, policies.owner, tokenId);
}
