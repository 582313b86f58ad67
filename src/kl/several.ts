import { EXIT, type Exit, KlError } from './endings.ts';
import { type Cell, table } from './tables.ts';
import type { Terminal } from './terminal.ts';
import { visible } from './texts.ts';

/** How one of several pieces of work ended. */
export type Ended<Result> = { readonly name: string } & (
  | { readonly result: Result; readonly error: null }
  | { readonly result: null; readonly error: KlError }
);

/**
 * Does a piece of work for each item, some at a time, and goes on after a failure.
 *
 * @returns how each ended, in order of name.
 * @throws what interrupted, and what is no KlError: a bug.
 */
export async function forEachOf<Item, Result>(
  items: AsyncIterable<Item> | Iterable<Item>,
  nameOf: (item: Item) => string,
  atATime: number,
  signal: AbortSignal,
  work: (item: Item) => Promise<Result>,
): Promise<Ended<Result>[]> {
  const ended: Ended<Result>[] = [];
  async function* shared() {
    yield* items;
  }
  const source = shared();
  const worker = async () => {
    for (;;) {
      signal.throwIfAborted();
      const next = await source.next();
      if (next.done) return;
      const name = nameOf(next.value);
      try {
        ended.push({ name, result: await work(next.value), error: null });
      } catch (error) {
        if (signal.aborted || !(error instanceof KlError)) throw error;
        ended.push({ name, result: null, error });
      }
    }
  };
  // One that ends with a bug takes the others along once they are through with what they are at.
  const outcomes = await Promise.allSettled(Array.from({ length: atATime }, worker));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return ended.sort((one, other) => (one.name < other.name ? -1 : 1));
}

/**
 * Says what became of each.
 *
 * @param key what their names are called in JSON, beside what a result holds.
 * @param head what stands over the column of their names.
 * @param columns what people are shown of a result, by the heads of the columns behind the name; `OUTCOME` among them.
 * @returns what to end with: when some failed, what all of those failed with, or a plain failure.
 */
export function tellAll<Result extends { readonly outcome: string }>(
  terminal: Terminal,
  ended: readonly Ended<Result>[],
  key: 'file' | 'name',
  head: string,
  columns: Readonly<Record<string, (result: Result) => Cell>>,
): Exit {
  const shown = Object.entries(columns).map(([column, cellOf]) => {
    const cell = ({ result, error }: Ended<Result>) =>
      error === null ? cellOf(result) : column === 'OUTCOME' ? `FAILED: ${error.code}` : null;
    return [column, cell] as const;
  });
  terminal.result(
    ended.map(({ name, result, error }) => ({
      [key]: name,
      ...(result ?? { outcome: 'FAILED', error: { code: error?.code, message: error?.message } }),
    })),
    () => table(ended, { [head]: 'name', ...Object.fromEntries(shown) }),
  );
  const exits = new Set<Exit>();
  for (const { name, error } of ended) {
    if (error === null) continue;
    terminal.warn(`${visible(name)}: ${visible(error.message)}`);
    exits.add(error.exit);
  }
  const [only = EXIT.done] = exits;
  return exits.size > 1 ? EXIT.failed : only;
}

/** An outcome, for people. */
export function outcomeText({ outcome }: { readonly outcome: string }): string {
  return outcome.toLowerCase().replaceAll('_', ' ');
}
