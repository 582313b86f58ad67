import { text } from 'node:stream/consumers';
import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { quoted } from '../archive/errors.ts';
import { EVENT_KINDS_LEFT_BEHIND } from '../archive/event-kinds.ts';
import { MAX_PAYLOAD_BYTES } from '../archive/event-payload.ts';
import { MAX_TEXT_BYTES } from '../archive/format.ts';
import { eventFault, resourceFault, stateFault } from '../archive/metadata.ts';
import type { ArchivedEvent, ArchivedResource, ExportRecord, RawState } from '../archive/model.ts';
import type { ArchiveContents } from '../archive/writer.ts';
import { type DatabaseSession, microsecondTime } from '../database/connection.ts';
import { copyTextRows } from '../database/copy.ts';
import { isUnstorableValue } from '../database/errors.ts';
import { readHistories } from './history.ts';
import { checkRawStateLength, HistoryInconsistentError, unarchivable } from './inconsistent.ts';
import type { StateRecord } from './states.ts';

/** A payload that takes a millisecond or two to look through. */
const SHORT_PAYLOAD_BYTES = 64 * 1024;

/** The state has no version: a shell that a lock created (data model 5), or it was deleted meanwhile. */
export class StateEmptyError extends Error {
  override readonly name = 'StateEmptyError';
  readonly code = 'STATE_EMPTY';
}

/**
 * Everything an archive of `state` holds, read through one session. The session must be a read-only snapshot, and stay
 * open until the archive is written: events, resource spans and raw states are streamed from it as they are consumed.
 *
 * @throws StateEmptyError when there is no version.
 * @throws HistoryInconsistentError when the state's rows contradict each other or hold what no archive can, at once or while
 *   they are streamed.
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
  const archivedState = {
    ...state,
    lineage: history.lineage,
    currentSerial: history.current.serial,
    currentVersionId: history.current.versionId,
  };
  const fault = stateFault(archivedState);
  if (fault !== null) throw unarchivable('The state', fault);
  return {
    state: archivedState,
    versions: history.versions,
    tags: history.tags,
    events: readEvents(session, state.id),
    resources: readSpans(session, state.id),
    exportRecord,
    rawStateText: 'jsonb',
    longestRawState: await longestRawState(session, state.id),
    rawStates: readRawStates(session, state.id),
  };
}

/**
 * Has the planner take rows in the order of an index that there is, or sort them as it likes. What a sort carries along (a
 * payload, a raw state that is small enough to stand in its row) is written to the server's disk where there is much of it.
 * A sort that no index spares has to be allowed: forbidden, it would only seem so dear that it is compiled first.
 */
async function letSort(session: DatabaseSession, allowed: boolean): Promise<void> {
  await sql`select set_config('enable_sort', ${allowed ? 'on' : 'off'}, true)`.execute(session.db);
}

/**
 * Events that travel, oldest first. The payloads stream out of one statement, and the length of each is known before its
 * first byte: none is held that an archive could not hold.
 */
async function* readEvents(session: DatabaseSession, stateId: string): AsyncGenerator<ArchivedEvent> {
  // The texts are printed above the sort, which would write them all to disk otherwise.
  const query = sql`
    select json_build_array(event.id, ${bounded('event.kind')}, event.state_version_id, event.serial::text, ${bounded('event.actor')},
      ${microsecondTime('event.created_at')})::text, event.payload::text
    from (
      select event.id, event.kind, event.state_version_id, version.serial, event.actor, event.created_at, event.payload
      from public.events event
      left join public.state_versions version on version.id = event.state_version_id and version.state_id = event.state_id
      where event.state_id = ${sql.lit(stateId)} and event.kind !~ ${sql.lit(EVENT_KINDS_LEFT_BEHIND)}
      order by event.created_at, event.id
      offset 0
    ) event`.compile(session.db).sql;
  await letSort(session, false);
  let last: string | null = null;
  try {
    for await (const { key, byteLength, content } of copyTextRows(session, query)) {
      const [id, kind, versionId, serial, actor, createdAt] = eventRow.parse(JSON.parse(key));
      if (versionId !== null && serial === null) {
        throw new HistoryInconsistentError(`Event ${id} points at a version of another state.`);
      }
      if (byteLength > MAX_PAYLOAD_BYTES) {
        throw unarchivable(
          `Event ${id}`,
          `its payload has ${byteLength} bytes, more than ${MAX_PAYLOAD_BYTES}`,
        );
      }
      const event = {
        id,
        kind,
        serial: serial === null ? null : BigInt(serial),
        actor,
        payload: await text(content),
        createdAt,
      };
      // To look through a long one takes long: who verifies the archive does it, in a thread of its own.
      const fault = eventFault(byteLength > SHORT_PAYLOAD_BYTES ? { ...event, payload: '{}' } : event);
      if (fault !== null) throw unarchivable(`Event ${id}`, fault);
      yield event;
      last = id;
    }
  } catch (error) {
    // Rows before it may not have come through.
    if (!isUnstorableValue(error)) throw error;
    const which = `One of the events${last === null ? '' : ` behind event ${last}`}`;
    throw tooLongToPrint(which, 'its payload');
  }
}

