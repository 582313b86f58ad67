import { styleText } from 'node:util';

const LONGEST_DETAIL = 1500;

/** What was found, printed check by check as it is found. */
export class Report {
  readonly #signal: AbortSignal;
  readonly #failed: string[] = [];
  #passed = 0;
  #skipped = 0;

  /** @param signal when it is aborted, checks are no longer counted but end with its reason. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  get failed(): number {
    return this.#failed.length;
  }

  get checked(): number {
    return this.#passed + this.#failed.length;
  }

  heading(title: string): void {
    process.stdout.write(`\n${styleText('bold', title)}\n`);
  }

  /** Tells what is worth knowing and is no check. */
  note(text: string): void {
    process.stdout.write(`      ${cut(text)}\n`);
  }

  /**
   * One check: it passes when `work` does not throw. What `work` returns is printed beside the sentence.
   *
   * @param sentence what is promised.
   * @returns whether it passed.
   */
  async check(sentence: string, work: () => unknown): Promise<boolean> {
    try {
      const detail = await work();
      this.#passed += 1;
      const beside = detail === undefined ? '' : styleText('dim', `  [${cut(String(detail), 160)}]`);
      process.stdout.write(`${styleText('green', 'pass')}  ${sentence}${beside}\n`);
      return true;
    } catch (error) {
      this.#signal.throwIfAborted();
      this.fail(sentence, error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  /** Counts a failure. */
  fail(sentence: string, detail: string): void {
    this.#failed.push(sentence);
    process.stdout.write(`${styleText('red', 'FAIL')}  ${sentence}\n${indent(cut(detail))}\n`);
  }

  /** Checks that are left out, and why. */
  skip(title: string, why: string): void {
    this.#skipped += 1;
    process.stdout.write(`\n${styleText('yellow', 'skip')}  ${title}: ${why}\n`);
  }

  /** The last lines: every failed sentence once more, and the counts. */
  summary(): string {
    const failures = this.#failed.map((sentence) => `  failed: ${sentence}\n`).join('');
    const skipped = this.#skipped === 0 ? '' : `, ${this.#skipped} skipped`;
    return `\n${failures}${this.#passed} passed, ${this.#failed.length} failed${skipped}\n`;
  }
}

function cut(text: string, length = LONGEST_DETAIL): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}

function indent(text: string): string {
  return text.replace(/^/gm, '      ');
}
