import type { StoredObject } from '../store/object-store.ts';

/** How many objects are looked at in one turn: what there is beyond these is for the next ones. */
const OBJECTS_A_TURN = 10_000;

/** Objects that are looked through in one turn. */
export interface Part {
  readonly objects: AsyncIterable<StoredObject>;
  /** Where the next turn begins, when all of them were looked at. */
  readonly next: () => string;
}

/** The first of some objects; when there are no more, the next turn begins anew. */
export function partOf(objects: AsyncIterable<StoredObject>, most = OBJECTS_A_TURN): Part {
  let next = '';
  async function* firstOf() {
    let left = most;
    for await (const object of objects) {
      next = object.key;
      yield object;
      left -= 1;
      if (left === 0) return;
    }
    next = '';
  }
  return { objects: firstOf(), next: () => next };
}
