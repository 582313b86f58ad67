import fc from 'fast-check';

/**
 * A finite run of choices from which anything can be built step by step. When they are used up every choice is the
 * first, so builders put what is simplest first, and what ends them; shorter runs then build smaller things, which is
 * how fast-check makes a failing one small.
 */
export class Choices {
  readonly #numbers: readonly number[];
  #next = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  /** A number from 0 to below `count`. */
  below(count: number): number {
    const number = this.#numbers[this.#next] ?? 0;
    this.#next += 1;
    return number % count;
  }

  /** One of a list that is not empty. */
  of<Item>(items: readonly [Item, ...Item[]] | readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error('There is nothing to choose from.');
    return item;
  }

  /** Whether something happens that happens once in `count` times; never when the choices are used up. */
  once(count: number): boolean {
    return this.below(count) === count - 1 && count > 1;
  }

  /** From 0 to `most` things, as `make` makes each. */
  some<Item>(most: number, make: (index: number) => Item): Item[] {
    return Array.from({ length: this.below(most + 1) }, (_, index) => make(index));
  }
}

/** Runs of choices for fast-check. */
export function choices(maxLength: number): fc.Arbitrary<Choices> {
  return fc.array(fc.nat(0xffff), { maxLength, size: 'max' }).map((numbers) => new Choices(numbers));
}
