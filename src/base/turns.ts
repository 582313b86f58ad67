import { unlessAborted } from './abortable.ts';

/** A place in a row of those who wait for the same. */
export interface Turn {
  /** Comes when the turns before it are over. */
  readonly begin: Promise<unknown>;
  /** Ends it. Who leaves without having had it ends it, too. */
  end(): void;
}

/** Hands out turns: of those who wait for the same one at a time has one, in the order in which they asked. */
export class Turns<For extends object> {
  readonly #over = new WeakMap<For, Promise<unknown>>();

  /** The turn behind those that were asked for before. */
  take(what: For): Turn {
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    const begin = this.#over.get(what) ?? Promise.resolve();
    this.#over.set(
      what,
      begin.then(() => over),
    );
    return { begin, end };
  }

  /**
   * Does a piece of work in its turn.
   *
   * @param signal ends the waiting, with its reason; the work itself has to follow it.
   */
  async run<Result>(what: For, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    signal?.throwIfAborted();
    const turn = this.take(what);
    try {
      await (signal === undefined ? turn.begin : unlessAborted(turn.begin, signal));
      return await work();
    } finally {
      turn.end();
    }
  }
}
