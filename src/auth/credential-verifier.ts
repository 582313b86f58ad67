import type { KilolockDatabase } from '../database/connection.ts';
import { isJwtShaped, parseAuthorization } from './authorization-header.ts';
import { InvalidCredentialError, type JwtVerifier } from './jwt-verifier.ts';
import { type CredentialPolicies, verifyKilolockCredential } from './kilolock-credentials.ts';
import type { Principal } from './principal.ts';

/** Tells who is calling from the value of an `Authorization` header. */
export interface CredentialVerifier {
  /**
   * @param authorization the header's value; undefined when the request has none.
   * @returns the principal, or null when no credential was given.
   * @throws InvalidCredentialError when one was given that is not accepted.
   * @throws KeySetUnavailableError when the keys of a JWT's issuer cannot be had, so that nobody can tell.
   */
  verify(authorization: string | undefined): Promise<Principal | null>;
}

/**
 * Makes the verifier of every kind of credential there is, for the whole value of an `Authorization` header:
 *
 * - a bearer token that has the form of a JWT goes to `jwt`, and nowhere else when that refuses it;
 * - any other bearer token, and the password of HTTP Basic, is looked up among Kilolock's tokens, and nowhere else. The
 *   user name, when there is one, must be the workspace it belongs to.
 *
 * Which of the two a credential is, its text alone decides: none is ever tried twice.
 *
 * @param options.database the control database, which holds the tokens.
 */
export function createCredentialVerifier(options: {
  readonly jwt: JwtVerifier;
  readonly database: KilolockDatabase;
  readonly policies: CredentialPolicies;
}): CredentialVerifier {
  const { jwt, database, policies } = options;
  return {
    async verify(authorization) {
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
    },
  };
}
