import { sql } from 'kysely';
import { CommitUndecidedError } from '../database/commit.ts';
import { inTransaction } from '../database/connection.ts';
import { type Caller, may } from '../history/states.ts';
import type { ArchiveStore } from '../store/archive-store.ts';
import { ObjectMissingError, type Retention as StoreRetention } from '../store/object-store.ts';
import { operationNotFound } from './cancel-operation.ts';
import { NotPermittedError } from './destination-permission.ts';
import { lockUntilEnd, markHeld, type Retention } from './operation-lifecycle.ts';
import { findOperations } from './operation-records.ts';
import { type ArchiveServices, auditDetails, type CallerRequest } from './services.ts';
import { insertStateEvent, stateUnlocked } from './state-events.ts';
import { RequestRefusedError } from './user-error.ts';

/** How archives are kept that nobody wished otherwise for. */
export const USUAL_RETENTION: Retention = { retainUntil: null, legalHold: false };

/** Whether an archive is to be kept for longer than usual. */
export function isKeptLonger({ retainUntil, legalHold }: Retention): boolean {
  return retainUntil !== null || legalHold;
}

/** What cannot be undone has an end: whoever needs more has a legal hold, which can be lifted. */
const MAX_RETENTION = '10 years';
/** An export may have to wait for its turn. */
const MIN_RETENTION = '1 day';

/**
 * @throws RequestRefusedError RETENTION_UNSUPPORTED where the store can keep nothing, INVALID_INPUT when the time is out of
 *   bounds.
 * @throws NotPermittedError when the caller may not have archives kept.
 */
export async function refuseUnkeepable(
  { store }: Pick<ArchiveServices, 'store'>,
  caller: Caller,
  { retainUntil, legalHold }: Retention,
): Promise<void> {
  if (!isKeptLonger({ retainUntil, legalHold })) return;
  refuseUnpermitted(caller);
  retentionOf(store, retainUntil === null ? 'legalHold' : 'retainUntil');
  if (retainUntil === null) return;
  const { rows } = await sql<{ isWithin: boolean }>`
    select ${retainUntil}::timestamptz between now() + ${MIN_RETENTION}::interval and now() + ${MAX_RETENTION}::interval
      as "isWithin"`.execute(caller.database.for('read'));
  if (rows[0]?.isWithin) return;
  throw new RequestRefusedError(
    'INVALID_INPUT',
    `retainUntil is at least ${MIN_RETENTION} and at most ${MAX_RETENTION} from now; legalHold keeps an archive for as long as it is not lifted.`,
    ['retainUntil'],
  );
}

function refuseUnpermitted(caller: Caller): void {
  if (may(caller, 'state.retain')) return;
  throw new NotPermittedError(
    'To keep an archive for longer than usual, or no longer, needs the scope state.retain.',
  );
}

function retentionOf({ archives }: ArchiveStore, field: string): StoreRetention {
  if (archives.retention !== null) return archives.retention;
  throw new RequestRefusedError(
    'RETENTION_UNSUPPORTED',
    'The archive store cannot keep an archive from being removed: its bucket has no object lock. An operator can give it another, ARCHIVE_STORE_URL.',
    [field],
  );
}

/**
 * Has the store keep an archive as it was wished for.
 *
 * @throws RetentionRefusedError, RequestRefusedError RETENTION_UNSUPPORTED when it does not.
 */
export async function keepArchive(
  { store }: Pick<ArchiveServices, 'store'>,
  key: string,
  { retainUntil, legalHold }: Retention,
): Promise<void> {
  // First what can be undone: when that fails, nothing is left that stays for years.
  if (legalHold) await retentionOf(store, 'legalHold').hold(key, true);
  if (retainUntil !== null) {
    const seconds = Math.ceil(Date.parse(retainUntil) / 1000);
    await retentionOf(store, 'retainUntil').retainUntil(key, seconds);
  }
}

/**
 * Removes an archive that its record says is none, a legal hold notwithstanding: the record is the truth, and that hold is
 * nobody's. What is to be kept until a time stays until then.
 *
 * @returns false when it stays.
 */
export async function removeArchive(
  { archives }: Pick<ArchiveStore, 'archives'>,
  key: string,
): Promise<boolean> {
  if (await archives.remove(key)) return true;
  await archives.retention?.hold(key, false);
  return archives.remove(key);
}

/**
 * Puts an archive under a legal hold, or lifts it; to do so twice comes to the same. The archive of an export whose time is past
 * when its hold is lifted goes with the next housekeeping.
 *
 * @throws RequestRefusedError OPERATION_NOT_FOUND; ARCHIVE_NOT_KEPT when there is no archive of it, or no longer;
 *   RETENTION_UNSUPPORTED where the store can hold nothing; OPERATION_INTERRUPTED when it cannot be told what came of it.
 * @throws NotPermittedError when the caller may not.
 */
export async function setLegalHold(
  services: Pick<ArchiveServices, 'retentionSeconds' | 'store'>,
  request: CallerRequest,
  id: string,
  legalHold: boolean,
): Promise<void> {
  const { caller } = request;
  const { database, namespace, principal } = caller;
  refuseUnpermitted(caller);
  const operation = (await findOperations(database.for('read'), caller, [id])).get(id);
  if (operation === undefined) throw operationNotFound();
  const { archive, label, stateId, status, retention } = operation;
  if (status !== 'SUCCEEDED' || archive?.objectKey == null) throw notKept();
  const { objectKey, sha256 } = archive;
  const store = retentionOf(services.store, 'legalHold');
  if (stateId !== null) await stateUnlocked(database.for('record'), stateId);
  try {
    await inTransaction(database, 'record', async ({ db }) => {
      await lockUntilEnd(db, 'hold', id);
      if (!(await markHeld(db, id, legalHold, services.retentionSeconds))) throw notKept();
      if (retention.legalHold !== legalHold) {
        await insertStateEvent(db, {
          tenantId: namespace.tenantId,
          kind: 'state_export',
          stateId,
          versionId: null,
          actor: principal.actor,
          payload: {
            outcome: legalHold ? 'held' : 'released',
            archive_id: id,
            archive_digest: sha256,
            label,
            ...auditDetails(request),
          },
        });
      }
      // Last, so that whatever is refused before leaves it as it was. Where the record cannot be written after it, the record
      // is what counts: to ask again brings the two together, and the housekeeping removes nothing that it says is held.
      await store.hold(objectKey, legalHold);
    });
  } catch (error) {
    if (error instanceof ObjectMissingError) throw notKept();
    if (!(error instanceof CommitUndecidedError)) throw error;
    throw new RequestRefusedError(
      'OPERATION_INTERRUPTED',
      'The connection to the database was lost, and it is not known whether the hold was changed; ask again.',
    );
  }
}

function notKept(): RequestRefusedError {
  return new RequestRefusedError(
    'ARCHIVE_NOT_KEPT',
    'The operation has no archive to be held: it is no export that succeeded, or the time of its archive is past.',
    ['id'],
  );
}
