import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { ArchiveError } from '../archive/errors.ts';
import {
  ARCHIVE_FILE_EXTENSION,
  ARCHIVE_FORMAT,
  DEFAULT_ARCHIVE_LIMITS,
  MEMBER,
  SEALED_FILE_EXTENSION,
} from '../archive/format.ts';
import type { ArchivedState, ArchivedVersion } from '../archive/model.ts';
import { isRecipient, MAX_RECIPIENTS, sealFile } from '../archive/seal.ts';
import { type ArchiveContents, trustOf, type WrittenArchive, writeArchive } from '../archive/writer.ts';
import { present } from '../base/invariant.ts';
import { inPhase, noteMoved } from '../base/telemetry.ts';
import { trimEnd } from '../base/text.ts';
import { utcTimeOf } from '../base/time.ts';
import { type DatabaseSession, inTransaction, type KilolockDatabase } from '../database/connection.ts';
import { openExportSource } from '../history/export-source.ts';
import { recordDigests } from '../history/history.ts';
import { HistoryInconsistentError, unarchivable } from '../history/inconsistent.ts';
import { findStatesById, findStatesByLabel, may } from '../history/states.ts';
import { RefusedDocumentError } from '../inspection/errors.ts';
import type { Destination } from '../restore/destination.ts';
import { archiveKeyOf } from './archive-keys.ts';
import {
  isKeptLonger,
  keepArchive,
  refuseUnkeepable,
  removeArchive,
  USUAL_RETENTION,
} from './archive-retention.ts';
import { currentCaller, withdrawn } from './current-caller.ts';
import { insertOperation, takeRoom } from './operation-admission.ts';
import {
  type Attempt,
  type AttemptEnd,
  type ClaimedOperation,
  markSucceeded,
  type Retention,
  type Success,
} from './operation-lifecycle.ts';
import type { ExportOrder } from './operation-request.ts';
import type { JobContext, OperationWork } from './operation-worker.ts';
import { type ArchiveServices, auditDetails, type CallerRequest, TOOL } from './services.ts';
import { type OperationOptions, startOperation } from './start-operation.ts';
import { insertStateEvent, stateUnlocked } from './state-events.ts';
import { RequestRefusedError, stateNotFound } from './user-error.ts';

/** Beside those of the service there is room for as many. */
const MAX_OWN_RECIPIENTS = MAX_RECIPIENTS / 2;

/** What to export with. */
export interface ExportOptions extends OperationOptions, Retention {
  /** age recipients beside those of the service; none unless given. */
  readonly recipients?: readonly string[];
  /** Whether an encrypted archive tells the history digest without a key; not unless given. */
  readonly discloseHistoryDigest?: boolean;
}

/**
 * Starts an export of the state the caller knows by `label`, or finds the one the idempotency key stands for.
 *
 * @returns the operation's id.
 * @throws RequestRefusedError when the state is not visible to the caller, or the options cannot be used.
 * @throws NotPermittedError when the caller may not have archives kept for longer than usual.
 */
export async function exportStateArchive(
  services: ArchiveServices,
  request: CallerRequest,
  label: string,
  options: ExportOptions,
): Promise<string> {
  const db = request.caller.database.for('read');
  if (!may(request.caller, 'state.export')) throw stateNotFound();
  const state = (await findStatesByLabel(db, request.caller, [label])).get(label);
  if (state === undefined) throw stateNotFound();
  const wish = wishOf(options);
  const sealing = sealingOf(options);
  const asked = { stateId: state.id, ...wish, ...(sealing && { sealing: JSON.stringify(sealing) }) };
  return startOperation(services, request, 'EXPORT', options, asked, async () => {
    await refuseUnkeepable(services, request.caller, options);
    return {
      label: state.label,
      stateName: state.name,
      stateId: state.id,
      archiveSha256: null,
      order: { kind: 'EXPORT', ...wish, ...(sealing && { sealing }) },
    };
  });
}

/** What is said of the keeping of an archive, where it is not the usual one. */
function wishOf({ retainUntil, legalHold }: Retention) {
  return { ...(retainUntil !== null && { retainUntil }), ...(legalHold && { legalHold: true as const }) };
}

/**
 * What is said of the encryption of an archive, where it is not that of every one.
 *
 * @throws RequestRefusedError INVALID_INPUT for what is no recipient, or too many.
 */
function sealingOf({
  recipients = [],
  discloseHistoryDigest = false,
}: ExportOptions): ExportOrder['sealing'] {
  if (recipients.length > MAX_OWN_RECIPIENTS || !recipients.every(isRecipient)) {
    throw new RequestRefusedError(
      'INVALID_INPUT',
      `Each of recipients is an age recipient (age1…), as age-keygen prints them, and there are ${MAX_OWN_RECIPIENTS} at most.`,
      ['recipients'],
    );
  }
  if (recipients.length === 0 && !discloseHistoryDigest) return undefined;
  return { recipients: [...new Set(recipients)].sort(), discloseHistoryDigest };
}

