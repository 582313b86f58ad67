import { deepStrictEqual } from 'node:assert/strict';
import type { Finished } from '../processes.ts';

/** Which exit code a step is meant to end with; `any` where it depends on the version of the program. */
export type Meant = number | 'any';

interface Step {
  readonly name: string;
  readonly exitCode: number | null;
  readonly meant: Meant;
  readonly said: string;
}

/** The steps of a history and how they went. */
export class Steps {
  readonly #taken: Step[] = [];

  /** Takes one step. */
  async take(name: string, finished: Promise<Finished>, meant: Meant = 0): Promise<void> {
    const { exitCode, stdout, stderr } = await finished;
    this.#taken.push({ name, exitCode, meant, said: exitCode === 0 ? '' : (stderr || stdout).slice(-500) });
  }

  /** @throws AssertionError when a step ended otherwise than it was meant to. */
  assertAsMeant(): string {
    const otherwise = this.#taken.filter(({ exitCode, meant }) => meant !== 'any' && exitCode !== meant);
    deepStrictEqual(otherwise, []);
    return `${this.#taken.length} steps`;
  }
}
