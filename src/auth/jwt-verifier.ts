import { createHash } from 'node:crypto';
import { decodeJwt, errors, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { DEVELOPMENT_AUDIENCE, DEVELOPMENT_ISSUER, type DevelopmentKey } from './development-key.ts';
import type { Principal } from './principal.ts';
import { createRemoteKeySet, type FindKey } from './remote-key-set.ts';
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
interface JwtVerifierOptions {
  readonly developmentKey: DevelopmentKey | null;
  /** An issuer that publishes its keys (RFC 7517), with the exact `iss` and an `aud` its tokens must carry. */
  readonly jwks: { readonly url: string; readonly issuer: string; readonly audience: string } | null;
  /** The clock; the system's when absent. */
  readonly now?: () => Date;
}

const CLOCK_SKEW_SECONDS = 30;
/** How many tokens are remembered that were found good. */
const MAX_KNOWN_TOKENS = 1_000;

/** Three parts in base64url (RFC 7515, section 7.1): decoders let more pass. */
const COMPACT_FORM = /^[\w-]+\.[\w-]+\.[\w-]*$/;

interface AcceptedIssuer {
  readonly key: FindKey;
  readonly audience: string;
  readonly algorithms: readonly string[];
}

/**
 * Makes a verifier of signed JWTs. An issuer's tokens are checked against that
 * issuer's keys alone, with public-key algorithms only: never `none`, never an HMAC keyed with a public key
 * (RFC 8725, sections 3.1 and 3.2).
 *
 * A token that was found good is not looked into again while it is in time and its issuer still names the very key: nothing
 * else can change what the same bytes come to. Tokens are remembered by their hashes.
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
  /** By hash. */
  const known = new LRUCache<string, KnownToken>({ max: MAX_KNOWN_TOKENS });
  return {
    async verify(token) {
      const at = now();
      const hash = createHash('sha256').update(token).digest('base64');
      try {
        const earlier = known.get(hash);
        const isStillGood =
          earlier !== undefined &&
          isInTime(earlier, at) &&
          (await earlier.issuer.key(earlier.header)) === earlier.key;
        const found = isStillGood ? earlier : await lookInto(token, issuers, at);
        known.set(hash, found);
        return found.principal;
      } catch (error) {
        throw refusal(error);
      }
    },
  };
}

/** @returns what a good token comes to, and what that depends on beside its bytes: the key its signature was checked with among it. */
async function lookInto(token: string, issuers: ReadonlyMap<string, AcceptedIssuer>, currentDate: Date) {
  if (!COMPACT_FORM.test(token)) throw new InvalidCredentialError('not a JWT');
  const name = decodeJwt(token).iss ?? '';
  const issuer = issuers.get(name);
  if (issuer === undefined) throw new InvalidCredentialError('unknown issuer');
  const { payload, protectedHeader, key } = await jwtVerify(token, issuer.key, {
    issuer: name,
    audience: issuer.audience,
    algorithms: [...issuer.algorithms],
    clockTolerance: CLOCK_SKEW_SECONDS,
    requiredClaims: ['exp', 'sub'],
    currentDate,
  });
  const { nbf: notBefore = 0, exp: expiresAt = 0 } = payload;
  return {
    issuer,
    header: protectedHeader,
    key,
    notBefore,
    expiresAt,
    principal: principalFromClaims(payload),
  };
}

type KnownToken = Awaited<ReturnType<typeof lookInto>>;

/** As jose decides it. */
function isInTime({ notBefore, expiresAt }: KnownToken, at: Date): boolean {
  const seconds = Math.floor(at.getTime() / 1000);
  return notBefore <= seconds + CLOCK_SKEW_SECONDS && expiresAt > seconds - CLOCK_SKEW_SECONDS;
}

function onlyKey({ keyId, publicKey }: DevelopmentKey): FindKey {
  const key = publicKey.toCryptoKey('Ed25519', true, ['verify']);
  return async ({ kid }) => {
    if (kid !== keyId) throw new errors.JWKSNoMatchingKey();
    return key;
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