const eventRow = z.tuple([
  z.string(),
  z.string(),
  z.string().nullable(),
  z.string().nullable(),
  z.string().nullable(),
  z.string(),
]);

/** Resource spans by creating serial, then by address in Unicode code point order: sorted once, out of one statement. */
async function* readSpans(session: DatabaseSession, stateId: string): AsyncGenerator<ArchivedResource> {
  const query = sql`
    select json_build_array(${bounded('address')}, create_serial::text, delete_serial::text, left(attributes_hash, 65), schema_version,
      ${microsecondTime('created_at')})::text, ''
    from (
      select address, create_serial, delete_serial, attributes_hash, schema_version, created_at
      from public.resources
      where state_id = ${sql.lit(stateId)}
      order by create_serial, address collate "C"
      offset 0
    ) span`.compile(session.db).sql;
  await letSort(session, true);
  for await (const { key } of copyTextRows(session, query)) {
    const [address, createSerial, deleteSerial, attributesHash, schemaVersion, createdAt] = spanRow.parse(
      JSON.parse(key),
    );
    const span = {
      address,
      createSerial: BigInt(createSerial),
      deleteSerial: deleteSerial === null ? null : BigInt(deleteSerial),
      attributesHash,
      schemaVersion,
      createdAt,
    };
    const fault = resourceFault(span);
    if (fault !== null) {
      throw unarchivable(`The resource row of ${quoted(address)} from serial ${createSerial}`, fault);
    }
    yield span;
  }
}

const spanRow = z.tuple([z.string(), z.string(), z.string().nullable(), z.string(), z.number(), z.string()]);

/** A text column, cut where it is longer than any archive holds: what is left is still too long. */
function bounded(column: string): RawBuilder<string> {
  return sql<string>`left(${sql.ref(column)}, ${sql.lit(MAX_TEXT_BYTES + 1)})`;
}

/**
 * Length in bytes of the text of the raw state that takes the most room in the table: most likely the longest. What room each
 * takes is known without reading it; the length of the text is on record, or it is printed once.
 */
async function longestRawState({ db }: DatabaseSession, stateId: string): Promise<number> {
  const { rows } = await sql<{ id: string; serial: string; byteLength: string | null }>`
    select version.id, version.serial, digest.byte_length as "byteLength"
    from public.state_versions version
    left join state_archive.version_digest digest on digest.state_version_id = version.id
    where version.state_id = ${stateId}
    order by pg_column_size(version.raw_state) desc, version.serial
    limit 1`.execute(db);
  const [largest] = rows;
  if (largest === undefined) return 0;
  if (largest.byteLength !== null) return Number(largest.byteLength);
  try {
    const printed = await sql<{ byteLength: number }>`
      select octet_length(raw_state::text) as "byteLength" from public.state_versions where id = ${largest.id}`.execute(
      db,
    );
    return printed.rows[0]?.byteLength ?? 0;
  } catch (error) {
    if (!isUnstorableValue(error)) throw error;
    throw tooLongToPrint(`The version of serial ${largest.serial}`, 'its raw state');
  }
}

/** PostgreSQL prints no text of a gigabyte or more. */
function tooLongToPrint(which: string, what: string): HistoryInconsistentError {
  return unarchivable(which, `${what} is too long for PostgreSQL to print`);
}

/** The raw states in serial order. */
async function* readRawStates(session: DatabaseSession, stateId: string): AsyncGenerator<RawState> {
  // Printed below an ORDER BY the texts would be what is sorted: the whole history, on the server's disk.
  const query = sql`
    select version.serial::text, version.raw_state::text
    from (
      select serial, raw_state
      from public.state_versions
      where state_id = ${sql.lit(stateId)}
      order by serial
      offset 0
    ) version`.compile(session.db).sql;
  await letSort(session, false);
  let last: bigint | null = null;
  try {
    for await (const { key, byteLength, content } of copyTextRows(session, query)) {
      const serial = BigInt(key);
      checkRawStateLength(serial, byteLength);
      yield { serial, byteLength, content };
      last = serial;
    }
  } catch (error) {
    if (!isUnstorableValue(error)) throw error;
    const which = `One of the versions${last === null ? '' : ` behind serial ${last}`}`;
    throw tooLongToPrint(which, 'its raw state');
  }
}
