import { membersOf, RESTORED_BY_KEY } from '../archive/event-payload.ts';

/** The keys under which Kilolock's events name a version by id (data model 2.8, 4). */
const VERSION_ID_KEYS = new Set(['replayed_from_version', 'resolved_version_id', 'was_version_id']);

/** What a payload that is no object is put under: Kilolock writes none, and a restored event says that it is one. */
const PAYLOAD_KEY = 'payload';

/** Stands where the id of the import goes that brings the event. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

/** The payload of an event that is to be restored: ids in it go by others, of the same length. */
export interface RestorablePayload {
  readonly text: Buffer;
  /** Where ids of versions stand, as bytes, and last the one of the import. */
  readonly idsAt: readonly number[];
}

/**
 * Prepares the payload of an event: ids of versions are to be those of the restored versions, and the import that brings the
 * event is to be named. All else keeps its spelling.
 *
 * @param isVersionId whether this is the id of a version that is restored along.
 */
export function restorablePayload(payload: string, isVersionId: (id: string) => boolean): RestorablePayload {
  const pieces: Buffer[] = [];
  const idsAt: number[] = [];
  let length = 0;
  const add = (text: string) => {
    const piece = Buffer.from(text);
    pieces.push(piece);
    length += piece.length;
  };
  const member = (key: string, value: string, isId = false) => {
    add(`${length === 0 ? '{' : ', '}${JSON.stringify(key)}: `);
    if (isId) idsAt.push(length + 1);
    add(value);
  };
  if (!payload.trimStart().startsWith('{')) member(PAYLOAD_KEY, payload);
  else {
    for (const { key, value } of membersOf(payload)) {
      if (key === RESTORED_BY_KEY) continue;
      const id = VERSION_ID_KEYS.has(key) && value.startsWith('"') ? String(JSON.parse(value)) : null;
      if (id !== null && isVersionId(id)) member(key, `"${id}"`, true);
      else member(key, value);
    }
  }
  member(RESTORED_BY_KEY, `"${NO_ID}"`, true);
  add('}');
  return { text: Buffer.concat(pieces), idsAt };
}
