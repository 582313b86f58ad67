import { createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { calculateJwkThumbprint } from 'jose';
import { z } from 'zod';
import { present } from '../base/invariant.ts';
import { readOrCreateSecretFile, replaceSecretFile, SecretFileError } from '../base/secret-file.ts';

/** The longest a link may be good for, in seconds: a day. For as long, a key that was replaced still verifies links. */
export const MAX_LINK_SECONDS = 24 * 3600;

/** A key that signs links, with HMAC-SHA-256. */
export interface LinkKey {
  /** The JWK thumbprint (RFC 7638): the `kid` of every link signed with it. */
  readonly keyId: string;
  readonly key: KeyObject;
}

/** The keys of links at this moment: at least one, the one to sign with first. */
export type LinkKeys = () => Promise<readonly [LinkKey, ...LinkKey[]]>;

/**
 * The keys that these secrets stand for, the one to sign with first: replicas that are given the same secrets accept each other's
 * links, whatever is on their disks. Each key is derived (HKDF, RFC 5869) for links alone.
 */
export function linkKeysOf(secrets: readonly [string, ...string[]]): LinkKeys {
  const keys = Promise.all(
    secrets.map((secret) => {
      const derived = hkdfSync('sha256', secret, '', 'kilolock-state-archive/links', 32);
      return linkKey(createSecretKey(Buffer.from(derived)));
    }),
  ) as Promise<[LinkKey, ...LinkKey[]]>;
  return () => keys;
}

async function linkKey(key: KeyObject): Promise<LinkKey> {
  return { keyId: await calculateJwkThumbprint(key), key };
}

/** A JWK set (RFC 7517, section 5) of symmetric keys, newest first. `created` is in whole seconds since 1970. */
const keySetFile = z.object({
  keys: z
    .array(
      z.object({
        kty: z.literal('oct'),
        // 256 bits in base64url are 43 characters.
        k: z.base64url().length(43),
        created: z.int().nonnegative(),
      }),
    )
    .min(1),
});

type KeySetFile = z.infer<typeof keySetFile>;

/**
 * Reads the link keys of a data directory, `link-keys.jwks` (mode 0600), creating the first when there is none.
 *
 * @returns at least one, the one to sign with first.
 * @throws SecretFileError when the file is open to others or holds no such keys.
 */
export async function loadLinkKeys(dataDirectory: string, now: Date): Promise<[LinkKey, ...LinkKey[]]> {
  const { keys } = await readKeySet(dataDirectory, now);
  const [newest, ...older] = await Promise.all(keys.map(({ k }) => linkKey(createSecretKey(k, 'base64url'))));
  return [present(newest, 'a key set has a key'), ...older];
}

/**
 * Adds a new link key, which signs from now on in every process that shares the data directory, and retires those that
 * were replaced longer ago than any link is good for. To make every link void at once, remove the file instead.
 *
 * @returns how many keys there are now.
 * @throws SecretFileError when the file is open to others or holds no such keys.
 */
export async function rotateLinkKeys(dataDirectory: string, now: Date = new Date()): Promise<number> {
  const { keys } = await readKeySet(dataDirectory, now);
  const oldest = seconds(now) - MAX_LINK_SECONDS;
  // A key was replaced when the one before it in the list was created; the first is replaced now.
  const kept = keys.filter((_key, index) => (keys[index - 1]?.created ?? seconds(now)) > oldest);
  const next: KeySetFile = { keys: [newKey(now), ...kept] };
  await replaceSecretFile(pathIn(dataDirectory), JSON.stringify(next));
  return next.keys.length;
}

async function readKeySet(dataDirectory: string, now: Date): Promise<KeySetFile> {
  const path = pathIn(dataDirectory);
  const text = await readOrCreateSecretFile(path, () => {
    return JSON.stringify({ keys: [newKey(now)] } satisfies KeySetFile);
  });
  try {
    return keySetFile.parse(JSON.parse(text));
  } catch {
    // The cause is dropped: a parser's message may quote a key.
    throw new SecretFileError(path, 'holds no 256-bit keys as a JWK set; remove it to have a new one made');
  }
}

function newKey(now: Date): KeySetFile['keys'][number] {
  return { kty: 'oct', k: randomBytes(32).toString('base64url'), created: seconds(now) };
}

function seconds(now: Date): number {
  return Math.floor(now.getTime() / 1000);
}

function pathIn(dataDirectory: string): string {
  return join(dataDirectory, 'link-keys.jwks');
}
