import { median } from './statistics.ts';

/** What several runs of one job took, in seconds. A run that fails is the series' failure, and stops nothing else. */
export class Series {
  readonly #seconds: number[] = [];
  #failure: string | null = null;

  /** Why a run failed, or null when none did. */
  get failure(): string | null {
    return this.#failure;
  }

  get median(): number {
    return median(this.#seconds);
  }

  /** Takes the time of one run. What `work` returns is the time it measured itself, if it is a number. */
  async time(work: () => Promise<unknown>): Promise<void> {
    const began = performance.now();
    try {
      const own = await work();
      this.#seconds.push(typeof own === 'number' ? own : (performance.now() - began) / 1000);
    } catch (error) {
      this.#failure ??= error instanceof Error ? error.message : String(error);
    }
  }

  /** `1.72 s (1.65–1.90)`: the median, the least and the most; or why there is none. */
  toString(): string {
    if (this.#failure !== null) return `failed: ${this.#failure}`;
    if (this.#seconds.length === 0) return '–';
    const range = `${Math.min(...this.#seconds).toFixed(2)}–${Math.max(...this.#seconds).toFixed(2)}`;
    return this.#seconds.length === 1
      ? `${this.median.toFixed(2)} s`
      : `${this.median.toFixed(2)} s (${range})`;
  }
}
