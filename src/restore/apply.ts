import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { v5 as uuidv5 } from 'uuid';
import { readArchiveFile } from '../archive/archive-file.ts';
import { ArchiveError } from '../archive/errors.ts';
import { ARCHIVE_FORMAT, versionMemberName } from '../archive/format.ts';
import type { HistoryProgress, RawState } from '../archive/model.ts';
import { readRawStates } from '../archive/raw-states.ts';
import { beginPhase, inPhase } from '../base/telemetry.ts';
import { Turns } from '../base/turns.ts';
import { type DatabaseSession, inTransaction, type KilolockDatabase } from '../database/connection.ts';
import { type CopyColumn, copyIntoTable } from '../database/copy.ts';
import {
  copiedRow,
  isLockTimeout,
  isUniqueViolation,
  isUnstorableValue,
  refusalText,
  type UnstorableValueError,
} from '../database/errors.ts';
import type { Database } from '../database/types.ts';
import { digestOwnVersions } from '../history/digest-budget.ts';
import { digestHistory, readHistories } from '../history/history.ts';
import { RefusedDocumentError, rawStateOf } from '../inspection/errors.ts';
import { LARGE_DOCUMENT_BYTES } from '../inspection/inspection.ts';
import {
  type EventRow,
  type HistoryRowPaths,
  readEventRows,
  readOutputRows,
  readResourceRows,
  readTagRows,
  readVersionRows,
  type VersionRow,
} from '../inspection/spooled-rows.ts';
import { alreadyExists } from './destination.ts';
import { asRefusal, refusedState } from './errors.ts';
import { type Claimant, claimPlace } from './placement.ts';
import { type RestorePlan, rowPathsOf } from './plan.ts';
import { refuseOverQuota } from './quota.ts';
import { nameForRecord } from './report.ts';
import { insertOutputRows, insertResourceRows } from './state-rows.ts';

/** On whose behalf a history is restored, for the record. The version mapping is kept under the operation's id. */
export interface RestoreRecord extends Claimant {
  /** What the event says beside the facts of the archive, such as the principal and the request. */
  readonly eventDetails: Readonly<Record<string, string | null>>;
  /**
   * Archives the history that will be replaced, before the transaction begins; what it throws ends the restore.
   *
   * @returns the digest of the history in the archive: only just that history is replaced.
   */
  readonly archiveReplaced: (stateId: string) => Promise<string>;
  /** Called with each raw state that was sent to the database. */
  readonly onProgress: (progress: HistoryProgress) => void;
  /** The last work of the transaction: when it fails, nothing was restored. */
  readonly beforeCommit: (session: DatabaseSession) => Promise<void>;
}

/** The rows in the database do not amount to the history in the archive; the transaction was rolled back. */
export class RestoreProofError extends Error {
  override readonly name = 'RestoreProofError';
}

/**
 * Restores with large documents, one at a time in each database. PostgreSQL takes several times a document's length in memory to
 * store it, and a core for as long as the whole restore lasts: four at once are over no sooner than one after the other.
 */
const largeRestores = new Turns<KilolockDatabase>();

/**
 * Restores a planned history in one transaction: either all of it is there afterwards, or no row. One with a large document
 * waits for those before it, before it begins: meanwhile it holds no connection and no lock.
 *
 * The state row goes first, so that a name taken meanwhile is told before any work. Every id is new, derived from the
 * archived one (UUIDv5, RFC 9562) in the namespace of the new state's id, or of this very overwrite, and the mapping is
 * kept. Before the commit the history's digest is computed again from the inserted rows and must be the one the plan foresaw: the archive's own,
 * unless it holds raw states in a spelling that jsonb does not keep.
 *
 * @throws RestoreRefusedError when the destination was taken meanwhile, or PostgreSQL refuses what a raw state holds.
 * @throws ArchiveError ARCHIVE_INCONSISTENT when PostgreSQL refuses another value, or keeps a raw state in another spelling
 *   although the archive says that it does not.
 * @throws RestoreProofError when the rows do not amount to the history.
 */
