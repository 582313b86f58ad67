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
  type ResourceRow,
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
  const restore = new Restore(plan, record, replacedDigest);
  try {
    const { signal } = plan.request;
    const run = () => inPhase('import.apply', () => applyAndCommit(database, restore, signal));
    await (plan.archive.longestRawState > LARGE_DOCUMENT_BYTES
      ? inPhase('import.turn', () => largeRestores.run(database, run, signal))
      : run());
  } catch (error) {
    if (isUniqueViolation(error, 'states_tenant_name_key')) {
      throw alreadyExists(plan.placement.destination, 'since a moment ago', { cause: error });
    }
    if (isLockTimeout(error)) {
      const how =
        'is held by another transaction, or another restore of its lineage is at work. Nothing was touched; try again when that is over.';
      throw refusedState('STATE_LOCKED', plan.placement.destination.label, how, 'name', { cause: error });
    }
    if (isUnstorableValue(error)) {
      throw asRefusal(restore.refusalFor(error));
    }
    throw error;
  }
}

async function applyAndCommit(
  database: KilolockDatabase,
  restore: Restore,
  signal: AbortSignal,
): Promise<void> {
  let commit: ReturnType<typeof beginPhase> | undefined;
  try {
    const apply = async (session: DatabaseSession) => {
      await restore.run(session);
      commit = beginPhase('import.commit');
    };
    await inTransaction(database, 'restore', apply, { signal });
  } catch (error) {
    commit?.fail(error);
    throw error;
  } finally {
    commit?.end();
  }
}

const UUID_LENGTH = 36;

/** A version that was inserted, and the digest that its raw state has to have. */
interface InsertedVersion {
  readonly serial: bigint;
  readonly sourceId: string;
  readonly id: string;
  readonly sha256: string;
}

class Restore {
  readonly #plan: RestorePlan;
  readonly #record: RestoreRecord;
  /** The digest of the history that goes, as it was archived; null when none goes. */
  readonly #replacedDigest: string | null;
  readonly #tenantId: string;
  readonly #stateId: string;
  /** The columns that say whose a row is. */
  readonly #owner: readonly CopyColumn<unknown>[];
  readonly #rows: HistoryRowPaths;
  /** The versions inserted so far, in their order. */
  readonly #versions: InsertedVersion[] = [];
  /** The serials at which resource rows begin, and the number of the first such row, in order. */
  readonly #firstResources: { readonly serial: bigint; readonly row: number }[] = [];

