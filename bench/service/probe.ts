import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/**
 * @file Loaded into the service by `node --import`, beside the service's own code: answers over the IPC channel how long its event
 * loop was blocked and how much memory it took.
 */

/** What the bench asks of the probe. `watch` begins to watch the event loop, anew if it did so before. */
export type ProbeQuestion = 'watch' | 'report';

/** What the probe answers to `report`. */
export interface ProbeReport {
  /** The largest resident set so far, in bytes. */
  readonly peakMemory: number;
  /** The longest time for which the event loop did nothing else since it is watched, in milliseconds; 0 when it is not. */
  readonly longestBlock: number;
  /**
   * The most that the thread of the event loop worked between two looks at it, in milliseconds of a processor: what is left of a
   * block when nobody else had the processor meanwhile.
   */
  readonly mostWork: number;
}

/** How often the event loop is looked at. A histogram's values are the times between two looks. */
const RESOLUTION_MS = 1;

/** Looks at the event loop from when it is made. */
class LoopWatch {
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #timer = setInterval(() => this.#look(), RESOLUTION_MS).unref();
  #worked = workOf();
  mostWork = 0;

  constructor() {
    this.#histogram.enable();
  }

  get longestBlock(): number {
    return this.#histogram.count === 0 ? 0 : Math.max(0, this.#histogram.max / 1e6 - RESOLUTION_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#histogram.disable();
  }

  #look(): void {
    const worked = workOf();
    this.mostWork = Math.max(this.mostWork, worked - this.#worked);
    this.#worked = worked;
  }
}

/** What this thread worked so far, in milliseconds of a processor. */
function workOf(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** `resourceUsage` may count the process that started this one, where the kernel says what this one took alone. */
function peakMemory(): number {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS * 1024;
  const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kibibytes) * 1024;
}

// Threads are started with the same options.
if (isMainThread && process.send !== undefined) {
  let watch: LoopWatch | null = null;
  process.on('message', (question: ProbeQuestion) => {
    if (question === 'watch') {
      watch?.stop();
      watch = new LoopWatch();
      process.send?.('watching');
    } else {
      process.send?.({
        peakMemory: peakMemory(),
        longestBlock: watch?.longestBlock ?? 0,
        mostWork: watch?.mostWork ?? 0,
      } satisfies ProbeReport);
    }
  });
  // The service alone decides how long its process lives.
  process.channel?.unref();
}
