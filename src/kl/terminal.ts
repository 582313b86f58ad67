import { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { failure, type KlError } from './endings.ts';
import { jsonText, visible } from './texts.ts';

/** Where talk goes: in colours where there are some. */
const TALK = { stream: process.stderr };

/** How a command was asked to speak. */
export interface Manners {
  readonly format: 'table' | 'json';
  readonly quiet: boolean;
}

/** The two streams of a command: results go to standard output, talk goes to standard error. */
export class Terminal {
  readonly manners: Manners;

  constructor(manners: Manners) {
    this.manners = manners;
  }

  /** Whether somebody is there to be asked. */
  get isInteractive(): boolean {
    return process.stdin.isTTY === true && process.stderr.isTTY === true;
  }

  /** Whether bars can be drawn. */
  get hasBars(): boolean {
    return process.stderr.isTTY === true && process.env.TERM !== 'dumb' && !this.manners.quiet;
  }

  /** A line beside the result; `--quiet` leaves it out. */
  say(line: string): void {
    if (!this.manners.quiet) process.stderr.write(`${line}\n`);
  }

  /** A line beside the result that has to be known. */
  warn(line: string): void {
    process.stderr.write(`${styleText('yellow', 'Warning', TALK)}  ${line}\n`);
  }

  /** The result: a value for `--format json`, a text for people otherwise. */
  result(value: unknown, text: () => string): void {
    process.stdout.write(`${this.manners.format === 'json' ? jsonText(value) : text()}\n`);
  }

  /** Why there is none. */
  fail(program: string, error: KlError): void {
    const { code, message, exit, advice } = error;
    if (this.manners.format === 'json') {
      process.stderr.write(`${jsonText({ error: { code, message, advice, exitCode: exit } })}\n`);
      return;
    }
    process.stderr.write(`${styleText('red', program, TALK)}: ${visible(message)} (${code})\n`);
    if (advice !== null) process.stderr.write(`${advice}\n`);
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
   * @param hidden whether what is typed is not shown.
   * @throws KlError USAGE when nobody is there to be asked, INTERRUPTED.
   */
  async ask(question: string, instead: string, signal: AbortSignal, hidden = false): Promise<string> {
    if (!this.isInteractive) {
      throw failure('USAGE', `Nobody is here to be asked "${question.trim()}": say ${instead}.`);
    }
    const { createInterface } = await import('node:readline/promises');
    const output = hidden ? new Writable({ write: (_chunk, _encoding, done) => done() }) : process.stderr;
    const lines = createInterface({ input: process.stdin, output, terminal: true });
    // In a terminal's line the key is no signal.
    lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
    const closed = new AbortController();
    lines.once('close', () => closed.abort());
    // Said once nothing of what is typed is shown any longer.
    if (hidden) process.stderr.write(question);
    try {
      return (await lines.question(question, { signal: AbortSignal.any([signal, closed.signal]) })).trim();
    } catch {
      throw signal.aborted ? signal.reason : failure('INTERRUPTED', 'Interrupted.');
    } finally {
      lines.close();
      if (hidden) process.stderr.write('\n');
    }
  }
}
