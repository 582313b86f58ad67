import { createHash, timingSafeEqual } from 'node:crypto';

/**
 * Makes the check of whether somebody shows a secret that we share: the gateway, or whoever collects metrics.
 *
 * @param secrets while one is being replaced the old and the new are both good. None: nothing proves anything.
 * @returns tells whether what is shown is one of the secrets, in a time that depends on neither.
 */
export function createSecretProof(secrets: readonly string[]): (shown: string | undefined) => boolean {
  const accepted = secrets.map(digest);
  return (shown) => {
    if (shown === undefined) return false;
    const given = digest(shown);
    // Every one is compared: stopping at the first match would tell which it was.
    return accepted.filter((secret) => timingSafeEqual(secret, given)).length > 0;
  };
}

/** Digests have one length, and tell nothing of how much of a secret was guessed. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
