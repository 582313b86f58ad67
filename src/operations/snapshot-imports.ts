import type { Caller } from '../history/states.ts';
import type { OnceOnly } from '../restore/snapshot.ts';
import { type Idempotency, refuseReuse } from './idempotency.ts';

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
