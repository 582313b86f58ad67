import type { MultiBar } from 'cli-progress';
import { failure } from './endings.ts';
import type { Terminal } from './terminal.ts';
import { bytesText, durationText, visible } from './texts.ts';

/** How far a piece of work is. Totals are null until known. */
export interface Done {
  /** What is being done, as in "downloading". */
  readonly step: string;
  readonly bytes?: { readonly done: number; readonly total: number | null } | undefined;
  readonly versions?: { readonly done: number; readonly total: number | null } | undefined;
}

const BAR_WIDTH = 24;
const MILLISECONDS = 1000;

/**
 * Shows how far work is: bars on a terminal; otherwise a line every `KL_PROGRESS_SECONDS` (30 unless set, 0 for none) and
 * whenever the process gets SIGUSR1.
 */
export class Progress implements Disposable {
  readonly #bars: MultiBar | null;
  readonly #works = new Set<Work>();
  readonly #ticker: NodeJS.Timeout | null;
  readonly #onSignal = () => this.#printLines();

  private constructor(terminal: Terminal, bars: MultiBar | null) {
    this.#bars = bars;
    process.on('SIGUSR1', this.#onSignal);
    const seconds = progressSeconds();
    this.#ticker =
      bars !== null || terminal.manners.quiet || seconds === 0
        ? null
        : setInterval(this.#onSignal, seconds * MILLISECONDS).unref();
  }

  /** @throws KlError USAGE for a `KL_PROGRESS_SECONDS` that is no number of seconds. */
  static async on(terminal: Terminal): Promise<Progress> {
    if (!terminal.hasBars) return new Progress(terminal, null);
    const { MultiBar } = await import('cli-progress');
    const bars = new MultiBar({
      stream: process.stderr,
      hideCursor: true,
      clearOnComplete: true,
      linewrap: false,
      // An interruption is this program's own to handle.
      gracefulExit: false,
      format: (_options, _params, { work }: { work: Work }) => work.line(true),
    });
    return new Progress(terminal, bars);
  }

  /** A piece of work that begins. @param what names it. */
  begin(what: string): Work {
    const work: Work = new Work(what, () => {
      this.#works.delete(work);
      if (bar !== undefined) this.#bars?.remove(bar);
    });
    this.#works.add(work);
    const bar = this.#bars?.create(1, 0, { work });
    return work;
  }

  [Symbol.dispose](): void {
    if (this.#ticker !== null) clearInterval(this.#ticker);
    process.off('SIGUSR1', this.#onSignal);
    this.#bars?.stop();
  }

  /** Asked for by a signal, a line is printed whatever `--quiet` says. */
  #printLines(): void {
    if (this.#bars !== null) return;
    for (const work of this.#works) process.stderr.write(`${work.line(false)}\n`);
  }
}

function progressSeconds(): number {
  const given = process.env.KL_PROGRESS_SECONDS || '30';
  if (/^\d{1,6}$/.test(given)) return Number(given);
  throw failure('USAGE', 'KL_PROGRESS_SECONDS is not a whole number of seconds.');
}

/** Does one piece of work, which is shown while it lasts. */
export async function shown<Result>(
  terminal: Terminal,
  what: string,
  perform: (work: Work) => Promise<Result>,
): Promise<Result> {
  using progress = await Progress.on(terminal);
  return await perform(progress.begin(what));
}

/** One piece of work among those that are shown. */
export class Work implements Disposable {
  readonly #what: string;
  readonly #end: () => void;
  #done: Done = { step: 'waiting' };
  #stepBegan = performance.now();
  #bytesAtBegin = 0;

  constructor(what: string, end: () => void) {
    this.#what = visible(what);
    this.#end = end;
  }

  /** Shows how far it is now. */
  show(done: Done): void {
    if (done.step !== this.#done.step) {
      this.#stepBegan = performance.now();
      this.#bytesAtBegin = done.bytes?.done ?? 0;
    }
    this.#done = done;
  }

  /** Takes it away. */
  [Symbol.dispose](): void {
    this.#end();
  }

  /** @param withBar whether it begins with a bar, as on a terminal. */
  line(withBar: boolean): string {
    const { step, bytes, versions } = this.#done;
    const share = shareOf(bytes) ?? shareOf(versions);
    const parts = [`${this.#what}: ${step}`];
    if (withBar) parts.unshift(barOf(share));
    if (share !== null) parts.push(`${Math.floor(share * 100)}%`);
    if (bytes !== undefined) {
      parts.push(`${bytesText(bytes.done)}${bytes.total === null ? '' : ` of ${bytesText(bytes.total)}`}`);
    }
    if (versions !== undefined) {
      parts.push(`${versions.done}${versions.total === null ? '' : ` of ${versions.total}`} versions`);
    }
    if (bytes !== undefined) parts.push(...this.#rate(bytes));
    return parts.join('  ');
  }

  #rate({ done, total }: NonNullable<Done['bytes']>): string[] {
    const seconds = (performance.now() - this.#stepBegan) / MILLISECONDS;
    const rate = (done - this.#bytesAtBegin) / seconds;
    if (!(rate > 0) || seconds < 1) return [];
    const left = total === null ? [] : [`${durationText((total - done) / rate)} left`];
    return [`${bytesText(Math.round(rate))}/s`, ...left];
  }
}

function shareOf(measured: Done['bytes']): number | null {
  if (measured?.total === undefined || measured.total === null || measured.total === 0) return null;
  return Math.min(measured.done / measured.total, 1);
}

function barOf(share: number | null): string {
  const full = Math.round((share ?? 0) * BAR_WIDTH);
  return `[${'='.repeat(full)}${' '.repeat(BAR_WIDTH - full)}]`;
}
