import type { ArchivedEvent } from '../archive/model.ts';

/** The keys under which Kilolock's events name a version by id (data model 2.8, 4). */
const VERSION_ID_KEYS = new Set(['replayed_from_version', 'resolved_version_id', 'was_version_id']);

/** Where an event says which import brought it. */
const RESTORED_BY_KEY = 'restored_by_import';

interface ParseContext {
  readonly source?: string;
}

// ECMA proposal JSON.parse source text access, in V8 since 11.4; TypeScript's library does not know it yet.
const losslessJson = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: ParseContext) => unknown): unknown;
  rawJSON(text: string): unknown;
  stringify(value: unknown): string;
};

/**
 * The payload of a restored event: ids of versions are those of the restored versions, and the import that brought the
 * event is named. Numbers keep their spelling. A payload that is no object is kept as it is: Kilolock writes none.
 */
export function rewriteEventPayload(
  event: ArchivedEvent,
  restored: { versionIds: ReadonlyMap<string, string>; importOperationId: string },
): string {
  const payload = losslessJson.parse(event.payload, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? losslessJson.rawJSON(source) : value,
  );
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload) || isRawJson(payload)) {
    return event.payload;
  }
  const entries = Object.entries(payload).map(([key, value]) => [
    key,
    VERSION_ID_KEYS.has(key) && typeof value === 'string' ? (restored.versionIds.get(value) ?? value) : value,
  ]);
  return losslessJson.stringify(
    Object.fromEntries([...entries, [RESTORED_BY_KEY, restored.importOperationId]]),
  );
}

function isRawJson(value: object): boolean {
  return (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON(value);
}
