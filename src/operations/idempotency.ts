import { createHash } from 'node:crypto';
import { isStorableText } from '../base/text.ts';
import type { Caller } from '../history/states.ts';
import type { OnceOnly } from '../restore/snapshot.ts';
import type { OperationKind } from './operation-records.ts';
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

/**
 * The id of the operation that a caller's key stands for; null when it stands for none of the kind.
 *
 * @throws RequestRefusedError IDEMPOTENCY_KEY_REUSED when the key was first used with another request.
 */
export async function findByIdempotencyKey(
  { database, principal, namespace }: Caller,
  kind: OperationKind,
  idempotency: Idempotency,
): Promise<string | null> {
  const earlier = await database
    .for('read')
    .selectFrom('state_archive.operation')
    .where('tenant_id', '=', namespace.tenantId)
    .where('subject', '=', principal.subject)
    .where('kind', '=', kind)
    .where('idempotency_key', '=', idempotency.key)
    .select(['id', 'request_fingerprint as fingerprint'])
    .executeTakeFirst();
  if (earlier === undefined) return null;
  refuseReuse(idempotency, earlier.fingerprint ?? Buffer.alloc(0));
  return earlier.id;
}

/**
 * Lets an idempotency key of the caller stand for one version: asked for again, it is that version. Requests of the same
 * moment wait for each other at the key's row, and one that is refused or rolled back leaves the key free.
 *
 * @throws RequestRefusedError IDEMPOTENCY_KEY_REUSED, from `claim`, when the key stands for another request.
 */
export function onceForKey({ principal, namespace }: Caller, idempotency: Idempotency): OnceOnly {
  const key = {
    tenant_id: namespace.tenantId,
    subject: principal.subject,
    idempotency_key: idempotency.key,
  };
  return {
    async claim(db) {
      const claimed = await db
        .insertInto('state_archive.snapshot_import')
        .values({ ...key, request_fingerprint: idempotency.fingerprint })
        .onConflict((conflict) => conflict.doNothing())
        .returning('idempotency_key')
        .executeTakeFirst();
      if (claimed !== undefined) return null;
      const earlier = await db
        .selectFrom('state_archive.snapshot_import')
        .where((where) => where.and(key))
        .select(['request_fingerprint as fingerprint', 'state_id as stateId', 'serial'])
        .executeTakeFirstOrThrow();
      refuseReuse(idempotency, earlier.fingerprint);
      const { stateId, serial } = earlier;
      if (stateId === null || serial === null)
        throw new Error('A key stands for a version that was never written.');
      return { stateId, serial: BigInt(serial) };
    },
    async settle(db, { stateId, serial }) {
      await db
        .updateTable('state_archive.snapshot_import')
        .set({ state_id: stateId, serial: String(serial) })
        .where((where) => where.and(key))
        .execute();
    },
  };
}

/** @throws RequestRefusedError IDEMPOTENCY_KEY_REUSED when the key was first used with another request. */
function refuseReuse({ fingerprint }: Idempotency, first: Buffer): void {
  if (fingerprint.equals(first)) return;
  throw new RequestRefusedError(
    'IDEMPOTENCY_KEY_REUSED',
    'This idempotency key was used for another request; use a new one.',
    ['idempotencyKey'],
  );
}
