import { createHash } from 'node:crypto';
import { isStorableText } from '../base/text.ts';
import type { Caller } from '../history/states.ts';
import { RequestRefusedError } from './user-error.ts';

const MAX_KEY_LENGTH = 255;

/** A caller's key, and the digest of the request it was first used with. */
export interface Idempotency {
  readonly key: string;
  readonly fingerprint: Buffer;
}

/**
 * What a request is known by under a caller's idempotency key.
 *
 * @param request what makes two requests the same, in any order of keys.
 * @throws RequestRefusedError INVALID_INPUT when the key is empty, too long, or no text PostgreSQL can hold.
 */
export function idempotencyOf(
  { namespace: { workspace, environment } }: Caller,
  key: string,
  request: Readonly<Record<string, string | boolean | null>>,
): Idempotency {
  if (key === '' || key.length > MAX_KEY_LENGTH || !isStorableText(key)) {
    throw new RequestRefusedError(
      'INVALID_INPUT',
      `An idempotency key has 1 to ${MAX_KEY_LENGTH} characters.`,
      ['idempotencyKey'],
    );
  }
  const fingerprint = createHash('sha256')
    .update(JSON.stringify(Object.entries({ ...request, workspace, environment }).sort()))
    .digest();
  return { key, fingerprint };
}

/** @throws RequestRefusedError IDEMPOTENCY_KEY_REUSED when the key was first used with another request. */
export function refuseReuse({ fingerprint }: Idempotency, first: Buffer): void {
  if (fingerprint.equals(first)) return;
  throw new RequestRefusedError(
    'IDEMPOTENCY_KEY_REUSED',
    'This idempotency key was used for another request; use a new one.',
    ['idempotencyKey'],
  );
}
