import { decodeProtectedHeader } from 'jose';
import { trimEnd } from '../base/text.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { InvalidCredentialError, type JwtVerifier } from './jwt-verifier.ts';
import { type CredentialPolicies, verifyKilolockCredential } from './kilolock-credentials.ts';
import type { Principal } from './principal.ts';

/** What credentials are held against. */
interface CredentialSources {
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
  const shown = parseAuthorization(authorization);
  if (shown === null) throw new InvalidCredentialError('neither a bearer token nor a user and password');
  const { scheme, secret, hint } = shown;
  if (isJwtShaped(secret)) {
    if (scheme === 'bearer') return jwt.verify(secret.toString('latin1'));
    throw new InvalidCredentialError('a JWT as a password');
  }
  const principal = await verifyKilolockCredential(database, policies, secret, hint);
  if (principal === null) throw new InvalidCredentialError('no active Kilolock token');
  return principal;
}

/**
 * Reads an `Authorization` header: `Bearer` with a secret of any form, since Kilolock's tokens have none that is
 * prescribed (data model 7.1), or `Basic` (RFC 7617). The schemes are case-insensitive (RFC 9110, section 11.1).
 *
 * @param value as Node gives it out, one character for each byte that was sent.
 * @returns the secret, and the workspace it is said to belong to, which stands before the first colon of `Basic`, when one does;
 *   null when it is neither, or the secret is empty.
 */
function parseAuthorization(value: string) {
  // Beyond these no byte was sent; taking the low half of such a character would make two secrets equal.
  if (!/^[\x20-\xFF]*$/.test(value)) return null;
  const [before = '', scheme = ''] = /^(bearer|basic) +/i.exec(value) ?? [];
  const credentials = trimEnd(value.slice(before.length), ' ');
  if (scheme === '' || credentials === '') return null;
  if (scheme.toLowerCase() === 'bearer') {
    return { scheme: 'bearer', secret: Buffer.from(credentials, 'latin1'), hint: null };
  }
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(credentials)) return null;
  const userPass = Buffer.from(credentials, 'base64');
  const colon = userPass.indexOf(':');
  const secret = userPass.subarray(colon + 1);
  if (colon < 0 || secret.length === 0) return null;
  return { scheme: 'basic', secret, hint: userPass.toString('utf8', 0, colon) || null };
}

/**
 * Whether a secret is a JWT by its form: it begins with a JOSE header (RFC 7515, section 4). It is a property of the
 * text alone, so that a credential has one verifier and never a second chance with another.
 */
function isJwtShaped(secret: Buffer): boolean {
  try {
    decodeProtectedHeader(secret.toString('latin1'));
    return true;
  } catch {
    return false;
  }
}
