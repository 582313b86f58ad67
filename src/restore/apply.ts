import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { v5 as uuidv5 } from 'uuid';
import { ArchiveError } from '../archive/errors.ts';
import { ARCHIVE_FORMAT, versionMemberName } from '../archive/format.ts';
import type { ArchivedEvent, ArchivedVersion } from '../archive/model.ts';
import { type DatabaseSession, inTransaction, type KilolockDatabase } from '../database/connection.ts';
import { type CopyValue, copyIntoTable } from '../database/copy.ts';
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
import { type ResourceRow, readOutputRows, readResourceRows } from '../inspection/spooled-rows.ts';
import { alreadyExists } from './destination.ts';
import { asRefusal, RestoreRefusedError } from './errors.ts';
import { rewriteEventPayload } from './event-payload.ts';
import { insertOutputRows, type VersionOutput } from './outputs.ts';
import type { ReplacedState } from './overwrite.ts';
import { type Claimant, claimPlace } from './placement.ts';
import type { RestorePlan } from './plan.ts';
import { refuseOverQuota } from './quota.ts';
import { nameForRecord } from './report.ts';
import { insertResourceRows } from './resource-rows.ts';
import { archiveMembers, rowPathsOf } from './restore-request.ts';

/** On whose behalf a history is restored, for the record. The version mapping is kept under the operation's id. */
export interface RestoreRecord extends Claimant {
  /** What the event says beside the facts of the archive, such as the principal and the request. */
  readonly eventDetails: Readonly<Record<string, string | null>>;
  /**
   * Archives the history that will be replaced, before the transaction begins; what it throws ends the restore.
   *
   * @returns the digest of the history in the archive: only just that history is replaced.
   */
  readonly archiveReplaced: (replaced: ReplacedState) => Promise<string>;
  /** Called with each raw state that was sent to the database. */
  readonly onProgress: (progress: { versions: number; bytes: bigint }) => void;
  /** The last work of the transaction: when it fails, nothing was restored. */
  readonly beforeCommit: (session: DatabaseSession) => Promise<void>;
}

/** The rows in the database do not amount to the history in the archive; the transaction was rolled back. */
export class RestoreProofError extends Error {
  override readonly name = 'RestoreProofError';
}

