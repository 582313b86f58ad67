import { type JsonMember, membersOf, RESTORED_BY_KEY } from '../archive/event-payload.ts';

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
  const pieces = new Pieces();
  if (!payload.trimStart().startsWith('{')) pieces.member(PAYLOAD_KEY, payload);
  else {
    for (const one of membersOf(payload)) {
      if (one.key === RESTORED_BY_KEY) continue;
      const id = idIn(one);
      if (id !== null && isVersionId(id)) pieces.id(one.key, id);
      else pieces.member(one.key, one.value);
    }
  }
  pieces.id(RESTORED_BY_KEY, NO_ID);
  return pieces.end();
}

function idIn({ key, value }: JsonMember): string | null {
  return VERSION_ID_KEYS.has(key) && value.startsWith('"') ? String(JSON.parse(value)) : null;
}

/** Puts the text of an object together. */
class Pieces {
  readonly #pieces: Buffer[] = [];
  readonly #idsAt: number[] = [];
  #length = 0;

  member(key: string, value: string): void {
    this.#add(`${this.#length === 0 ? '{' : ', '}${JSON.stringify(key)}: `);
    this.#add(value);
  }

  id(key: string, id: string): void {
    this.member(key, `"${id}"`);
    this.#idsAt.push(this.#length - id.length - 1);
  }

  end(): RestorablePayload {
    this.#add('}');
    return { text: Buffer.concat(this.#pieces), idsAt: this.#idsAt };
  }

  #add(text: string): void {
    const piece = Buffer.from(text);
    this.#pieces.push(piece);
    this.#length += piece.length;
  }
}