export async function applyRestore(
  database: KilolockDatabase,
  plan: RestorePlan,
  record: RestoreRecord,
): Promise<void> {
  const { replaced, stateId } = plan.placement;
  const replacedDigest = replaced?.current ? await record.archiveReplaced(stateId) : null;
  const { request, placement, archive } = plan;
  try {
    const run = () => inPhase('import.apply', () => applyAndCommit(database, plan, record, replacedDigest));
    await (archive.longestRawState > LARGE_DOCUMENT_BYTES
      ? inPhase('import.turn', () => largeRestores.run(database, run, request.signal))
      : run());
  } catch (error) {
    if (isUniqueViolation(error, 'states_tenant_name_key')) {
      throw alreadyExists(placement.destination, 'since a moment ago', { cause: error });
    }
    if (isLockTimeout(error)) {
      const how =
        'is held by another transaction, or another restore of its lineage is at work. Nothing was touched; try again when that is over.';
      throw refusedState('STATE_LOCKED', placement.destination.label, how, 'name', { cause: error });
    }
    if (isUnstorableValue(error)) {
      throw asRefusal(await refusalFor(error, rowPathsOf(request.archivePath)));
    }
    throw error;
  }
}

async function applyAndCommit(
  database: KilolockDatabase,
  plan: RestorePlan,
  record: RestoreRecord,
  replacedDigest: string | null,
): Promise<void> {
  let commit: ReturnType<typeof beginPhase> | undefined;
  try {
    const apply = async (session: DatabaseSession) => {
      await insertHistory(session, plan, record, replacedDigest);
      commit = beginPhase('import.commit');
    };
    await inTransaction(database, 'restore', apply, { signal: plan.request.signal });
  } catch (error) {
    commit?.fail(error);
    throw error;
  } finally {
    commit?.end();
  }
}

/** The refusal of what PostgreSQL could not hold: of the document it came from, if it can be told. */
async function refusalFor(
  error: UnstorableValueError,
  rows: HistoryRowPaths,
): Promise<RefusedDocumentError | ArchiveError> {
  const copied = copiedRow(error);
  const serial =
    copied?.table === 'state_versions'
      ? (await nth(readVersionRows(rows.versions), copied.row))?.serial
      : copied?.table === 'resources'
        ? (await nth(readResourceRows(rows.resources), copied.row))?.createSerial
        : undefined;
  if (serial !== undefined) {
    return new RefusedDocumentError(rawStateOf(serial), { path: '$', reason: refusalText(error) });
  }
  return new ArchiveError(
    'ARCHIVE_INCONSISTENT',
    `a value that would go into the table ${copied?.table ?? error.table ?? '(not named)'} cannot be stored: ${refusalText(error)}`,
    null,
    { cause: error },
  );
}

async function nth<Row>(rows: AsyncIterable<Row>, n: number): Promise<Row | undefined> {
  let before = 0;
  for await (const row of rows) if (before++ === n) return row;
  return undefined;
}

/** A version that was inserted, and the digest that its raw state has to have. */
interface InsertedVersion {
  readonly serial: bigint;
  readonly sourceId: string;
  readonly id: string;
  readonly sha256: string;
}

