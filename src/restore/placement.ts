import { randomInt, randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { ArchivedState } from '../archive/model.ts';
import type { Database } from '../database/types.ts';
import { selectStates } from '../history/namespace.ts';
import {
  type Destination,
  type LockPolicy,
  lockPolicyIn,
  refuseArchivedNamesake,
  refuseTakenName,
} from './destination.ts';
import { RestoreRefusedError } from './errors.ts';
import {
  clearReplacedHistory,
  findReplaced,
  type OverwriteConfirmation,
  type ReplacedState,
  refuseChangedHistory,
  staleDestination,
} from './overwrite.ts';
import type { RestoreReport } from './report.ts';

/** What to do about a destination that is taken. */
export type ConflictPolicy =
  | { readonly kind: 'REFUSE' }
  /** Restore as an archived state beside whatever is there, under Kilolock's name for archived states. */
  | { readonly kind: 'ARCHIVED_COPY' }
  /** Replace the history that is there, when it is the one the caller means: compare and swap. */
  | ({ readonly kind: 'OVERWRITE' } & OverwriteConfirmation);

/** What placing depends on besides the destination. */
export interface PlacementRequest {
  readonly destination: Destination;
  readonly onConflict: ConflictPolicy;
  /** Whether a second active state of the archive's lineage is wanted. */
  readonly allowSharedLineage: boolean;
}

/** The state row a history will hang on. */
export interface Placement {
  readonly outcome: RestoreReport['outcome'];
  /** Where the history goes: the destination asked for, or the name of the archived copy. */
  readonly destination: Destination;
  readonly stateId: string;
  /** The namespace new ids are made in. */
  readonly idNamespace: string;
  /** The lock policy the state will have. */
  readonly lockPolicy: LockPolicy;
  /** The history that goes, for REPLACED. */
  readonly replaced: ReplacedState | null;
}

/**
 * Settles where a history goes, and refuses what stands against it. Reads only; {@link claimPlace} does the same again
 * under lock.
 *
 * @throws RestoreRefusedError.
 */
export async function findPlace(
  db: Kysely<Database>,
  request: PlacementRequest,
  archived: LockPolicy & Pick<ArchivedState, 'lineage'>,
): Promise<Placement> {
  const { destination, onConflict } = request;
  const replaced = onConflict.kind === 'OVERWRITE' ? await findReplaced(db, destination, onConflict) : null;
  const stateId = replaced?.id ?? randomUUID();
  const placement = {
    outcome: OUTCOMES[onConflict.kind],
    destination: onConflict.kind === 'ARCHIVED_COPY' ? archivedDestination(destination) : destination,
    stateId,
    // Rows of an earlier overwrite with the same archive may still be referred to: their ids must not come again.
    idNamespace: replaced === null ? stateId : randomUUID(),
    lockPolicy: replaced?.lockPolicy ?? lockPolicyIn(destination.namespace, archived),
    replaced,
  };
  await refuseRivals(db, placement, request, archived.lineage);
  return placement;
}

const OUTCOMES = { REFUSE: 'CREATED', ARCHIVED_COPY: 'ARCHIVED_COPY', OVERWRITE: 'REPLACED' } as const;

/** Refuses a place that another state stands against. With `lock`, no other restore of the lineage comes until the transaction ends. */
async function refuseRivals(
  db: Kysely<Database>,
  { outcome, destination, stateId }: Placement,
  request: PlacementRequest,
  lineage: string | null,
  options: { readonly lock: boolean } = { lock: false },
): Promise<void> {
  if (outcome !== 'REPLACED') await refuseTakenName(db, destination, stateId);
  if (outcome === 'CREATED') await refuseArchivedNamesake(db, destination, lineage);
  if (outcome !== 'ARCHIVED_COPY') await refuseLineageInUse(db, request, lineage, stateId, options);
}

/** Who restores, for the record on the state row. */
export interface Claimant {
  readonly actor: string;
  readonly operationId: string;
}

/**
 * Takes the place: inserts the state row, or locks the one there is and clears it. Checks everything again that may have changed since {@link findPlace}. A taken name comes out as PostgreSQL's own unique
 * violation of `states_tenant_name_key`.
 *
 * @param currentVersionId the version the pointer will stand at; its foreign key is checked at the commit (data model 1.1).
 * @param claimant.replacedDigest the digest of the history that goes, as it was archived; null: it has no version.
 * @throws RestoreRefusedError.
 */
export async function claimPlace(
  db: Kysely<Database>,
  placement: Placement,
  request: PlacementRequest,
  archived: ArchivedState,
  currentVersionId: string,
  claimant: Claimant & { readonly replacedDigest: string | null },
): Promise<void> {
  const { outcome, destination, stateId, lockPolicy } = placement;
  const history = {
    lineage: archived.lineage,
    current_version_id: currentVersionId,
    created_at: archived.createdAt,
  };
  if (request.onConflict.kind === 'OVERWRITE') {
    const replaced = await findReplaced(db, destination, request.onConflict, { lock: true });
    // The serial alone could be the same again after another overwrite.
    if (replaced.id !== stateId || replaced.current?.versionId !== placement.replaced?.current?.versionId) {
      throw staleDestination(destination, 'was written to since a moment ago');
    }
    const { replacedDigest } = claimant;
    if (replacedDigest !== null) await refuseChangedHistory(db, destination, stateId, replacedDigest);
    await clearReplacedHistory(db, stateId);
    await db
      .updateTable('states')
      .set({ ...history, updated_at: sql`now()` })
      .where('id', '=', stateId)
      .execute();
  } else {
    await db
      .insertInto('states')
      .values({
        ...history,
        id: stateId,
        tenant_id: destination.namespace.tenantId,
        name: destination.name,
        exclusive_locks: lockPolicy.exclusiveLocks,
        coexistence_mode: lockPolicy.coexistenceMode,
        ...(outcome === 'ARCHIVED_COPY' && {
          lifecycle_status: 'archived' as const,
          lifecycle_changed_at: sql<string>`now()`,
          lifecycle_changed_by: claimant.actor,
          lifecycle_reason: `restored as an archived copy by operation ${claimant.operationId}`,
        }),
      })
      .execute();
  }
  await refuseRivals(db, placement, request, archived.lineage, { lock: true });
}

/**
 * Refuses a lineage that an active state of the environment, other than the one that is restored, already has: two live copies
 * would manage the same infrastructure.
 *
 * @param options.lock keeps others from restoring the same lineage until the end of the transaction.
 * @throws RestoreRefusedError LINEAGE_IN_USE.
 */
async function refuseLineageInUse(
  db: Kysely<Database>,
  { destination, allowSharedLineage }: PlacementRequest,
  lineage: string | null,
  ownStateId: string,
  options: { readonly lock: boolean } = { lock: false },
): Promise<void> {
  if (allowSharedLineage || lineage === null) return;
  if (options.lock) {
    const rivals = `${destination.namespace.tenantId}/${lineage}`;
    await sql`select pg_advisory_xact_lock(hashtextextended(${rivals}, 0))`.execute(db);
  }
  const twin = await selectStates(db, destination.namespace)
    .where('lineage', '=', lineage)
    .where('lifecycle_status', '=', 'active')
    .where('id', '<>', ownStateId)
    .limit(1)
    .select('id')
    .executeTakeFirst();
  if (twin === undefined) return;
  // The twin's name is not told: the caller may not be allowed to see it.
  throw new RestoreRefusedError(
    'LINEAGE_IN_USE',
    `An active state of this environment already has the lineage ${lineage}: two live copies would manage the same infrastructure. Set \`allowSharedLineage\` to restore a second copy on purpose.`,
    'allowSharedLineage',
  );
}

// Kilolock's form of the name of an archived state: `--archived-<adjective>-<noun>-<2 hex>` behind the last segment
// (data model 8). The words are our own.
const ADJECTIVES = 'amber brave calm deep early faint green hollow late mild old quiet'.split(' ');
const NOUNS = 'anchor beacon cedar delta ember field grove harbor island lantern meadow river'.split(' ');

function archivedDestination({ namespace, label, name }: Destination): Destination {
  const pick = (words: readonly string[]) => words[randomInt(words.length)];
  const hex = randomInt(256).toString(16).padStart(2, '0');
  const suffix = `--archived-${pick(ADJECTIVES)}-${pick(NOUNS)}-${hex}`;
  return { namespace, label: label + suffix, name: name + suffix };
}
