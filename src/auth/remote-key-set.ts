import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTHeaderParameters,
  type JWTVerifyGetKey,
} from 'jose';
import { z } from 'zod';

/** The issuer's keys cannot be fetched or read. The caller did nothing wrong, and is not let in either. */
export class KeySetUnavailableError extends Error {
  override readonly name = 'KeySetUnavailableError';
  /** For the log: what went wrong at the key set's address. */
  readonly reason: string;

  constructor(reason: string) {
    super('Credentials cannot be verified at the moment.');
    this.reason = reason;
  }
}

/**
 * Finds the key that a token is signed with, for `jwtVerify`: the same object for as long as the issuer is not asked again.
 *
 * @throws KeySetUnavailableError when nobody can tell; an error of jose when there is none.
 */
export type FindKey = (header: JWTHeaderParameters) => ReturnType<JWTVerifyGetKey>;

/** How long the issuer may take to answer, in milliseconds. */
const TIMEOUT_MS = 5_000;
/** The longest key set that is read, in bytes; a key with its certificates is a few thousand. */
const MAX_KEY_SET_BYTES = 1024 * 1024;
/** How long an unknown key id causes no other fetch after one that succeeded, in milliseconds. */
const COOL_DOWN_MS = 30_000;
/** How long nothing is fetched after a fetch that failed, in milliseconds. */
const COOL_DOWN_AFTER_FAILURE_MS = 5_000;
/** How long keys are believed without hearing of them again, in milliseconds: a key withdrawn is refused after it. */
const MAX_AGE_MS = 10 * 60_000;

/**
 * Makes a source of the keys that an issuer publishes (RFC 7517). They are fetched when the first token comes, when they
 * are 10 minutes old, and when a token names a key that is not among them, since issuers change keys. However many
 * tokens ask, one fetch is under way at a time, and one in 30 seconds is made for unknown key ids: whoever makes up key
 * ids cannot have the issuer asked for each. Where a fetch failed, keys that are not yet 10 minutes old go on being used,
 * and the issuer is left alone for 5 seconds. Redirects are not followed.
 *
 * @param timeoutMs how long the issuer may take to answer, in milliseconds.
 */
export function createRemoteKeySet(url: string, timeoutMs: number = TIMEOUT_MS): FindKey {
  const keySet = createRemoteJWKSet(new URL(url), {
    timeoutDuration: timeoutMs,
    cooldownDuration: COOL_DOWN_MS,
    cacheMaxAge: MAX_AGE_MS,
    [customFetch]: fetchWithCoolDown(),
  });
  return async (header) => {
    try {
      return await keySet(header);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) {
        throw error;
      }
      throw new KeySetUnavailableError(error instanceof Error ? error.message : 'unknown');
    }
  };
}

/** The library's own cool-down counts from the last success alone, so that an outage would have every token fetch. */
function fetchWithCoolDown(): FetchImplementation {
  let lastFailure = Number.NEGATIVE_INFINITY;
  return async (url, options) => {
    if (Date.now() < lastFailure + COOL_DOWN_AFTER_FAILURE_MS) {
      throw new Error('the last fetch failed a moment ago');
    }
    try {
      return await fetchKeySet(url, options);
    } catch (error) {
      lastFailure = Date.now();
      throw error;
    }
  };
}

const keySetBody = z.object({ keys: z.array(z.looseObject({})) });

/**
 * Receives the whole answer: an issuer that never ends it, or answers with something else, has failed as well. Messages
 * end in the log, and hold nothing of what was answered.
 */
async function fetchKeySet(...[url, options]: Parameters<FetchImplementation>): Promise<Response> {
  const response = await fetch(url, options);
  try {
    if (response.status !== 200) throw new Error(`the answer has status ${response.status}`);
    const keySet = keySetBody.safeParse(parseJson(await receiveText(response)));
    if (!keySet.success) throw new Error('the answer is no key set');
    return Response.json(keySet.data);
  } finally {
    // Of an answer that is not wanted no more is received.
    await response.body?.cancel().catch(() => undefined);
  }
}

async function receiveText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_KEY_SET_BYTES) throw new Error(`the answer is longer than ${MAX_KEY_SET_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('the answer is no JSON');
  }
}
