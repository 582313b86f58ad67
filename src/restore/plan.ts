import type { ArchiveLimits } from '../archive/format.ts';
import type { ArchivedState, HistoryProgress } from '../archive/model.ts';
import type { SignatureTrust } from '../archive/signing-keys.ts';
import { inPhase } from '../base/telemetry.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import type { RestoreFindings } from '../inspection/inspection.ts';
import type { Inspector } from '../inspection/inspector.ts';
import type { HistoryRowPaths } from '../inspection/spooled-rows.ts';
import type { RestoreWarning } from '../inspection/warnings.ts';
import { DatabaseStorage } from './database-storage.ts';
import type { LockPolicy } from './destination.ts';
import { asRefusal } from './errors.ts';
import { findPlace, type Placement, type PlacementRequest } from './placement.ts';
import { refuseOverQuota } from './quota.ts';
import { nameForRecord, type RestoreReport } from './report.ts';

/** What is to be restored, and where. */
export interface RestoreRequest extends PlacementRequest {
  /** The archive; the file must not change until the restore is over. */
  readonly archivePath: string;
  /** What the archive may cost to read. */
  readonly limits: ArchiveLimits;
  /** Whose signatures count. */
  readonly trust: SignatureTrust;
  readonly dryRun: boolean;
  /** Ends the work early; nothing is left behind. */
  readonly signal: AbortSignal;
}

/** Where a restore puts its rows aside between plan and apply. */
export function rowPathsOf(archivePath: string): HistoryRowPaths {
  return {
    resources: `${archivePath}.resources`,
    outputs: `${archivePath}.outputs`,
    versions: `${archivePath}.versions`,
    tags: `${archivePath}.tags`,
    events: `${archivePath}.events`,
  };
}

/** A restore that nothing known stands against: the whole archive was checked, nothing was written. */
export interface RestorePlan {
  readonly request: RestoreRequest;
  readonly archive: RestoreFindings;
  readonly placement: Placement;
  readonly report: RestoreReport;
}

/**
 * Verifies the whole archive, checks that Kilolock can hold every document in it, and that the destination is free.
 * Nothing stays in the database: what comes near to its limits is tried out and rolled back. For a restore that is no dry
 * run, the rows are put aside in the files of the request.
 *
 * @param onProgress called after each raw state that was checked.
 * @throws ArchiveError when the file is not a whole, sound archive.
 * @throws RestoreRefusedError when a document cannot be held or the destination is refused.
 */
export async function planRestore(
  database: KilolockDatabase,
  inspector: Inspector,
  request: RestoreRequest,
  onProgress: (progress: HistoryProgress) => void,
): Promise<RestorePlan> {
  const db = database.for('read');
  const archive = await inPhase('import.inspect', () =>
    inspector.inspectForRestore(
      {
        path: request.archivePath,
        limits: request.limits,
        trust: request.trust,
        signal: request.signal,
        onProgress,
      },
      new DatabaseStorage(database, request.destination.namespace.tenantId),
      request.dryRun ? null : rowPathsOf(request.archivePath),
    ),
  ).catch((error: unknown) => {
    throw asRefusal(error);
  });
  const { state, counts, managedInstances } = archive;
  const placement = await findPlace(db, request, state);
  const { destination, outcome, stateId, replaced } = placement;
  await refuseOverQuota(db, destination.namespace, managedInstances, stateId);
  return {
    request,
    archive,
    placement,
    report: {
      dryRun: request.dryRun,
      outcome,
      name: destination.label,
      replacedVersions: replaced?.current?.versions ?? 0,
      sourceName: nameForRecord(state.label),
      sourceStateId: state.id,
      versions: counts.versions,
      tags: counts.tags,
      events: counts.events,
      resourceSpans: archive.resourceSpans,
      resourceSpansDerived: archive.spansAreDerived,
      outputs: archive.outputs,
      rawBytes: archive.rawBytes,
      historyDigest: archive.keptDigest,
      normalisedVersions: archive.normalisedVersions,
      signature: archive.signature,
      warnings: [...archive.warnings, ...changedLockPolicy(placement, state)],
    },
  };
}

/** Two applies at once are let in, or kept out, by the lock policy: whoever relied on the source's has to know. */
function changedLockPolicy({ outcome, lockPolicy }: Placement, archived: ArchivedState): RestoreWarning[] {
  const { exclusiveLocks, coexistenceMode } = archived;
  if (lockPolicy.exclusiveLocks === exclusiveLocks && lockPolicy.coexistenceMode === coexistenceMode) {
    return [];
  }
  const reason = outcome === 'REPLACED' ? 'the state there keeps its own' : 'the environment prescribes them';
  const message = `The archived state has ${described(archived)} locks; restored it has ${described(lockPolicy)} ones, because ${reason}. Set its lock mode in Kilolock if that is not what its users rely on.`;
  return [{ code: 'LOCK_POLICY_CHANGED', message, serial: null }];
}

function described({ exclusiveLocks, coexistenceMode }: LockPolicy): string {
  return `${exclusiveLocks ? 'exclusive' : 'optimistic'} (${coexistenceMode})`;
}
