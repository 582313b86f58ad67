/**
 * How long something is that is still being written. Who iterates over it, one reader, gets ascending lengths. The loop ends with
 * the growth, and throws when that fails.
 */
export class Growth implements AsyncIterable<number> {
  #reached = 0;
  /** Null when it is over, or nobody follows it any more. */
  #controller: ReadableStreamDefaultController<number> | null = null;
  readonly #lengths = new ReadableStream<number>({
    start: (controller) => {
      this.#controller = controller;
    },
    cancel: () => {
      this.#controller = null;
    },
  });

  /** It has at least this length now. */
  reach(length: number): void {
    if (length > this.#reached) this.#controller?.enqueue(length);
    this.#reached = length;
  }

  /** This is its final length. */
  complete(length: number): void {
    this.reach(length);
    this.#controller?.close();
    this.#controller = null;
  }

  /** It will never be complete. */
  fail(reason: unknown): void {
    this.#controller?.error(reason);
    this.#controller = null;
  }

  [Symbol.asyncIterator](): AsyncIterator<number, void, void> {
    return this.#lengths.values();
  }
}
