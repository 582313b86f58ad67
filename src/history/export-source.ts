import { sql } from 'kysely';
import type { ArchivedEvent, ArchivedResource, ExportRecord, RawState } from '../archive/model.ts';
import type { ArchiveContents } from '../archive/writer.ts';
import { type DatabaseSession, microsecondTime } from '../database/connection.ts';
import { copyTextRows } from '../database/copy.ts';
import { EVENTS_LEFT_BEHIND, HistoryInconsistentError, readHistories } from './history.ts';
import type { StateRecord } from './states.ts';

/** The state has no version: a shell that a lock created (data model 5), or it was deleted meanwhile. */
export class StateEmptyError extends Error {
  override readonly name = 'StateEmptyError';
}

const ROWS_A_READ = 1000;

/**
 * Everything an archive of `state` holds, read through one session. The session must be a read-only snapshot, and stay
 * open until the archive is written: events, resource spans and raw states are streamed from it as they are consumed.
 *
 * @throws StateEmptyError when there is no version.
 * @throws HistoryInconsistentError when the state's rows contradict each other.
 */
export async function openExportSource(
  session: DatabaseSession,
  state: StateRecord,
  exportRecord: ExportRecord,
): Promise<ArchiveContents> {
  const history = (await readHistories(session.db, [state.id])).get(state.id);
  if (history === undefined || history.current === null) {
    throw new StateEmptyError('The state has no version yet, so there is no history to export.');
  }
  return {
    state: {
      id: state.id,
      label: state.label,
      name: state.name,
      workspace: state.workspace,
      environment: state.environment,
      lineage: history.lineage,
      lifecycleStatus: state.lifecycleStatus,
      createdAt: state.createdAt,
      updatedAt: state.updatedAt,
      currentSerial: history.current.serial,
      currentVersionId: history.current.versionId,
      exclusiveLocks: state.exclusiveLocks,
      coexistenceMode: state.coexistenceMode,
    },
    versions: history.versions,
    tags: history.tags,
    events: readEvents(session, state.id),
    resources: readSpans(session, state.id),
    exportRecord,
    rawStates: readRawStates(session, state.id),
  };
}

/** Events that travel, oldest first. */
async function* readEvents({ db }: DatabaseSession, stateId: string): AsyncGenerator<ArchivedEvent> {
  const rows = keysetPages((after: { createdAt: string; id: string } | null) =>
    db
      .selectFrom('events')
      .leftJoin('state_versions as version', 'version.id', 'events.state_version_id')
      .where('events.state_id', '=', stateId)
      .where('events.kind', 'not in', EVENTS_LEFT_BEHIND)
      .where(
        after === null
          ? sql<boolean>`true`
          : sql<boolean>`(events.created_at, events.id) > (${after.createdAt}::timestamptz, ${after.id}::uuid)`,
      )
      .orderBy('events.created_at')
      .orderBy('events.id')
      .limit(ROWS_A_READ)
      .select([
        'events.id',
        'events.kind',
        'events.state_version_id as versionId',
        'version.state_id as versionStateId',
        'version.serial',
        'events.actor',
        'events.payload',
        microsecondTime('events.created_at').as('createdAt'),
      ])
      .execute(),
  );
  for await (const { id, kind, versionId, versionStateId, serial, actor, payload, createdAt } of rows) {
    if (versionId !== null && versionStateId !== stateId) {
      throw new HistoryInconsistentError(`Event ${id} points at a version of another state.`);
    }
    yield { id, kind, serial: serial === null ? null : BigInt(serial), actor, payload, createdAt };
  }
}

/** Resource spans by creating serial, then by address in Unicode code point order. */
async function* readSpans({ db }: DatabaseSession, stateId: string): AsyncGenerator<ArchivedResource> {
  const rows = keysetPages((after: { createSerial: string; address: string } | null) =>
    db
      .selectFrom('resources')
      .where('state_id', '=', stateId)
      .where(
        after === null
          ? sql<boolean>`true`
          : sql<boolean>`(create_serial, address collate "C") > (${after.createSerial}::bigint, ${after.address})`,
      )
      .orderBy('create_serial')
      .orderBy(sql`address collate "C"`)
      .limit(ROWS_A_READ)
      .select([
        'address',
        'create_serial as createSerial',
        'delete_serial as deleteSerial',
        'attributes_hash as attributesHash',
        'schema_version as schemaVersion',
        microsecondTime('created_at').as('createdAt'),
      ])
      .execute(),
  );
  for await (const { createSerial, deleteSerial, ...row } of rows) {
    yield {
      ...row,
      createSerial: BigInt(createSerial),
      deleteSerial: deleteSerial === null ? null : BigInt(deleteSerial),
    };
  }
}

/** Reads a list a thousand rows at a time, each page from the last row of the one before; one snapshot makes it one list. */
async function* keysetPages<Cursor, Row extends Cursor>(
  readAfter: (last: Cursor | null) => Promise<Row[]>,
): AsyncGenerator<Row> {
  let last: Row | null = null;
  for (;;) {
    const rows: Row[] = await readAfter(last);
    yield* rows;
    if (rows.length < ROWS_A_READ) return;
    last = rows.at(-1) ?? null;
  }
}

async function* readRawStates(session: DatabaseSession, stateId: string): AsyncGenerator<RawState> {
  // COPY takes no parameters; the id is PostgreSQL's own rendering of a uuid.
  const query = `select version.serial::text, version.raw_state::text from state_versions version where version.state_id = ${session.client.escapeLiteral(stateId)} order by version.serial`;
  for await (const { key, byteLength, content } of copyTextRows(session, query)) {
    yield { serial: BigInt(key), byteLength, content };
  }
}
