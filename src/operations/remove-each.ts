import type { Logger } from 'pino';
import { describeError } from '../base/error-log.ts';
import { DatabaseUnavailableError } from '../database/errors.ts';
import { RemovalRefusedError, StoreUnavailableError } from '../store/object-store.ts';

/**
 * Removes one after the other. What the store does not let go keeps none of the others, and is told in the log: the next
 * housekeeping tries again.
 *
 * @param what they are, as the log calls them.
 * @throws StoreUnavailableError, DatabaseUnavailableError: then none of the others could be removed either.
 */
export async function removeEach(
  { logger }: { readonly logger: Logger },
  what: 'archives' | 'uploads',
  names: readonly string[],
  remove: (name: string) => Promise<unknown>,
): Promise<void> {
  const kept: string[] = [];
  let reason: unknown;
  for (const name of names) {
    await remove(name).catch((error: unknown) => {
      if (endsAll(error)) throw error;
      kept.push(name);
      reason ??= error;
    });
  }
  if (kept.length === 0) return;
  const told = { error: describeError(reason), count: kept.length, first: kept[0] };
  logger.warn(told, `${what} that are to go cannot be removed`);
}

function endsAll(error: unknown): boolean {
  if (error instanceof RemovalRefusedError) return false;
  return error instanceof StoreUnavailableError || error instanceof DatabaseUnavailableError;
}
