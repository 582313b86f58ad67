import { randomUUID } from 'node:crypto';
import { ARCHIVE_FILE_EXTENSION, ARCHIVE_FORMAT } from '../archive/format.ts';
import type { ArchivedState, ArchivedVersion } from '../archive/model.ts';
import { type WrittenArchive, writeArchive } from '../archive/writer.ts';
import { present } from '../base/invariant.ts';
import { trimEnd } from '../base/text.ts';
import { utcTimeOf } from '../base/time.ts';
import { inTransaction } from '../database/connection.ts';
import { openExportSource } from '../history/export-source.ts';
import { recordDigests } from '../history/history.ts';
import { findStatesById, findStatesByLabel, may, type StateRecord } from '../history/states.ts';
import type { Destination } from '../restore/destination.ts';
import { objectKeyOf } from './archive-store.ts';
import { insertOperation, markSucceeded } from './operation-records.ts';
import type { JobContext } from './operation-runner.ts';
import { type ArchiveServices, auditDetails, type CallerRequest, TOOL } from './services.ts';
import { admitOperation, type OperationOptions, startOperation } from './start-operation.ts';
import { insertStateEvent } from './state-events.ts';
import { stateNotFound } from './user-error.ts';

/**
 * Starts an export of the state the caller knows by `label`, or finds the one the idempotency key stands for.
 *
 * @returns the operation's id.
 * @throws RequestRefusedError when the state is not visible to the caller, or the options cannot be used.
 */
export async function exportStateArchive(
  services: ArchiveServices,
  request: CallerRequest,
  label: string,
  options: OperationOptions,
): Promise<string> {
  const { db } = request.caller.database;
  if (!may(request.caller, 'state.export')) throw stateNotFound();
  const state = (await findStatesByLabel(db, request.caller, [label])).get(label);
  if (state === undefined) throw stateNotFound();
  const admission = await admitOperation(services, request, 'EXPORT', options, { stateId: state.id });
  if (!admission.isNew) return admission.operationId;
  const id = randomUUID();
  return startOperation(
    services,
    request,
    {
      id,
      kind: 'EXPORT',
      label: state.label,
      stateName: state.name,
      stateId: state.id,
      archiveSha256: null,
      requestId: request.requestId,
      idempotency: admission.idempotency,
    },
    options,
    {
      job: (context) => runExport(services, request, id, state.id, context),
      onEnd: async () => {},
    },
  );
}

/**
 * Exports a history that is about to be replaced, as an operation of its own, and waits for it. The caller holds the state
 * row locked, so that the history does not change meanwhile.
 *
 * @returns the operation's id.
 */
export async function exportReplacedState(
  services: ArchiveServices,
  request: CallerRequest,
  stateId: string,
  { label, name }: Destination,
): Promise<string> {
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
  } as const;
  await insertOperation(database.db, request.caller, operation);
  await services.runner.runWithin(database, operation, (context) =>
    runExport(services, request, operation.id, stateId, context),
  );
  return operation.id;
}

async function runExport(
  services: ArchiveServices,
  request: CallerRequest,
  operationId: string,
  stateId: string,
  { signal, report }: JobContext,
): Promise<void> {
  const { store, retentionSeconds } = services;
  const { database } = request.caller;
  const objectKey = objectKeyOf(operationId);
  try {
    const { state, versions, tags, written } = await inTransaction(
      database,
      'read-only-snapshot',
      async (session) => {
        const record = (await findStatesById(session.db, request.caller, [stateId])).get(stateId);
        if (record === undefined) throw stateNotFound();
        const contents = await openExportSource(session, record, exportRecordOf(request, record));
        report({ versionsTotal: BigInt(contents.versions.length) });
        const written = await writeArchive(contents, store.pathOf(objectKey), {
          signal,
          onProgress: ({ versions, bytes }) => report({ versionsDone: BigInt(versions), bytesDone: bytes }),
        });
        return { ...contents, written };
      },
    );
    await inTransaction(database, 'read-write', async ({ db }) => {
      await recordDigests(db, digestRows(versions, written));
      await insertStateEvent(db, {
        tenantId: request.caller.namespace.tenantId,
        kind: 'state_export',
        stateId,
        versionId: state.currentVersionId,
        actor: request.caller.principal.actor,
        payload: {
          outcome: 'succeeded',
          archive_format: ARCHIVE_FORMAT,
          archive_digest: written.sha256,
          archive_id: operationId,
          history_digest: written.historyDigest,
          versions: versions.length,
          tags: tags.length,
          current_serial: String(state.currentSerial),
          label: state.label,
          ...auditDetails(request),
        },
      });
      await markSucceeded(db, operationId, {
        stateId,
        archive: {
          sha256: written.sha256,
          sizeBytes: written.sizeBytes,
          historyDigest: written.historyDigest,
          fileName: fileNameOf(state),
          objectKey,
        },
        report: null,
        versions: versions.length,
        rawBytes: written.rawBytes,
        retentionSeconds,
        replacedOperationId: null,
      });
    });
  } catch (error) {
    await store.remove(objectKey);
    throw error;
  }
}

function exportRecordOf({ caller }: CallerRequest, state: StateRecord) {
  return {
    exportedAt: utcTimeOf(new Date()),
    exportedBy: caller.principal.actor,
    source: { workspace: state.workspace, environment: state.environment, stateName: state.name },
    tool: TOOL,
  };
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
