import { errors, jwtVerify, SignJWT } from 'jose';
import { z } from 'zod';
import { type LinkKey, type LinkKeys, loadLinkKeys, MAX_LINK_SECONDS } from './link-keys.ts';
import type { TokenReference } from './principal.ts';

/** What a link is good for; a link made for one purpose is useless for any other. */
type LinkPurpose = 'download' | 'upload';

/** Whom a link was made for, and where. */
interface VerifiedLink {
  /** The principal it was made for. */
  readonly subject: string;
  /** The token of Kilolock's that the principal showed, on whose right the link rests; null for a JWT. */
  readonly token: TokenReference | null;
  /** The public ids of the environment it was made in; both null for the self-hosted one. */
  readonly workspace: string | null;
  readonly environment: string | null;
}

/** What a link permits, to whom, and for how long. */
export interface Link extends VerifiedLink {
  readonly purpose: LinkPurpose;
  /** What the link leads to: for a download the operation whose archive it is, for an upload the upload. */
  readonly resourceId: string;
  /** Whole seconds from now, a day at most. */
  readonly expiresInSeconds: number;
}

/** Signs and checks links that carry their own permission, for clients that cannot send a credential. */
export interface LinkSigner {
  /**
   * @returns a compact token, safe in a URL's query as it stands. Whoever holds it may use it: it is a secret.
   * @throws RangeError when the link would be good for less than a second, for a fraction, or for more than a day.
   * @throws SecretFileError when the keys cannot be used.
   */
  sign(link: Link): Promise<string>;
  /**
   * @returns what it was made for, or null when it is expired, forged, made with a key that is retired, or made for
   *   another purpose or resource. Which of these is not told. Whether the token it rests on still permits it, and whether the
   *   resource is one of the environment it names, is for the caller to find out.
   * @throws SecretFileError when the keys cannot be used.
   */
  verify(token: string, purpose: LinkPurpose, resourceId: string): Promise<VerifiedLink | null>;
}

// Its own type and issuer, and a key of its own kind: a link is never taken for a credential, nor the reverse
// (RFC 8725, section 3.11 and 3.12).
const LINK_TYPE = 'kilolock-link+jwt';
const LINK_ISSUER = 'kilolock-state-archive/links';

const linkClaims = z.object({
  purpose: z.string(),
  /** Called so since links led to operations alone. */
  operation: z.string(),
  workspace: z.string().nullable(),
  environment: z.string().nullable(),
  token: z.object({ kind: z.enum(['api-token', 'personal-access-token']), tokenId: z.string() }).nullable(),
  sub: z.string(),
  // The library checks it when it is there; a link has to have one.
  exp: z.int(),
});

/**
 * Makes a signer with the link keys of a data directory, creating the first when there is none: it signs with the
 * newest and accepts all that are not retired. The keys are read at each use, so that a rotation counts at once in every
 * process that shares the directory, and replicas accept each other's links.
 *
 * @param now the clock; the system's when absent.
 * @throws SecretFileError when the file is open to others or holds no such keys.
 */
export async function loadOrCreateLinkSigner(
  dataDirectory: string,
  now: () => Date = () => new Date(),
): Promise<LinkSigner> {
  const keys: LinkKeys = () => loadLinkKeys(dataDirectory, now());
  await keys();
  return createLinkSigner(keys, now);
}

/** Makes a signer that signs with the first of the keys and accepts all of them. */
export function createLinkSigner(keys: LinkKeys, now: () => Date = () => new Date()): LinkSigner {
  return {
    async sign({ purpose, resourceId, workspace, environment, token, subject, expiresInSeconds }) {
      if (
        !Number.isSafeInteger(expiresInSeconds) ||
        expiresInSeconds < 1 ||
        expiresInSeconds > MAX_LINK_SECONDS
      ) {
        throw new RangeError('A link must be good for a whole number of seconds, from 1 to a day.');
      }
      const [{ key, keyId }] = await keys();
      return new SignJWT({ purpose, operation: resourceId, workspace, environment, token })
        .setProtectedHeader({ alg: 'HS256', kid: keyId, typ: LINK_TYPE })
        .setIssuer(LINK_ISSUER)
        .setSubject(subject)
        .setExpirationTime(Math.floor(now().getTime() / 1000) + expiresInSeconds)
        .sign(key);
    },

    async verify(token, purpose, resourceId) {
      const claims = await verifiedClaims(token, await keys(), now());
      if (claims === null || claims.purpose !== purpose || claims.operation !== resourceId) return null;
      const { sub, token: reference, workspace, environment } = claims;
      return { subject: sub, token: reference, workspace, environment };
    },
  };
}

async function verifiedClaims(token: string, keys: readonly LinkKey[], currentDate: Date) {
  try {
    const { payload } = await jwtVerify(
      token,
      ({ kid }) => {
        const named = keys.find(({ keyId }) => keyId === kid);
        if (named === undefined) throw new errors.JWKSNoMatchingKey();
        return named.key;
      },
      { algorithms: ['HS256'], typ: LINK_TYPE, issuer: LINK_ISSUER, currentDate },
    );
    return linkClaims.safeParse(payload).data ?? null;
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
