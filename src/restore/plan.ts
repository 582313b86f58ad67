import { historyDigest } from '../archive/history-digest.ts';
import type { ArchivedState } from '../archive/model.ts';
import type { VerifiedArchive } from '../archive/reader.ts';
import { present } from '../base/invariant.ts';
import type { KilolockDatabase } from '../database/connection.ts';

import type { Inspector } from '../inspection/inspector.ts';
import type { InspectionProgress } from '../inspection/shared-progress.ts';
import type { RestoreWarning } from '../inspection/warnings.ts';
import { DatabaseStorage } from './database-storage.ts';
import type { LockPolicy } from './destination.ts';
import { asRefusal } from './errors.ts';
import { findPlace, type Placement } from './placement.ts';
import { refuseOverQuota } from './quota.ts';
import { nameForRecord, type RestoreReport } from './report.ts';
import { type RestoreRequest, rowPathsOf } from './restore-request.ts';

/** A restore that nothing known stands against: the whole archive was checked, nothing was written. */
export interface RestorePlan {
  readonly request: RestoreRequest;
  readonly archive: VerifiedArchive;
  readonly placement: Placement;
  /** The digest each raw state will have as jsonb keeps it, by serial: the archive's own but for foreign spellings. */
  readonly keptDigests: ReadonlyMap<bigint, string>;
  /** Managed resource instances of the current version: what quotas count. */
  readonly managedInstances: number;
  readonly report: RestoreReport;
}

/**
 * Verifies the whole archive, checks that Kilolock can hold every document in it, and that the destination is free.
 * Nothing stays in the database: what comes near to its limits is tried out and rolled back. For a restore that is no dry
 * run, the rows of `resources` and `outputs` are put aside in the files of the request.
 *
 * @param onProgress called after each raw state that was checked.
 * @throws ArchiveError when the file is not a whole, sound archive.
 * @throws RestoreRefusedError when a document cannot be held or the destination is refused.
 */
export async function planRestore(
  database: KilolockDatabase,
  inspector: Inspector,
  request: RestoreRequest,
  onProgress: (progress: InspectionProgress) => void,
): Promise<RestorePlan> {
  const db = database.for('read');
  const { archive, findings } = await inspector
    .inspectForRestore(
      { path: request.archivePath, limits: request.limits, signal: request.signal, onProgress },
      new DatabaseStorage(database, request.destination.namespace.tenantId),
      request.dryRun ? null : rowPathsOf(request),
    )
    .catch((error: unknown) => {
      throw asRefusal(error);
    });
  const { state, counts } = archive.manifest;
  const placement = await findPlace(db, request, state);
  const { destination, outcome, stateId, replaced } = placement;
  const { normalised, managedInstances } = findings;
  const keptDigests = new Map([
    ...archive.versionDigests.map(({ serial, sha256 }) => [serial, sha256] as const),
    ...normalised,
  ]);
  await refuseOverQuota(db, destination.namespace, managedInstances, stateId);
  return {
    request,
    archive,
    placement,
    keptDigests,
    managedInstances,
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
      resourceSpans: findings.resourceSpans,
      resourceSpansDerived: findings.spansAreDerived,
      outputs: findings.outputs,
      rawBytes: archive.rawBytes,
      historyDigest: normalised.size === 0 ? archive.historyDigest : digestOf(archive, keptDigests),
      normalisedVersions: normalised.size,
      warnings: [...findings.warnings, ...changedLockPolicy(placement, state)],
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

/** The digest of the archive's history with raw states of these digests. */
function digestOf({ manifest, tags }: VerifiedArchive, digests: ReadonlyMap<bigint, string>): string {
  const { lineage, currentSerial } = manifest.state;
  const versions = manifest.versions.map((version) => ({
    ...version,
    sha256: present(digests.get(version.serial), 'every version has a digest'),
  }));
  return historyDigest({ lineage, currentSerial, versions, tags });
}
