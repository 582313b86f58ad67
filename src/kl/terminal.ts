import type { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { failure, type KlError } from './endings.ts';
import { jsonText, visible } from './texts.ts';

/** How a command was asked to speak. */
export interface Manners {
  readonly format: 'table' | 'json';
  readonly quiet: boolean;
}

/** The two streams of a command: results go to standard output, talk goes to standard error. */
export class Terminal {
  readonly manners: Manners;
  readonly #results: Writable = process.stdout;
  readonly #talk: Writable & { readonly isTTY?: boolean } = process.stderr;

  constructor(manners: Manners) {
    this.manners = manners;
  }

  /** Whether somebody is there to be asked. */
  get isInteractive(): boolean {
    return process.stdin.isTTY === true && process.stderr.isTTY === true;
  }

  /** Whether bars can be drawn. */
  get hasBars(): boolean {
    return this.#talk.isTTY === true && process.env.TERM !== 'dumb' && !this.manners.quiet;
  }

  /** A line beside the result; `--quiet` leaves it out. */
  say(line: string): void {
    if (!this.manners.quiet) this.#talk.write(`${line}\n`);
  }

  /** A line beside the result that has to be known. */
  warn(line: string): void {
    this.#talk.write(`${this.#styled('yellow', 'Warning')}  ${line}\n`);
  }

  /** The result: a value for `--format json`, a text for people otherwise. */
  result(value: unknown, text: () => string): void {
    this.#results.write(`${this.manners.format === 'json' ? jsonText(value) : text()}\n`);
  }

  /** Why there is none. */
  fail(program: string, error: KlError): void {
    const { code, message, exit, advice } = error;
    if (this.manners.format === 'json') {
      this.#talk.write(`${jsonText({ error: { code, message, advice, exitCode: exit } })}\n`);
      return;
    }
    this.#talk.write(`${this.#styled('red', program)}: ${visible(message)} (${code})\n`);
    if (advice !== null) this.#talk.write(`${advice}\n`);
  }

  /**
   * A question to be answered with yes.
   *
   * @throws KlError USAGE when nobody is there to be asked, NOT_CONFIRMED for any other answer.
   */
  async confirm(question: string, signal: AbortSignal): Promise<void> {
    const answer = await this.ask(`${question} [y/N] `, '--yes', signal);
    if (!/^y(es)?$/i.test(answer)) throw failure('NOT_CONFIRMED', 'Nothing was done.');
  }

  /**
   * A line from whoever sits there.
   *
   * @param instead the option that answers it where nobody sits.
   */
  async ask(question: string, instead: string, signal: AbortSignal): Promise<string> {
    if (!this.isInteractive) {
      throw failure('USAGE', `Nobody is here to be asked "${question.trim()}": say ${instead}.`);
    }
    const { createInterface } = await import('node:readline/promises');
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    // In a terminal's line the key is no signal.
    lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
    try {
      return (await lines.question(question, { signal })).trim();
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      lines.close();
    }
  }

  #styled(style: 'red' | 'yellow', text: string): string {
    return this.#talk.isTTY ? styleText(style, text, { stream: this.#talk as NodeJS.WriteStream }) : text;
  }
}