/** The work of an export that was asked for. */
export function exportWork(
  services: ArchiveServices,
  operation: ClaimedOperation,
  order: ExportOrder,
  database: KilolockDatabase,
): OperationWork {
  const retention = { retainUntil: order.retainUntil ?? null, legalHold: order.legalHold ?? false };
  return {
    async job(context) {
      const request = await currentCaller(services, operation, database);
      if (!may(request.caller, 'state.export'))
        throw withdrawn('Your credential does not permit exports any more.');
      if (isKeptLonger(retention) && !may(request.caller, 'state.retain'))
        throw withdrawn('Your credential does not permit archives to be kept for longer any more.');
      const stateId = present(operation.stateId, 'an export is of a state');
      const exported = await writeStateArchive(services, request, stateId, order, context);
      await takeRoom(request.caller, services, context.attempt, exported.written.sizeBytes);
      // As late as can be: what is locked nobody can remove, should it not count in the end.
      await keepArchive(services, archiveKeyOf(operation.id, operation.attempt), retention);
      await recordExport(services, request, context.attempt, exported, retention);
    },
    onEnd: (attempt, end) => removeUncounted(services, attempt, end),
  };
}

/**
 * Exports a history that is about to be replaced, as an operation of its own, and waits for it. The state is not locked: it
 * is for the caller to find out, by the digest, whether the history is still the same when it replaces it.
 */
export async function exportReplacedState(
  services: ArchiveServices,
  request: CallerRequest,
  stateId: string,
  { label, name }: Destination,
  whole: Pick<JobContext, 'attempt' | 'signal'>,
): Promise<{ readonly operationId: string; readonly historyDigest: string }> {
  const { database } = request.caller;
  const operation = {
    id: randomUUID(),
    kind: 'EXPORT',
    label,
    stateName: name,
    stateId,
    archiveSha256: null,
    requestId: request.requestId,
    idempotency: null,
    order: null,
    partOf: whole.attempt.id,
  } as const;
  await insertOperation(database.for('record'), request.caller, operation);
  let historyDigest = '';
  const work: OperationWork = {
    job: async (context) => {
      const exported = await writeStateArchive(services, request, stateId, { kind: 'EXPORT' }, context);
      historyDigest = exported.written.historyDigest;
      await recordExport(services, request, context.attempt, exported, USUAL_RETENTION);
    },
    onEnd: (attempt, end) => removeUncounted(services, attempt, end),
  };
  await services.worker.runPart(database, operation, work, whole);
  return { operationId: operation.id, historyDigest };
}

/** Removes the archive of an attempt that does not count. One that may count stays: housekeeping asks its record later. */
async function removeUncounted(
  { store }: ArchiveServices,
  { id, attempt }: Attempt,
  end: AttemptEnd,
): Promise<void> {
  if (end === 'succeeded' || end === 'undecided') return;
  await removeArchive(store, archiveKeyOf(id, attempt));
}

/** An archive that was written, and the history in it. */
interface ExportedState extends Pick<ArchiveContents, 'state' | 'versions' | 'tags'> {
  /** With the digest and the length of the file as it is kept. */
  readonly written: WrittenArchive;
  /** Whom the file is encrypted for; nobody: it is not. */
  readonly recipients: readonly string[];
}

async function writeStateArchive(
  { store, scratch, inspector, signer, ...services }: ArchiveServices,
  request: CallerRequest,
  stateId: string,
  { sealing }: ExportOrder,
  { attempt, signal, report }: JobContext,
): Promise<ExportedState> {
  const [path, sealedPath] = [scratch.path(), scratch.path()];
  const recipients = [...new Set([...services.recipients, ...(sealing?.recipients ?? [])])];
  const write = async (session: DatabaseSession): Promise<ExportedState> => {
    const record = (await findStatesById(session.db, request.caller, [stateId])).get(stateId);
    if (record === undefined) throw stateNotFound();
    const provenance = {
      exportedAt: utcTimeOf(new Date()),
      exportedBy: request.caller.principal.actor,
      source: { workspace: record.workspace, environment: record.environment, stateName: record.name },
      tool: TOOL,
    };
    const contents = await inPhase('export.plan', () => openExportSource(session, record, provenance));
    report({ versionsTotal: BigInt(contents.versions.length) });
    const signing = signer ?? undefined;
    const check = { limits: DEFAULT_ARCHIVE_LIMITS, trust: trustOf(signing), signal };
    const written = await inPhase('export.write', () =>
      writeArchive(contents, path, {
        signal,
        signer: signing,
        onProgress: ({ versions, bytes }) => report({ versionsDone: BigInt(versions), bytesDone: bytes }),
        check: (partial, grown) =>
          inPhase('export.verify', () =>
            inspector.inspectForExport({ ...check, path: partial }, grown).catch(refuseUnrestorable),
          ),
      }),
    );
    return { ...contents, written, recipients };
  };
  try {
    const exported = await inTransaction(request.caller.database, 'export', write, { signal });
    // Not before the transaction has ended: however slow the store is, no snapshot is held for it.
    const { written } = exported;
    let file = { path, sha256: written.sha256, sizeBytes: written.sizeBytes };
    if (recipients.length > 0) {
      const disclosedDigest = sealing?.discloseHistoryDigest ? written.historyDigest : null;
      const seal = () => sealFile(path, sealedPath, { recipients, disclosedDigest }, signal);
      file = { path: sealedPath, ...(await inPhase('export.seal', seal)) };
    }
    const { sha256, sizeBytes } = file;
    const key = archiveKeyOf(attempt.id, attempt.attempt);
    await inPhase('export.store', () => store.archives.put(key, file, signal));
    return { ...exported, written: { ...written, sha256, sizeBytes } };
  } finally {
    await Promise.all([path, sealedPath].map((each) => rm(each, { force: true })));
  }
}

