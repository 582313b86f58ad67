import { EXIT, type Exit, KlError } from './endings.ts';

/** How one of several pieces of work ended. */
export type Ended<Item, Result> =
  | { readonly item: Item; readonly result: Result; readonly error: null }
  | { readonly item: Item; readonly result: null; readonly error: KlError };

/**
 * Does a piece of work for each item, some at a time, and goes on after a failure.
 *
 * @throws what interrupted, and what is no KlError: a bug.
 */
export async function forEachOf<Item, Result>(
  items: AsyncIterable<Item> | Iterable<Item>,
  atATime: number,
  signal: AbortSignal,
  work: (item: Item) => Promise<Result>,
): Promise<Ended<Item, Result>[]> {
  const ended: Ended<Item, Result>[] = [];
  async function* shared() {
    yield* items;
  }
  const source = shared();
  const worker = async () => {
    for (;;) {
      signal.throwIfAborted();
      const next = await source.next();
      if (next.done) return;
      const item = next.value;
      try {
        ended.push({ item, result: await work(item), error: null });
      } catch (error) {
        if (signal.aborted || !(error instanceof KlError)) throw error;
        ended.push({ item, result: null, error });
      }
    }
  };
  const workers = Array.from({ length: atATime }, worker);
  // One that ends with a bug takes the others along once they are through with what they are at.
  const outcomes = await Promise.allSettled(workers);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return ended;
}

/** What to end with when some failed: what all of them failed with, or a plain failure. */
export function exitOf(ended: readonly Ended<unknown, unknown>[]): Exit {
  const exits = new Set(ended.flatMap(({ error }) => (error === null ? [] : [error.exit])));
  if (exits.size === 0) return EXIT.done;
  const [only] = exits;
  return exits.size === 1 && only !== undefined ? only : EXIT.failed;
}
