import { decodeJwt, errors, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from 'jose';
import { DEVELOPMENT_AUDIENCE, DEVELOPMENT_ISSUER, type DevelopmentKey } from './development-key.ts';
import type { Principal } from './principal.ts';
import { createRemoteKeySet } from './remote-key-set.ts';
import { ClaimsError, principalFromClaims } from './token-claims.ts';

/** Tells who is calling from a JWT. */
export interface JwtVerifier {
  /**
   * @param token a JWT in the compact form (RFC 7519, section 1).
   * @throws InvalidCredentialError when it is not accepted.
   * @throws KeySetUnavailableError when the issuer's keys cannot be had, so that nobody can tell.
   */
  verify(token: string): Promise<Principal>;
}

/**
 * A credential was given and is not accepted. The message is one for every cause that trying could teach something of;
 * `reason` is for the log and never holds any part of the credential.
 */
export class InvalidCredentialError extends Error {
  override readonly name = 'InvalidCredentialError';
  readonly reason: string;

  constructor(reason: string, message = 'The credential is not valid.') {
    super(message);
    this.reason = reason;
  }
}

/** Whose tokens are accepted. With neither, no token is. */
export interface JwtVerifierOptions {
  readonly developmentKey: DevelopmentKey | null;
  /** An issuer that publishes its keys (RFC 7517), with the exact `iss` and an `aud` its tokens must carry. */
  readonly jwks: { readonly url: string; readonly issuer: string; readonly audience: string } | null;
  /** The clock; the system's when absent. */
  readonly now?: () => Date;
}

const CLOCK_SKEW_SECONDS = 30;

/** Three parts in base64url (RFC 7515, section 7.1): decoders let more pass. */
const COMPACT_FORM = /^[\w-]+\.[\w-]+\.[\w-]*$/;

interface AcceptedIssuer {
  readonly key: JWTVerifyGetKey;
  readonly audience: string;
  readonly algorithms: readonly string[];
}

/**
 * Makes a verifier of signed JWTs. An issuer's tokens are checked against that
 * issuer's keys alone, with public-key algorithms only: never `none`, never an HMAC keyed with a public key
 * (RFC 8725, sections 3.1 and 3.2).
 */
export function createJwtVerifier(options: JwtVerifierOptions): JwtVerifier {
  const now = options.now ?? (() => new Date());
  const issuers = new Map<string, AcceptedIssuer>();
  if (options.jwks) {
    issuers.set(options.jwks.issuer, {
      key: createRemoteKeySet(options.jwks.url),
      audience: options.jwks.audience,
      algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    });
  }
  if (options.developmentKey) {
    issuers.set(DEVELOPMENT_ISSUER, {
      key: onlyKey(options.developmentKey),
      audience: DEVELOPMENT_AUDIENCE,
      algorithms: ['EdDSA'],
    });
  }
  return {
    async verify(token) {
      try {
        if (!COMPACT_FORM.test(token)) throw new InvalidCredentialError('not a JWT');
        const issuer = decodeJwt(token).iss ?? '';
        const accepted = issuers.get(issuer);
        if (accepted === undefined) throw new InvalidCredentialError('unknown issuer');
        const { payload } = await jwtVerify(token, accepted.key, verifyOptions(issuer, accepted, now()));
        return principalFromClaims(payload);
      } catch (error) {
        throw refusal(error);
      }
    },
  };
}

function verifyOptions(issuer: string, accepted: AcceptedIssuer, currentDate: Date): JWTVerifyOptions {
  return {
    issuer,
    audience: accepted.audience,
    algorithms: [...accepted.algorithms],
    clockTolerance: CLOCK_SKEW_SECONDS,
    requiredClaims: ['exp', 'sub'],
    currentDate,
  };
}

function onlyKey(key: DevelopmentKey): JWTVerifyGetKey {
  return (header) => {
    if (header.kid !== key.keyId) throw new errors.JWKSNoMatchingKey();
    return key.publicKey;
  };
}

function refusal(error: unknown): unknown {
  if (error instanceof ClaimsError) return new InvalidCredentialError(error.message);
  // A library error is not kept as the cause: it carries the token's claims.
  if (error instanceof errors.JWTExpired) {
    // Told only to who holds a token that was good: its signature, issuer and audience are looked at first.
    return new InvalidCredentialError('expired', 'The credential has expired.');
  }
  if (error instanceof errors.JWTClaimValidationFailed) {
    return new InvalidCredentialError(`claim "${error.claim}": ${error.reason}`);
  }
  if (error instanceof errors.JOSEError) return new InvalidCredentialError(error.code);
  return error;
}
