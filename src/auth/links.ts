import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { calculateJwkThumbprint, errors, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { readOrCreateSecretFile, SecretFileError } from './secret-file.ts';

/** What a link is good for; a link made for one purpose is useless for any other. */
export type LinkPurpose = 'download';

/** What a link permits, to whom, and for how long. */
export interface Link {
  readonly purpose: LinkPurpose;
  /** The operation whose archive the link leads to. */
  readonly operationId: string;
  /** The principal the link was made for. */
  readonly subject: string;
  /** Whole seconds from now. */
  readonly expiresInSeconds: number;
}

/** Signs and checks links that carry their own permission, for clients that cannot send a credential. */
export interface LinkSigner {
  /**
   * @returns a compact token, safe in a URL's query as it stands. Whoever holds it may use it: it is a secret.
   * @throws RangeError when the link would be good for less than a second, or for a fraction.
   */
  sign(link: Link): Promise<string>;
  /**
   * @returns whom the link was made for and until when it is good (RFC 3339), or null when it is expired, forged,
   *   made with another key, or made for another purpose or operation. Which of these is not told.
   */
  verify(
    token: string,
    purpose: LinkPurpose,
    operationId: string,
  ): Promise<{ readonly subject: string; readonly expiresAt: string } | null>;
}

// Its own type and issuer, and a key of its own kind: a link is never taken for a credential, nor the reverse
// (RFC 8725, section 3.11 and 3.12).
const LINK_TYPE = 'kilolock-link+jwt';
const LINK_ISSUER = 'kilolock-state-archive/links';

const linkClaims = z.object({ purpose: z.string(), operation: z.string(), sub: z.string(), exp: z.int() });

const keyFile = z.object({ kty: z.literal('oct'), k: z.base64url().length(43) });

/**
 * Makes a signer with the link key of a data directory, `link-key.jwk` (256 bits for HMAC-SHA-256, mode 0600),
 * creating it when there is none. Replicas accept each other's links when they share the directory.
 *
 * @param now the clock; the system's when absent.
 * @throws SecretFileError when the file is open to others or holds no such key.
 */
export async function loadOrCreateLinkSigner(
  dataDirectory: string,
  now: () => Date = () => new Date(),
): Promise<LinkSigner> {
  const key = await loadOrCreateKey(join(dataDirectory, 'link-key.jwk'));
  const keyId = await calculateJwkThumbprint(key);
  return {
    async sign(link) {
      if (!Number.isSafeInteger(link.expiresInSeconds) || link.expiresInSeconds < 1) {
        throw new RangeError('A link must be good for a whole number of seconds, at least 1.');
      }
      return new SignJWT({ purpose: link.purpose, operation: link.operationId })
        .setProtectedHeader({ alg: 'HS256', kid: keyId, typ: LINK_TYPE })
        .setIssuer(LINK_ISSUER)
        .setSubject(link.subject)
        .setExpirationTime(Math.floor(now().getTime() / 1000) + link.expiresInSeconds)
        .sign(key);
    },

    async verify(token, purpose, operationId) {
      const claims = await verifiedClaims(token, key, keyId, now());
      if (claims === null || claims.purpose !== purpose || claims.operation !== operationId) return null;
      return {
        subject: claims.sub,
        expiresAt: new Date(claims.exp * 1000).toISOString().replace('Z', '000Z'),
      };
    },
  };
}

async function verifiedClaims(token: string, key: KeyObject, keyId: string, currentDate: Date) {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, key, {
      algorithms: ['HS256'],
      typ: LINK_TYPE,
      issuer: LINK_ISSUER,
      currentDate,
    });
    return protectedHeader.kid === keyId ? (linkClaims.safeParse(payload).data ?? null) : null;
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}

async function loadOrCreateKey(path: string): Promise<KeyObject> {
  const text = await readOrCreateSecretFile(path, () =>
    JSON.stringify(createSecretKey(randomBytes(32)).export({ format: 'jwk' })),
  );
  try {
    return createSecretKey(keyFile.parse(JSON.parse(text)).k, 'base64url');
  } catch {
    // The cause is dropped: a parser's message may quote the key.
    throw new SecretFileError(path, 'holds no 256-bit key as a JWK; remove it to have a new one made');
  }
}
