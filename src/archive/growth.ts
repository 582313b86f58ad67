/**
 * How long something is that is still being written. Who iterates over it, one reader at a time, gets ascending lengths:
 * the newest whenever it asks, as soon as there is one that is greater than the last. The loop ends with the growth, and
 * throws when that fails.
 */
export class Growth implements AsyncIterable<number> {
  #length = 0;
  #end: { readonly failure: unknown } | 'complete' | null = null;
  #wake = () => {};

  /** It has at least this length now. */
  reach(length: number): void {
    this.#length = length;
    this.#wake();
  }

  /** This is its final length. */
  complete(length: number): void {
    this.#end ??= 'complete';
    this.reach(length);
  }

  /** It will never be complete. */
  fail(reason: unknown): void {
    this.#end ??= { failure: reason };
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<number, void, void> {
    let told = 0;
    for (;;) {
      if (this.#end !== null && this.#end !== 'complete') throw this.#end.failure;
      if (this.#length > told) {
        told = this.#length;
        yield told;
      } else if (this.#end === 'complete') {
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
