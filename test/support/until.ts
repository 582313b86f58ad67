import { setTimeout as pause } from 'node:timers/promises';

/** Longer than anything takes, however busy the machine, and less than a test has. */
const PATIENCE_MS = 300_000;

/**
 * Waits for a condition, without a fixed sleep.
 *
 * @throws what the condition throws, which is where a test says that it cannot come about any more; and the condition's own
 *   text when it has not, for longer than anything takes.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`This has not come about: ${condition}`);
    await pause(5);
  }
}