/** Nobody shall learn years later that an archive cannot come back. */
function refuseUnrestorable(error: unknown): never {
  if (error instanceof ArchiveError && error.member === MEMBER.events) {
    throw unarchivable('One of the events', error.message);
  }
  if (!(error instanceof RefusedDocumentError)) throw error;
  throw new HistoryInconsistentError(
    `The raw state of serial ${error.document.serial} is none that Kilolock could take back: at ${error.path}, ${error.reason}. An archive with it could not be restored; mend the version in Kilolock's database first.`,
    { cause: error },
  );
}

/** Puts an export on record: the digests it found, the event, and the operation's success, all or none. */
async function recordExport(
  { retentionSeconds }: ArchiveServices,
  request: CallerRequest,
  attempt: Attempt,
  { state, versions, tags, written, recipients }: ExportedState,
  retention: Retention,
): Promise<void> {
  const { database, namespace, principal } = request.caller;
  const { sha256, sizeBytes, historyDigest, rawBytes } = written;
  const success: Success = {
    stateId: state.id,
    archive: {
      sha256,
      sizeBytes,
      historyDigest,
      fileName: `${fileNameOf(state)}${recipients.length > 0 ? SEALED_FILE_EXTENSION : ''}`,
      objectKey: archiveKeyOf(attempt.id, attempt.attempt),
    },
    report: null,
    versions: versions.length,
    rawBytes,
    kept: { retentionSeconds, ...retention },
    replacedOperationId: null,
  };
  await inPhase('export.record', async () => {
    await stateUnlocked(database.for('record'), state.id);
    await inTransaction(database, 'record', async ({ db }) => {
      await recordDigests(db, digestRows(versions, written));
      await insertStateEvent(db, {
        tenantId: namespace.tenantId,
        kind: 'state_export',
        stateId: state.id,
        versionId: state.currentVersionId,
        actor: principal.actor,
        payload: {
          outcome: 'succeeded',
          archive_format: ARCHIVE_FORMAT,
          archive_digest: sha256,
          archive_id: attempt.id,
          history_digest: historyDigest,
          versions: versions.length,
          tags: tags.length,
          current_serial: String(state.currentSerial),
          label: state.label,
          ...(retention.retainUntil !== null && { retain_until: retention.retainUntil }),
          ...(retention.legalHold && { legal_hold: 'true' }),
          ...(recipients.length > 0 && { recipients: recipients.join(' ') }),
          ...auditDetails(request),
        },
      });
      await markSucceeded(db, attempt, success);
    });
  });
  noteMoved('export', success);
}

function digestRows(versions: readonly ArchivedVersion[], { versionDigests }: WrittenArchive) {
  const ids = new Map(versions.map(({ serial, id }) => [serial, id]));
  return versionDigests.map(({ serial, ...digest }) => ({
    versionId: present(ids.get(serial), 'the archive holds the versions it was given'),
    ...digest,
  }));
}

// With the serial and the extension behind it a name stays below the 255 bytes that file systems take.
const MAX_STEM_BYTES = 200;

/** A file name that any system takes, made of the label and the serial the archive ends at. */
function fileNameOf({ label, currentSerial }: ArchivedState): string {
  const plain = label.normalize('NFC').replace(/[^\p{L}\p{N}._-]+/gu, '-');
  const stem = trimEnd(plain.replace(/^[.-]+/, ''), '.-');
  // Takes whole characters only.
  const { read } = new TextEncoder().encodeInto(stem, new Uint8Array(MAX_STEM_BYTES));
  return `${stem.slice(0, read) || 'state'}-${currentSerial}${ARCHIVE_FILE_EXTENSION}`;
}
