import { type JsonMember, membersOf, RESTORED_BY_KEY } from '../archive/event-payload.ts';
import type { ArchivedEvent } from '../archive/model.ts';

/** The keys under which Kilolock's events name a version by id (data model 2.8, 4). */
const VERSION_ID_KEYS = new Set(['replayed_from_version', 'resolved_version_id', 'was_version_id']);

/** What a payload that is no object is put under: Kilolock writes none, and a restored event says that it is one. */
const PAYLOAD_KEY = 'payload';

/**
 * The payload of a restored event: ids of versions are those of the restored versions, and the import that brought the
 * event is named. All else keeps its spelling.
 */
export function rewriteEventPayload(
  { payload }: ArchivedEvent,
  restored: { versionIds: ReadonlyMap<string, string>; importOperationId: string },
): string {
  const mark = member(RESTORED_BY_KEY, JSON.stringify(restored.importOperationId));
  if (!payload.trimStart().startsWith('{')) return `{${member(PAYLOAD_KEY, payload)}, ${mark}}`;
  const kept = membersOf(payload).filter(({ key }) => key !== RESTORED_BY_KEY);
  const rewritten = kept.map((one) => member(one.key, restoredValue(payload, one, restored.versionIds)));
  return `{${[...rewritten, mark].join(', ')}}`;
}

function restoredValue(
  payload: string,
  { key, valueStart, valueEnd }: JsonMember,
  versionIds: ReadonlyMap<string, string>,
): string {
  const value = payload.slice(valueStart, valueEnd);
  if (!VERSION_ID_KEYS.has(key) || !value.startsWith('"')) return value;
  const id = versionIds.get(String(JSON.parse(value)));
  return id === undefined ? value : JSON.stringify(id);
}

function member(key: string, value: string): string {
  return `${JSON.stringify(key)}: ${value}`;
}
