import { createHash, timingSafeEqual } from 'node:crypto';

/** The request header in which the gateway shows its secret. */
export const GATEWAY_SECRET_HEADER = 'x-gateway-secret';

/**
 * Makes the check of whether a request came through the gateway.
 *
 * @param secrets while one is being replaced the old and the new are both good. None: nothing proves anything.
 * @returns tells whether a header's value is one of the secrets, in a time that depends on neither.
 */
export function createGatewayProof(secrets: readonly string[]): (given: string | undefined) => boolean {
  const accepted = secrets.map(digest);
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
