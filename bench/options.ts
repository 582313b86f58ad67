import { parseArgs } from 'node:util';
import type { Group } from './group.ts';

/** What a run of the bench is asked for. */
export interface Options {
  readonly groups: readonly Group[];
  readonly quick: boolean;
}

/** The command line cannot be followed; `message` says why. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * Reads the command line: `[--quick] [GROUP …]`; all groups when none is named.
 *
 * @throws UsageError
 */
export function readOptions(args: readonly string[], known: readonly Group[]): Options {
  const usage = `npm run bench -- [--quick] [${known.map(({ name }) => name).join('] [')}]`;
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { quick: { type: 'boolean', default: false } },
    });
    const stranger = positionals.find((name) => !known.some((group) => group.name === name));
    if (stranger !== undefined) throw new Error(`There is no group ${stranger}`);
    const groups = known.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
    return { groups, quick: values.quick };
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : error}\nUsage: ${usage}`);
  }
}
