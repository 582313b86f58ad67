import { rm } from 'node:fs/promises';
import { readArchiveFile } from '../archive/archive-file.ts';
import { readManifestState } from '../archive/manifest-state.ts';
import type { HistoryProgress } from '../archive/model.ts';
import { abortable } from '../base/abortable.ts';
import { inPhase, noteMoved } from '../base/telemetry.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import type { Caller } from '../history/states.ts';
import { applyRestore } from '../restore/apply.ts';
import { type Destination, destinationOf } from '../restore/destination.ts';
import { type ConflictPolicy, findPlace } from '../restore/placement.ts';
import { planRestore } from '../restore/plan.ts';
import { currentCaller, withdrawn } from './current-caller.ts';
import { NotPermittedError, refuseUncovered } from './destination-permission.ts';
import { exportReplacedState } from './export-state-archive.ts';
import { type ClaimedOperation, markSucceeded, type Success } from './operation-lifecycle.ts';
import type { ImportOrder, StoredUpload } from './operation-request.ts';
import type { JobContext, OperationWork } from './operation-worker.ts';
import { type ArchiveServices, auditDetails, type CallerRequest } from './services.ts';
import { type OperationOptions, type OperationPlan, startOperation } from './start-operation.ts';
import { claimUpload, findUpload } from './upload-records.ts';
import {
  discardUpload,
  type ReceivedFile,
  readUpload,
  removeUsedUpload,
  storeUpload,
  uploadGone,
  withLocalUpload,
} from './uploads.ts';
import { aboutField, RequestRefusedError } from './user-error.ts';

/** What to restore, and under which name. */
export interface ImportRequest extends OperationOptions {
  /** The label to restore under; null: the archive's own. */
  readonly label: string | null;
  readonly onConflict: ConflictPolicy;
  readonly allowSharedLineage: boolean;
  readonly dryRun: boolean;
  /** The digest the file must have; null: any. */
  readonly expectedSha256: string | null;
}

/**
 * Starts a restore from a file that came with the request, or finds the one the idempotency key stands for. The file goes into
 * the store when there can be an operation for it, and is removed here before it returns.
 *
 * @returns the operation's id.
 * @throws RequestRefusedError, RestoreRefusedError or ArchiveError when it is refused before there is an operation: no row is
 *   left then.
 * @throws NotPermittedError when the caller's state patterns do not cover the destination.
 */
export async function importStateArchive(
  services: ArchiveServices,
  request: CallerRequest,
  file: ReceivedFile,
  input: ImportRequest,
): Promise<string> {
  const { caller, signal } = request;
  let upload = null as StoredUpload | null;
  try {
    refuseOther(file.sha256, input);
    const asked = fingerprintOf(input, { sha256: file.sha256 });
    return await startOperation(services, request, 'IMPORT', input, asked, async () => {
      const bytes = readArchiveFile(file.path, { signal });
      const destination = await findDestination(services, request, bytes, input);
      upload = await inPhase('import.keep', () =>
        storeUpload(services, caller, file, signal ?? new AbortController().signal),
      );
      return planOf(caller, upload, input, destination);
    });
  } finally {
    await rm(file.path, { force: true });
    // Unless an operation has it. What cannot be told now is found when its time is over.
    if (upload !== null) await discardUpload(services, caller.database, upload.key).catch(() => {});
  }
}

/**
 * Starts a restore from an upload that is whole, or finds the one the idempotency key stands for. What is refused leaves the
 * upload to be used, and so does a dry run; an import uses it up, however it ends.
 *
 * @throws as {@link importStateArchive} does; RequestRefusedError UPLOAD_EXPIRED when it is not there for this caller,
 *   UPLOAD_INCOMPLETE when more of it has to come.
 */
export async function importStagedArchive(
  services: ArchiveServices,
  request: CallerRequest,
  uploadId: string,
  input: ImportRequest,
): Promise<string> {
  const { database, namespace, principal } = request.caller;
  const asked = fingerprintOf(input, { uploadId });
  return startOperation(services, request, 'IMPORT', input, asked, async () => {
    const staged = await findUpload(database.for('read'), namespace, uploadId);
    if (
      staged === null ||
      staged.subject !== principal.subject ||
      staged.operationId !== null ||
      staged.hasExpired
    ) {
      throw uploadGone();
    }
    const { id: key, sha256, fileName, receivedBytes, byteLength } = staged;
    if (receivedBytes < byteLength) {
      throw new RequestRefusedError(
        'UPLOAD_INCOMPLETE',
        `${receivedBytes} of ${byteLength} bytes have come. Send the rest, and ask again.`,
        ['uploadId'],
      );
    }
    refuseOther(sha256, input);
    const bytes = readUpload(services, database, key);
    const destination = await findDestination(services, request, bytes, input).catch((error: unknown) => {
      throw aboutField(error, 'uploadId');
    });
    return planOf(request.caller, { key, sha256, fileName, inputField: 'uploadId' }, input, destination);
  });
}

