import { historyDigest } from '../archive/history-digest.ts';
import type { ArchivedState } from '../archive/model.ts';
import type { VerifiedArchive } from '../archive/reader.ts';
import { present } from '../base/invariant.ts';
import { readWhole } from '../base/read-whole.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { CarriedSpans } from './carried-spans.ts';
import type { LockPolicy } from './destination.ts';
import { DocumentChecks } from './document-checks.ts';
import type { RestoreRefusedError } from './errors.ts';
import { findPlace, type Placement } from './placement.ts';
import { refuseOverQuota } from './quota.ts';
import { nameForRecord, type RestoreReport, WarningCollector } from './report.ts';
import { archiveMembers, type RestoreRequest } from './restore-request.ts';
import type { SpanDerivation } from './span-derivation.ts';
import { StorageTrial } from './storage-trial.ts';

/** A restore that nothing known stands against: the whole archive was checked, nothing was written. */
export interface RestorePlan {
  readonly request: RestoreRequest;
  readonly archive: VerifiedArchive;
  readonly placement: Placement;
  /** The digest each raw state will have as jsonb keeps it, by serial: the archive's own but for foreign spellings. */
  readonly keptDigests: ReadonlyMap<bigint, string>;
  /** The resource spans derived from the raw states; null: those the archive carries agree with them and are taken. */
  readonly derivedSpans: SpanDerivation | null;
  /** The serials of versions whose outputs have to be read out of their documents; see {@link DocumentChecks}. */
  readonly foldedOutputs: readonly bigint[];
  /** Managed resource instances of the current version: what quotas count. */
  readonly managedInstances: number;
  readonly report: RestoreReport;
}

/** How far the check of an archive is. */
export interface CheckProgress {
  readonly versions: number;
  readonly bytes: bigint;
}

/**
 * Verifies the whole archive, checks that Kilolock can hold every document in it, and that the destination is free.
 * Nothing stays in the database: what comes near to its limits is tried out and rolled back.
 *
 * @param onProgress called after each raw state that was checked.
 * @throws ArchiveError when the file is not a whole, sound archive.
 * @throws RestoreRefusedError when a document cannot be held or the destination is refused.
 */
export async function planRestore(
  database: KilolockDatabase,
  request: RestoreRequest,
  onProgress: (progress: CheckProgress) => void,
): Promise<RestorePlan> {
  const db = database.for('read');
  const warnings = new WarningCollector();
  const trial = new StorageTrial(database, request.destination.namespace.tenantId);
  const { archive, checks } = await checkArchive(request, trial, warnings, onProgress);
  const { state, counts } = archive.manifest;
  const placement = await findPlace(db, request, state);
  const { destination, outcome, stateId, replaced } = placement;
  warnOfLockPolicy(placement, state, warnings);
  const keptDigests = new Map([
    ...archive.versionDigests.map(({ serial, sha256 }) => [serial, sha256] as const),
    ...checks.normalised,
  ]);
  await refuseOverQuota(db, destination.namespace, checks.managedInstances, stateId);
  return {
    request,
    archive,
    placement,
    keptDigests,
    derivedSpans: checks.derivedSpans,
    foldedOutputs: checks.foldedOutputs,
    managedInstances: checks.managedInstances,
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
      resourceSpans: checks.derivedSpans?.count ?? counts.resources,
      resourceSpansDerived: checks.derivedSpans !== null,
      outputs: checks.outputs,
      rawBytes: archive.rawBytes,
      historyDigest: checks.normalised.size === 0 ? archive.historyDigest : digestOf(archive, keptDigests),
      normalisedVersions: checks.normalised.size,
      warnings: warnings.list(),
    },
  };
}

/** Two applies at once are let in, or kept out, by the lock policy: whoever relied on the source's has to know. */
function warnOfLockPolicy(
  { outcome, lockPolicy }: Placement,
  archived: ArchivedState,
  warnings: WarningCollector,
): void {
  const { exclusiveLocks, coexistenceMode } = archived;
  if (lockPolicy.exclusiveLocks === exclusiveLocks && lockPolicy.coexistenceMode === coexistenceMode) {
    return;
  }
  const reason = outcome === 'REPLACED' ? 'the state there keeps its own' : 'the environment prescribes them';
  warnings.add(
    'LOCK_POLICY_CHANGED',
    `The archived state has ${described(archived)} locks; restored it has ${described(lockPolicy)} ones, because ${reason}. Set its lock mode in Kilolock if that is not what its users rely on.`,
  );
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

async function checkArchive(
  request: RestoreRequest,
  trial: StorageTrial,
  warnings: WarningCollector,
  onProgress: (progress: CheckProgress) => void,
): Promise<{ archive: VerifiedArchive; checks: DocumentChecks }> {
  const carried = new CarriedSpans(request);
  try {
    const members = archiveMembers(request);
    let checks: DocumentChecks | null = null;
    let refusal: RestoreRefusedError | null = null;
    let versions = 0;
    let bytes = 0n;
    let step = await members.next();
    while (!step.done) {
      const member = step.value;
      if (member.kind === 'manifest') checks = new DocumentChecks(member.manifest, carried, warnings, trial);
      if (member.kind === 'version') {
        // Until the sums at the end agree, a bad document may be a damaged file: that would be the truer answer.
        if (refusal === null && checks !== null) {
          refusal = await checks.check(member.version, await readWhole(member.content, member.byteLength));
        }
        versions += 1;
        bytes += BigInt(member.byteLength);
        onProgress({ versions, bytes });
      }
      step = await members.next();
    }
    if (checks === null) throw new Error('An archive was read to its end without a manifest.');
    if (refusal !== null) throw refusal;
    await checks.finish(step.value.hasResources);
    for (const { code, message } of step.value.warnings) warnings.add(code, message);
    return { archive: step.value, checks };
  } finally {
    await carried.close();
  }
}