  constructor(plan: RestorePlan, record: RestoreRecord, replacedDigest: string | null) {
    this.#plan = plan;
    this.#record = record;
    this.#replacedDigest = replacedDigest;
    this.#tenantId = plan.placement.destination.namespace.tenantId;
    this.#stateId = plan.placement.stateId;
    this.#owner = [
      ['tenant_id', 'uuid', () => this.#tenantId],
      ['state_id', 'uuid', () => this.#stateId],
    ];
    this.#rows = rowPathsOf(plan.request.archivePath);
  }

  /** The refusal of what PostgreSQL could not hold: of the document it came from, if it can be told. */
  refusalFor(error: UnstorableValueError): RefusedDocumentError | ArchiveError {
    const copied = copiedRow(error);
    const serial =
      copied?.table === 'state_versions'
        ? this.#versions[copied.row]?.serial
        : copied?.table === 'resources'
          ? this.#firstResources.findLast(({ row }) => row <= copied.row)?.serial
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

  async run(session: DatabaseSession): Promise<void> {
    const { placement, request, archive } = this.#plan;
    const { state, managedInstances } = archive;
    const currentVersionId = this.#newId(state.currentVersionId);
    await claimPlace(session.db, placement, request, state, currentVersionId, {
      ...this.#record,
      replacedDigest: this.#replacedDigest,
    });
    await refuseOverQuota(session.db, placement.destination.namespace, managedInstances, this.#stateId);
    await compressWithLz4(session.db);
    await inPhase('import.versions', () => this.#insertVersions(session));
    await inPhase('import.resources', () => this.#insertResources(session));
    await inPhase('import.other_rows', async () => {
      await this.#insertTags(session);
      await this.#insertOutputs(session);
      await this.#insertEvents(session);
      await this.#insertVersionMapping(session);
    });
    await inPhase('import.prove', () => this.#prove(session));
    await this.#insertImportEvent(session);
    await this.#record.beforeCommit(session);
  }

  async #insertVersions(session: DatabaseSession): Promise<void> {
    const count = await copyIntoTable(
      session,
      'public.state_versions',
      [
        ['id', 'uuid', ({ id }) => id],
        ...this.#owner,
        ['serial', 'bigint', ({ serial }) => serial],
        ['terraform_version', 'text', ({ terraformVersion }) => terraformVersion],
        ['source', 'text', ({ source }) => source],
        ['created_at', 'timestamptz', ({ createdAt }) => createdAt],
        ['created_by', 'text', ({ createdBy }) => createdBy],
        ['raw_state', 'jsonb', ({ rawState }) => rawState],
      ],
      this.#versionRows(),
    );
    this.#expect('state_versions', count, this.#plan.archive.counts.versions);
  }

  async *#versionRows(): AsyncGenerator<VersionRow & { readonly rawState: RawState }> {
    const { archivePath, limits, signal } = this.#plan.request;
    const file = readArchiveFile(archivePath, { signal });
    let bytes = 0n;
    await using rawStates = readRawStates(file, limits, this.#plan.archive.sha256);
    for await (const version of readVersionRows(this.#rows.versions)) {
      const rawState = (await rawStates.next()).value;
      if (rawState?.serial !== version.serial) {
        throw new RestoreProofError(`The raw state of serial ${version.serial} is missing.`);
      }
      const id = this.#newId(version.id);
      this.#versions.push({ serial: version.serial, sourceId: version.id, id, sha256: version.sha256 });
      yield { ...version, id, rawState };
      bytes += BigInt(rawState.byteLength);
      this.#record.onProgress({ versions: this.#versions.length, bytes });
    }
    // To its end, where it shows whether the file is still the one that was inspected.
    if (!(await rawStates.next()).done) throw new RestoreProofError('The archive has a raw state too many.');
  }

  async #insertTags(session: DatabaseSession): Promise<void> {
    await copyIntoTable(
      session,
      'public.state_version_tags',
      [
        ['id', 'uuid', () => randomUUID()],
        ...this.#owner,
        ['state_version_id', 'uuid', ({ versionId }) => this.#newId(versionId)],
        ['tag', 'text', ({ tag }) => tag],
        ['description', 'text', ({ description }) => description],
        ['actor', 'text', ({ actor }) => actor],
        ['created_at', 'timestamptz', ({ createdAt }) => createdAt],
        ['updated_at', 'timestamptz', ({ updatedAt }) => updatedAt],
      ],
      readTagRows(this.#rows.tags),
    );
  }

  async #insertResources(session: DatabaseSession): Promise<void> {
    const count = await insertResourceRows(
      session,
      { tenantId: this.#tenantId, stateId: this.#stateId },
      this.#resourceRows(),
    );
    this.#expect('resources', count, this.#plan.report.resourceSpans);
  }

  async *#resourceRows(): AsyncGenerator<ResourceRow> {
    let sent = 0;
    for await (const row of readResourceRows(this.#rows.resources)) {
      const serial = row.createSerial;
      if (this.#firstResources.at(-1)?.serial !== serial) this.#firstResources.push({ serial, row: sent });
      sent += 1;
      yield row;
    }
  }

  async #insertOutputs(session: DatabaseSession): Promise<void> {
    const count = await insertOutputRows(
      session,
      this.#tenantId,
      ({ versionId }) => this.#newId(versionId),
      readOutputRows(this.#rows.outputs),
    );
    this.#expect('outputs', count, this.#plan.report.outputs);
  }

  async #insertEvents(session: DatabaseSession): Promise<void> {
    const count = await copyIntoTable(
      session,
      'public.events',
      [
        ['id', 'uuid', ({ id }) => this.#newId(id)],
        ...this.#owner,
        ['kind', 'text', ({ kind }) => kind],
        ['state_version_id', 'uuid', ({ versionId }) => versionId && this.#newId(versionId)],
        ['actor', 'text', ({ actor }) => actor],
        ['payload', 'jsonb', (event) => this.#payloadOf(event)],
        ['created_at', 'timestamptz', ({ createdAt }) => createdAt],
      ],
      readEventRows(this.#rows.events),
    );
    this.#expect('events', count, this.#plan.archive.counts.events);
  }

  #payloadOf({ payload: { text, idsAt } }: EventRow): Buffer {
    for (const at of idsAt) {
      const archived = text.toString('latin1', at, at + UUID_LENGTH);
      text.write(at === idsAt.at(-1) ? this.#record.operationId : this.#newId(archived), at, 'latin1');
    }
    return text;
  }

  async #insertVersionMapping(session: DatabaseSession): Promise<void> {
    await copyIntoTable(
      session,
      'state_archive.version_mapping',
      [
        ['operation_id', 'uuid', () => this.#record.operationId],
        ['serial', 'bigint', ({ serial }) => serial],
        ['source_version_id', 'text', ({ sourceId }) => sourceId],
        ['state_version_id', 'uuid', ({ id }) => id],
      ],
      this.#versions,
    );
  }

  /** Computes the history's digest from the inserted rows, and compares. */
  async #prove({ db }: DatabaseSession): Promise<void> {
    await digestOwnVersions(
      db,
      this.#versions.map(({ id }) => id),
    );
    const history = (await readHistories(db, [this.#stateId])).get(this.#stateId);
    if (history === undefined) throw new RestoreProofError('The restored state cannot be read back.');
    const kept = new Map(this.#versions.map(({ serial, sha256 }) => [serial, sha256]));
    const altered = history.digests.find(({ serial, sha256 }) => kept.get(serial) !== sha256);
    if (altered !== undefined) {
      if (this.#plan.archive.rawStateText === 'jsonb') {
        throw new ArchiveError(
          'ARCHIVE_INCONSISTENT',
          `the archive says that its raw states are the text of PostgreSQL's jsonb, and that of serial ${altered.serial} is not`,
          versionMemberName(altered.serial),
        );
      }
      throw new RestoreProofError(`The raw state of serial ${altered.serial} is not what the archive holds.`);
    }
    if (digestHistory(history).historyDigest !== this.#plan.report.historyDigest) {
      throw new RestoreProofError('The restored rows do not amount to the history in the archive.');
    }
  }

  async #insertImportEvent({ db }: DatabaseSession): Promise<void> {
    const { archive, placement } = this.#plan;
    const { state } = archive;
    const payload = {
      archive_format: ARCHIVE_FORMAT,
      archive_digest: archive.sha256,
      archive_id: this.#record.operationId,
      history_digest: this.#plan.report.historyDigest,
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
      ...this.#record.eventDetails,
    };
    await db
      .insertInto('events')
      .values({
        tenant_id: this.#tenantId,
        kind: 'state_import',
        state_id: this.#stateId,
        state_version_id: this.#newId(state.currentVersionId),
        actor: this.#record.actor,
        payload: JSON.stringify(payload),
      })
      .execute();
  }

  #newId(archivedId: string): string {
    return uuidv5(archivedId, this.#plan.placement.idNamespace);
  }

  #expect(table: string, inserted: number, expected: number): void {
    if (inserted !== expected) {
      throw new RestoreProofError(`${inserted} rows went into ${table}; the archive holds ${expected}.`);
    }
  }
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
