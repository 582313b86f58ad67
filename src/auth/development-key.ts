import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { calculateJwkThumbprint, SignJWT } from 'jose';
import { readOrCreateSecretFile, SecretFileError } from '../base/secret-file.ts';
import { principalFromClaims } from './token-claims.ts';

/** The `iss` of every token signed with a development key; no other issuer's tokens are checked against that key. */
export const DEVELOPMENT_ISSUER = 'kilolock-state-archive/development';

/** The `aud` of every token signed with a development key. */
export const DEVELOPMENT_AUDIENCE = 'kilolock-state-archive';

/** An Ed25519 key pair (RFC 8037) that stands in for an identity provider on a developer's machine. */
export interface DevelopmentKey {
  /** The JWK thumbprint of the public key (RFC 7638): the `kid` of every token signed with it. */
  readonly keyId: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/** What a development token says; see `principalFromClaims` for the meaning of each. */
export interface DevelopmentTokenClaims {
  readonly subject: string;
  readonly name?: string | undefined;
  readonly scopes: Iterable<string>;
  readonly workspace?: string | undefined;
  readonly environment?: string | undefined;
  /** Absent: every state. */
  readonly states?: readonly string[] | undefined;
  /** For how long the token is good, in whole seconds. */
  readonly ttlSeconds: number;
}

/**
 * Loads the development key of a data directory, `development-key.jwk` (a private JWK, mode 0600), creating it when
 * there is none. Processes that start at the same time end with one key.
 *
 * @throws SecretFileError when the file is open to others or holds no Ed25519 key.
 */
export async function loadOrCreateDevelopmentKey(dataDirectory: string): Promise<DevelopmentKey> {
  const path = join(dataDirectory, 'development-key.jwk');
  const text = await readOrCreateSecretFile(path, () =>
    JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })),
  );
  const privateKey = parseKey(path, text);
  const publicKey = createPublicKey(privateKey);
  return { keyId: await calculateJwkThumbprint(publicKey), privateKey, publicKey };
}

/**
 * Signs a token that `createJwtVerifier` accepts while it is given the same key.
 *
 * @throws ClaimsError when the verifier would not understand the claims.
 */
export async function signDevelopmentToken(
  key: DevelopmentKey,
  claims: DevelopmentTokenClaims,
): Promise<string> {
  const { subject, scopes, ttlSeconds, ...others } = claims;
  const payload = { sub: subject, scope: [...scopes].join(' '), ...others };
  principalFromClaims(payload);
  return new SignJWT(payload)
    .setProtectedHeader({ alg: 'EdDSA', kid: key.keyId, typ: 'JWT' })
    .setIssuer(DEVELOPMENT_ISSUER)
    .setAudience(DEVELOPMENT_AUDIENCE)
    .setIssuedAt()
    .setExpirationTime(`${ttlSeconds} s`)
    .sign(key.privateKey);
}

function parseKey(path: string, text: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: JSON.parse(text), format: 'jwk' });
  } catch {
    // The cause is dropped: a parser's message may quote the key.
    throw new SecretFileError(path, 'holds no private JWK; remove it to have a new key made');
  }
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new SecretFileError(path, 'holds no Ed25519 key; remove it to have a new key made');
  }
  return key;
}
