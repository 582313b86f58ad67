import { readFileSync } from 'node:fs';
import { type ELDHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
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
}

/** How often the event loop is looked at. A histogram's values are the times between two looks. */
const RESOLUTION_MS = 1;

// Threads are started with the same options.
if (isMainThread && process.send !== undefined) {
  let histogram: ELDHistogram | null = null;
  process.on('message', (question: ProbeQuestion) => {
    if (question === 'watch') {
      histogram ??= monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      histogram.enable();
      histogram.reset();
      process.send?.('watching');
    } else {
      process.send?.({
        peakMemory: peakMemory(),
        longestBlock: longestBlock(histogram),
      } satisfies ProbeReport);
    }
  });
  // The service alone decides how long its process lives.
  process.channel?.unref();
}

function longestBlock(histogram: ELDHistogram | null): number {
  if (histogram === null || histogram.count === 0) return 0;
  return Math.max(0, histogram.max / 1e6 - RESOLUTION_MS);
}

/** `resourceUsage` may count the process that started this one, where the kernel says what this one took alone. */
function peakMemory(): number {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS * 1024;
  const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kibibytes) * 1024;
}