/** @param replacedDigest the digest of the history that goes, as it was archived; null when none goes. */
async function insertHistory(
  session: DatabaseSession,
  plan: RestorePlan,
  record: RestoreRecord,
  replacedDigest: string | null,
): Promise<void> {
  const { request, placement, archive, report } = plan;
  const { destination, stateId, idNamespace } = placement;
  const { tenantId } = destination.namespace;
  const { db } = session;
  const newId = (archivedId: string) => uuidv5(archivedId, idNamespace);
  const currentVersionId = newId(archive.state.currentVersionId);
  await claimPlace(db, placement, request, archive.state, currentVersionId, { ...record, replacedDigest });
  await refuseOverQuota(db, destination.namespace, archive.managedInstances, stateId);
  await compressWithLz4(db);

  const rows = rowPathsOf(request.archivePath);
  const owner: readonly CopyColumn<unknown>[] = [
    ['tenant_id', 'uuid', () => tenantId],
    ['state_id', 'uuid', () => stateId],
  ];
  const versions: InsertedVersion[] = [];
  await inPhase('import.versions', async () => {
    const count = await copyIntoTable(
      session,
      'public.state_versions',
      [
        ['id', 'uuid', ({ id }) => newId(id)],
        ...owner,
        ['serial', 'bigint', ({ serial }) => serial],
        ['terraform_version', 'text', ({ terraformVersion }) => terraformVersion],
        ['source', 'text', ({ source }) => source],
        ['created_at', 'timestamptz', ({ createdAt }) => createdAt],
        ['created_by', 'text', ({ createdBy }) => createdBy],
        ['raw_state', 'jsonb', ({ rawState }) => rawState],
      ],
      versionRows(plan, record, ({ serial, id, sha256 }) => {
        versions.push({ serial, sourceId: id, id: newId(id), sha256 });
      }),
    );
    expectRows('state_versions', count, archive.counts.versions);
  });
  await inPhase('import.resources', async () => {
    const count = await insertResourceRows(session, { tenantId, stateId }, readResourceRows(rows.resources));
    expectRows('resources', count, report.resourceSpans);
  });
  await inPhase('import.other_rows', async () => {
    await copyIntoTable(
      session,
      'public.state_version_tags',
      [
        ['id', 'uuid', () => randomUUID()],
        ...owner,
        ['state_version_id', 'uuid', ({ versionId }) => newId(versionId)],
        ['tag', 'text', ({ tag }) => tag],
        ['description', 'text', ({ description }) => description],
        ['actor', 'text', ({ actor }) => actor],
        ['created_at', 'timestamptz', ({ createdAt }) => createdAt],
        ['updated_at', 'timestamptz', ({ updatedAt }) => updatedAt],
      ],
      readTagRows(rows.tags),
    );
    const outputs = await insertOutputRows(
      session,
      tenantId,
      ({ versionId }) => newId(versionId),
      readOutputRows(rows.outputs),
    );
    expectRows('outputs', outputs, report.outputs);
    const events = await copyIntoTable(
      session,
      'public.events',
      [
        ['id', 'uuid', ({ id }) => newId(id)],
        ...owner,
        ['kind', 'text', ({ kind }) => kind],
        ['state_version_id', 'uuid', ({ versionId }) => versionId && newId(versionId)],
        ['actor', 'text', ({ actor }) => actor],
        ['payload', 'jsonb', ({ payload }) => withNewIds(payload, newId, record.operationId)],
        ['created_at', 'timestamptz', ({ createdAt }) => createdAt],
      ],
      readEventRows(rows.events),
    );
    expectRows('events', events, archive.counts.events);
    await copyIntoTable(
      session,
      'state_archive.version_mapping',
      [
        ['operation_id', 'uuid', () => record.operationId],
        ['serial', 'bigint', ({ serial }) => serial],
        ['source_version_id', 'text', ({ sourceId }) => sourceId],
        ['state_version_id', 'uuid', ({ id }) => id],
      ],
      versions,
    );
  });
  await inPhase('import.prove', () => prove(db, plan, versions));
  await db
    .insertInto('events')
    .values({
      tenant_id: tenantId,
      kind: 'state_import',
      state_id: stateId,
      state_version_id: currentVersionId,
      actor: record.actor,
      payload: JSON.stringify(importPayload(plan, record)),
    })
    .execute();
  await record.beforeCommit(session);
}