/** @throws RequestRefusedError ARCHIVE_DIGEST_MISMATCH unless it is the file that the caller expects. */
function refuseOther(sha256: string, { expectedSha256 }: ImportRequest): void {
  if (expectedSha256 === null || expectedSha256 === sha256) return;
  throw new RequestRefusedError(
    'ARCHIVE_DIGEST_MISMATCH',
    `The file received has the SHA-256 ${sha256}, not the expected one; send it again.`,
    ['expectedSha256'],
  );
}

/** What makes two requests for an import the same. */
function fingerprintOf(
  { label, onConflict, allowSharedLineage, dryRun }: ImportRequest,
  source: Readonly<Record<string, string>>,
) {
  const policy = JSON.stringify(onConflict, (_key, value) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return { ...source, label, onConflict: policy, allowSharedLineage, dryRun };
}

/**
 * Where the archive would go, by what it claims to be; refused when it cannot go there. It is read within the request, and given
 * up with it.
 */
async function findDestination(
  { limits }: ArchiveServices,
  { caller, signal }: CallerRequest,
  bytes: AsyncIterable<Uint8Array>,
  input: ImportRequest,
): Promise<Destination> {
  const state = await readManifestState(abortable(bytes, signal), limits).catch((error: unknown) => {
    if (!signal?.aborted) throw error;
    throw new RequestRefusedError(
      'OPERATION_INTERRUPTED',
      'The request was given up before there was an operation. Nothing was written; ask again.',
    );
  });
  const destination = destinationOf(caller.namespace, input.label ?? state.label);
  refuseUncovered(caller, destination.label, input.onConflict.kind);
  await findPlace(caller.database.for('read'), { ...input, destination }, state);
  return destination;
}

/** The plan of an import, which uses its upload up unless it is a dry run of one that others may use. */
function planOf(
  caller: Caller,
  upload: StoredUpload,
  { onConflict, allowSharedLineage, dryRun }: ImportRequest,
  { label, name }: Destination,
): OperationPlan {
  const isLeft = dryRun && upload.inputField === 'uploadId';
  return {
    label,
    stateName: name,
    stateId: null,
    archiveSha256: upload.sha256,
    order: { kind: 'IMPORT', upload, label, onConflict, allowSharedLineage, dryRun },
    async recordedWith(db, id) {
      if (!isLeft && !(await claimUpload(db, caller, upload.key, id))) throw uploadGone();
    },
  };
}

/** The work of an import that was asked for. */
export function importWork(
  services: ArchiveServices,
  operation: ClaimedOperation,
  order: ImportOrder,
  database: KilolockDatabase,
): OperationWork {
  return {
    async job(context) {
      const request = await currentCaller(services, operation, database);
      await withLocalUpload(services, database, order.upload, context.signal, (path) =>
        runImport(services, request, path, order, context),
      );
    },
    async onEnd(_attempt, end) {
      // Otherwise it may be needed again.
      if (end === 'succeeded' || end === 'failed' || end === 'cancelled')
        await removeUsedUpload(services, database, order.upload.key);
    },
  };
}

async function runImport(
  services: ArchiveServices,
  request: CallerRequest,
  archivePath: string,
  { upload, label, onConflict, allowSharedLineage, dryRun }: ImportOrder,
  context: JobContext,
): Promise<void> {
  const { limits, trust, inspector } = services;
  const { attempt, signal, report } = context;
  const { caller } = request;
  const destination = destinationOf(caller.namespace, label);
  try {
    refuseUncovered(caller, destination.label, onConflict.kind);
  } catch (error) {
    throw error instanceof NotPermittedError ? withdrawn(error.message) : error;
  }
  const { database } = caller;
  const noteProgress = ({ versions, bytes }: HistoryProgress) =>
    report({ versionsDone: BigInt(versions), bytesDone: bytes });
  const asked = { archivePath, limits, trust, destination, onConflict, allowSharedLineage, dryRun, signal };
  const plan = await inPhase('import.plan', () =>
    planRestore(database, inspector, asked, dryRun ? noteProgress : () => {}),
  );
  const { archive } = plan;
  report({ versionsTotal: BigInt(archive.counts.versions), bytesTotal: archive.rawBytes });
  const success: Success = {
    stateId: null,
    archive: {
      sha256: archive.sha256,
      sizeBytes: archive.sizeBytes,
      historyDigest: archive.historyDigest,
      fileName: upload.fileName,
      objectKey: null,
    },
    report: plan.report,
    versions: archive.counts.versions,
    rawBytes: archive.rawBytes,
    kept: null,
    replacedOperationId: null,
  };
  if (dryRun) {
    await markSucceeded(database.for('record'), attempt, success);
    return noteMoved('dry_run', success);
  }
  let replacedOperationId: string | null = null;
  await applyRestore(database, plan, {
    operationId: attempt.id,
    actor: caller.principal.actor,
    eventDetails: auditDetails(request),
    onProgress: noteProgress,
    archiveReplaced: async (stateId) => {
      const kept = await exportReplacedState(services, request, stateId, destination, context);
      replacedOperationId = kept.operationId;
      return kept.historyDigest;
    },
    beforeCommit: ({ db }) =>
      markSucceeded(db, attempt, { ...success, stateId: plan.placement.stateId, replacedOperationId }),
  });
  noteMoved('import', success);
}
