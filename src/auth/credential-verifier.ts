import type { KilolockDatabase } from '../database/connection.ts';
import { isJwtShaped, parseAuthorization } from './authorization-header.ts';
import { InvalidCredentialError, type JwtVerifier } from './jwt-verifier.ts';
import { type CredentialPolicies, verifyKilolockCredential } from './kilolock-credentials.ts';
import type { Principal } from './principal.ts';

/** What credentials are held against. */
export interface CredentialSources {
  readonly jwt: JwtVerifier;
  /** The control database, which holds Kilolock's tokens. */
  readonly database: KilolockDatabase;
  readonly policies: CredentialPolicies;
}

/**
 * Tells who is calling, by every kind of credential there is:
 *
 * - a bearer token that has the form of a JWT goes to `jwt`, and nowhere else when that refuses it;
 * - any other bearer token, and the password of HTTP Basic, is looked up among Kilolock's tokens, and nowhere else. The
 *   user name, when there is one, must be the workspace it belongs to.
 *
 * Which of the two a credential is, its text alone decides: none is ever tried twice.
 *
 * @param authorization the value of the `Authorization` header; undefined when the request has none.
 * @returns the principal, or null when no credential was given.
 * @throws InvalidCredentialError when one was given that is not accepted.
 * @throws KeySetUnavailableError when the keys of a JWT's issuer cannot be had, so that nobody can tell.
 */
export async function verifyCredential(
  { jwt, database, policies }: CredentialSources,
  authorization: string | undefined,
): Promise<Principal | null> {
  if (authorization === undefined) return null;
  // Not the same as none: whoever sends one means to be somebody.
  if (authorization.trim() === '') {
    throw new InvalidCredentialError('empty', 'The Authorization header is empty.');
  }
  const header = parseAuthorization(authorization);
  if (header === null) throw new InvalidCredentialError('neither a bearer token nor a user and password');
  if (isJwtShaped(header.secret)) {
    if (header.scheme === 'bearer') return jwt.verify(header.secret.toString('latin1'));
    throw new InvalidCredentialError('a JWT as a password');
  }
  const hint = header.scheme === 'basic' && header.username !== '' ? header.username : null;
  const principal = await verifyKilolockCredential(database, policies, header.secret, hint);
  if (principal === null) throw new InvalidCredentialError('no active Kilolock token');
  return principal;
}
