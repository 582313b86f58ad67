import { createHash, timingSafeEqual } from 'node:crypto';

/** The request header in which the gateway shows its secret. */
export const GATEWAY_SECRET_HEADER = 'x-gateway-secret';

/**
 * Makes the check of whether a request came through the gateway.
 *
 * @param secrets the secret, or several parted by commas: while one is being replaced the old and the new are both
 *   good. A secret therefore holds no comma, and no space at its ends. Null: there is none, and nothing proves anything.
 * @returns tells whether a header's value is one of the secrets, in a time that depends on neither.
 * @throws RangeError when `secrets` is a text with no secret in it.
 */
export function createGatewayProof(secrets: string | null): (given: string | undefined) => boolean {
  const accepted = (secrets ?? '')
    .split(',')
    .map((secret) => secret.trim())
    .filter((secret) => secret !== '')
    .map(digest);
  if (secrets !== null && accepted.length === 0) throw new RangeError('The gateway secret is empty.');
  return (given) => {
    if (given === undefined) return false;
    const shown = digest(given);
    // Every one is compared: stopping at the first match would tell which it was.
    return accepted.filter((secret) => timingSafeEqual(secret, shown)).length > 0;
  };
}

/** Digests have one length, and tell nothing of how much of a secret was guessed. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