/** The versions with their raw states. @param sent called with each before it goes. */
async function* versionRows(
  { request: { archivePath, limits, signal }, archive }: RestorePlan,
  { onProgress }: RestoreRecord,
  sent: (version: VersionRow) => void,
): AsyncGenerator<VersionRow & { readonly rawState: RawState }> {
  const progress = { versions: 0, bytes: 0n };
  await using rawStates = readRawStates(readArchiveFile(archivePath, { signal }), limits, archive.sha256);
  for await (const version of readVersionRows(rowPathsOf(archivePath).versions)) {
    const rawState = (await rawStates.next()).value;
    if (rawState?.serial !== version.serial) {
      throw new RestoreProofError(`The raw state of serial ${version.serial} is missing.`);
    }
    sent(version);
    yield { ...version, rawState };
    progress.versions += 1;
    progress.bytes += BigInt(rawState.byteLength);
    onProgress({ ...progress });
  }
  // To its end, where it shows whether the file is still the one that was inspected.
  if (!(await rawStates.next()).done) throw new RestoreProofError('The archive has a raw state too many.');
}

const UUID_LENGTH = 36;

/** A payload with the ids that its versions and the import have here; see {@link EventRow}. */
function withNewIds(
  { text, idsAt }: EventRow['payload'],
  newId: (archivedId: string) => string,
  operationId: string,
): Buffer {
  for (const at of idsAt) {
    const archived = text.toString('latin1', at, at + UUID_LENGTH);
    text.write(at === idsAt.at(-1) ? operationId : newId(archived), at, 'latin1');
  }
  return text;
}

function expectRows(table: string, inserted: number, expected: number): void {
  if (inserted !== expected) {
    throw new RestoreProofError(`${inserted} rows went into ${table}; the archive holds ${expected}.`);
  }
}

/** Computes the history's digest from the inserted rows, and compares. */
async function prove(
  db: Kysely<Database>,
  { placement: { stateId }, archive, report }: RestorePlan,
  versions: readonly InsertedVersion[],
): Promise<void> {
  await digestOwnVersions(
    db,
    versions.map(({ id }) => id),
  );
  const history = (await readHistories(db, [stateId])).get(stateId);
  if (history === undefined) throw new RestoreProofError('The restored state cannot be read back.');
  const kept = new Map(versions.map(({ serial, sha256 }) => [serial, sha256]));
  const altered = history.digests.find(({ serial, sha256 }) => kept.get(serial) !== sha256);
  if (altered !== undefined) {
    if (archive.rawStateText === 'jsonb') {
      throw new ArchiveError(
        'ARCHIVE_INCONSISTENT',
        `the archive says that its raw states are the text of PostgreSQL's jsonb, and that of serial ${altered.serial} is not`,
        versionMemberName(altered.serial),
      );
    }
    throw new RestoreProofError(`The raw state of serial ${altered.serial} is not what the archive holds.`);
  }
  if (digestHistory(history).historyDigest !== report.historyDigest) {
    throw new RestoreProofError('The restored rows do not amount to the history in the archive.');
  }
}

/** What the event of the import says. */
function importPayload({ archive, placement, report }: RestorePlan, record: RestoreRecord) {
  const { state } = archive;
  return {
    archive_format: ARCHIVE_FORMAT,
    archive_digest: archive.sha256,
    archive_id: record.operationId,
    history_digest: report.historyDigest,
    versions: archive.counts.versions,
    tags: archive.counts.tags,
    current_serial: String(state.currentSerial),
    label: placement.destination.label,
    outcome: placement.outcome,
    ids: 'remapped',
    source: {
      state_id: state.id,
      name: nameForRecord(state.name),
      workspace: nameForRecord(state.workspace),
      environment: nameForRecord(state.environment),
    },
    ...record.eventDetails,
  };
}

/**
 * Has PostgreSQL compress the rows of this transaction with lz4, which takes a third of pglz's time for the same size,
 * where the server knows it and nobody chose otherwise. A choice made for a column comes before it.
 */
async function compressWithLz4(db: Kysely<Database>): Promise<void> {
  await sql`
    select pg_catalog.set_config(name, 'lz4', true) from pg_catalog.pg_settings
    where name = 'default_toast_compression' and source = 'default' and 'lz4' = any(enumvals)
  `.execute(db);
}