/**
 * Restores a planned history in one transaction: either all of it is there afterwards, or no row.
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
  const { replaced } = plan.placement;
  const replacedDigest = replaced?.current ? await record.archiveReplaced(replaced) : null;
  const restore = new Restore(plan, record, replacedDigest);
  try {
    const { signal } = plan.request;
    await inTransaction(database, 'restore', (session) => restore.run(session), { signal });
  } catch (error) {
    if (isUniqueViolation(error, 'states_tenant_name_key')) {
      throw alreadyExists(plan.placement.destination, 'since a moment ago', error);
    }
    if (isLockTimeout(error)) {
      throw new RestoreRefusedError(
        'STATE_LOCKED',
        `The state ${JSON.stringify(plan.placement.destination.label)} is held by another transaction, or another restore of its lineage is at work. Nothing was touched; try again when that is over.`,
        { inputPath: ['name'], cause: error },
      );
    }
    if (isUnstorableValue(error)) {
      throw asRefusal(restore.refusalFor(error));
    }
    throw error;
  }
}

class Restore {
  readonly #plan: RestorePlan;
  readonly #record: RestoreRecord;
  /** The digest of the history that goes, as it was archived; null when none goes. */
  readonly #replacedDigest: string | null;
  readonly #tenantId: string;
  readonly #stateId: string;
  /** New version ids by serial. */
  readonly #versionIds: ReadonlyMap<bigint, string>;
  /** New version ids by archived id. */
  readonly #versionIdsBySource: ReadonlyMap<string, string>;
  /** The serials at which resource rows begin, and the number of the first such row, in order. */
  readonly #firstResources: { readonly serial: bigint; readonly row: number }[] = [];

  constructor(plan: RestorePlan, record: RestoreRecord, replacedDigest: string | null) {
    this.#plan = plan;
    this.#record = record;
    this.#replacedDigest = replacedDigest;
    this.#tenantId = plan.placement.destination.namespace.tenantId;
    this.#stateId = plan.placement.stateId;
    const pairs = plan.archive.manifest.versions.map(
      (version) => [version, this.#newId(version.id)] as const,
    );
    this.#versionIds = new Map(pairs.map(([version, id]) => [version.serial, id]));
    this.#versionIdsBySource = new Map(pairs.map(([version, id]) => [version.id, id]));
  }

  /** The refusal of what PostgreSQL could not hold: of the document it came from, if it can be told. */
  refusalFor(error: UnstorableValueError): RefusedDocumentError | ArchiveError {
    const copied = copiedRow(error);
    const serial =
      copied?.table === 'state_versions'
        ? this.#plan.archive.manifest.versions[copied.row]?.serial
        : copied?.table === 'resources'
          ? this.#firstResources.findLast(({ row }) => row <= copied.row)?.serial
          : undefined;
    if (serial !== undefined) {
      return new RefusedDocumentError(rawStateOf(serial), { path: '$', reason: refusalText(error) });
    }
    return new ArchiveError(
      'ARCHIVE_INCONSISTENT',
      `a value that would go into the table ${copied?.table ?? error.table ?? '(not named)'} cannot be stored: ${refusalText(error)}`,
      { cause: error },
    );
  }

  async run(session: DatabaseSession): Promise<void> {
    const { placement, request, archive, managedInstances } = this.#plan;
    const { state } = archive.manifest;
    const currentVersionId = this.#versionIdOf(state.currentSerial);
    await claimPlace(session.db, placement, request, state, currentVersionId, {
      ...this.#record,
      replacedDigest: this.#replacedDigest,
    });
    await refuseOverQuota(session.db, placement.destination.namespace, managedInstances, this.#stateId);
    await compressWithLz4(session.db);
    await this.#insertVersions(session);
    await this.#insertTags(session);
    await this.#insertResources(session);
    await this.#insertOutputs(session);
    await this.#insertEvents(session);
    await this.#insertVersionMapping(session);
    await this.#prove(session);
    await this.#insertImportEvent(session);
    await this.#record.beforeCommit(session);
  }

  async #insertVersions(session: DatabaseSession): Promise<void> {
    const count = await copyIntoTable(
      session,
      'public.state_versions',
      [
        ['id', 'uuid'],
        ['tenant_id', 'uuid'],
        ['state_id', 'uuid'],
        ['serial', 'bigint'],
        ['terraform_version', 'text'],
        ['source', 'text'],
        ['created_at', 'timestamptz'],
        ['created_by', 'text'],
        ['raw_state', 'jsonb'],
      ],
      this.#versionRows(),
    );
    this.#expect('state_versions', count, this.#plan.archive.counts.versions);
  }

  async *#versionRows(): AsyncGenerator<CopyValue[]> {
    let versions = 0;
    let bytes = 0n;
    for await (const { version, byteLength, content } of this.#archivedVersions()) {
      yield [
        this.#versionIdOf(version.serial),
        this.#tenantId,
        this.#stateId,
        version.serial,
        version.terraformVersion,
        version.source,
        version.createdAt,
        version.createdBy,
        { byteLength, content },
      ];
      versions += 1;
      bytes += BigInt(byteLength);
      this.#record.onProgress({ versions, bytes });
    }
  }

  async #insertTags(session: DatabaseSession): Promise<void> {
    await copyIntoTable(
      session,
      'public.state_version_tags',
      [
        ['id', 'uuid'],
        ['tenant_id', 'uuid'],
        ['state_id', 'uuid'],
        ['state_version_id', 'uuid'],
        ['tag', 'text'],
        ['description', 'text'],
        ['actor', 'text'],
        ['created_at', 'timestamptz'],
        ['updated_at', 'timestamptz'],
      ],
      this.#plan.archive.tags.map((tag) => [
        randomUUID(),
        this.#tenantId,
        this.#stateId,
        this.#versionIdOf(tag.serial),
        tag.tag,
        tag.description,
        tag.actor,
        tag.createdAt,
        tag.updatedAt,
      ]),
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
    for await (const row of readResourceRows(rowPathsOf(this.#plan.request).resources)) {
      const serial = row.createSerial;
      if (this.#firstResources.at(-1)?.serial !== serial) this.#firstResources.push({ serial, row: sent });
      sent += 1;
      yield row;
    }
  }

  async #insertOutputs(session: DatabaseSession): Promise<void> {
    const count = await insertOutputRows(session, this.#tenantId, this.#outputRows());
    this.#expect('outputs', count, this.#plan.report.outputs);
  }

  async *#outputRows(): AsyncGenerator<VersionOutput> {
    for await (const { serial, ...output } of readOutputRows(rowPathsOf(this.#plan.request).outputs)) {
      yield { ...output, versionId: this.#versionIdOf(serial) };
    }
  }

  async #insertEvents(session: DatabaseSession): Promise<void> {
    const count = await copyIntoTable(
      session,
      'public.events',
      [
        ['id', 'uuid'],
        ['tenant_id', 'uuid'],
        ['kind', 'text'],
        ['state_id', 'uuid'],
        ['state_version_id', 'uuid'],
        ['actor', 'text'],
        ['payload', 'jsonb'],
        ['created_at', 'timestamptz'],
      ],
      this.#eventRows(),
    );
    this.#expect('events', count, this.#plan.archive.counts.events);
  }

  async *#eventRows(): AsyncGenerator<CopyValue[]> {
    for await (const event of this.#archivedEvents()) {
      yield [
        this.#newId(event.id),
        this.#tenantId,
        event.kind,
        this.#stateId,
        event.serial === null ? null : this.#versionIdOf(event.serial),
        event.actor,
        rewriteEventPayload(event, {
          versionIds: this.#versionIdsBySource,
          importOperationId: this.#record.operationId,
        }),
        event.createdAt,
      ];
    }
  }

  async #insertVersionMapping(session: DatabaseSession): Promise<void> {
    await copyIntoTable(
      session,
      'state_archive.version_mapping',
      [
        ['operation_id', 'uuid'],
        ['serial', 'bigint'],
        ['source_version_id', 'text'],
        ['state_version_id', 'uuid'],
      ],
      this.#plan.archive.manifest.versions.map((version) => [
        this.#record.operationId,
        version.serial,
        version.id,
        this.#versionIdOf(version.serial),
      ]),
    );
  }

  /** Computes the history's digest from the inserted rows, and compares. */
  async #prove({ db }: DatabaseSession): Promise<void> {
    const { keptDigests, report } = this.#plan;
    await digestOwnVersions(db, [...this.#versionIds.values()]);
    const history = (await readHistories(db, [this.#stateId])).get(this.#stateId);
    if (history === undefined) throw new RestoreProofError('The restored state cannot be read back.');
    const altered = history.digests.find(({ serial, sha256 }) => keptDigests.get(serial) !== sha256);
    if (altered !== undefined) {
      if (this.#plan.archive.manifest.rawStateText === 'jsonb') {
        throw new ArchiveError(
          'ARCHIVE_INCONSISTENT',
          `the archive says that its raw states are the text of PostgreSQL's jsonb, and that of serial ${altered.serial} is not`,
          { member: versionMemberName(altered.serial) },
        );
      }
      throw new RestoreProofError(`The raw state of serial ${altered.serial} is not what the archive holds.`);
    }
    if (digestHistory(history).historyDigest !== report.historyDigest) {
      throw new RestoreProofError('The restored rows do not amount to the history in the archive.');
    }
  }

  async #insertImportEvent({ db }: DatabaseSession): Promise<void> {
    const { archive, placement } = this.#plan;
    const { state } = archive.manifest;
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
        state_version_id: this.#versionIdOf(state.currentSerial),
        actor: this.#record.actor,
        payload: JSON.stringify(payload),
      })
      .execute();
  }

  async *#archivedVersions(): AsyncGenerator<{
    version: ArchivedVersion;
    byteLength: number;
    content: AsyncIterable<Uint8Array>;
  }> {
    for await (const member of archiveMembers(this.#plan.request)) {
      if (member.kind === 'version') yield member;
    }
  }

  async *#archivedEvents(): AsyncGenerator<ArchivedEvent> {
    if (this.#plan.archive.counts.events === 0) return;
    for await (const member of archiveMembers(this.#plan.request)) {
      if (member.kind === 'event') yield member.event;
      if (member.kind === 'version') return;
    }
  }

  #newId(archivedId: string): string {
    return uuidv5(archivedId, this.#plan.placement.idNamespace);
  }

  #versionIdOf(serial: bigint): string {
    const id = this.#versionIds.get(serial);
    if (id === undefined) throw new RestoreProofError(`The archive has no version of serial ${serial}.`);
    return id;
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
