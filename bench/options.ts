import { parseArgs } from 'node:util';
import type { Group } from './group.ts';

/** What a run of the bench is asked for. */
export interface Options {
  readonly groups: readonly Group[];
  /** The parts that are wanted, `group/part`; of a group that is not among them every part is. */
  readonly parts: readonly string[];
  readonly quick: boolean;
}

/** The command line cannot be followed; `message` says why. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * Reads the command line: `[--quick] [GROUP | GROUP/PART …]`; all groups when none is named.
 *
 * @throws UsageError
 */
export function readOptions(args: readonly string[], known: readonly Group[]): Options {
  const parts = known.flatMap(({ name, parts = [] }) => parts.map((part) => `${name}/${part}`));
  const names = [...known.map(({ name }) => name), ...parts];
  const usage = `npm run bench -- [--quick] [${names.join('] [')}]`;
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { quick: { type: 'boolean', default: false } },
    });
    const stranger = positionals.find((name) => !names.includes(name));
    if (stranger !== undefined) throw new Error(`There is no group ${stranger}`);
    const wanted = positionals.map((name) => name.split('/')[0]);
    return {
      groups: known.filter(({ name }) => wanted.length === 0 || wanted.includes(name)),
      parts: positionals.filter((name) => parts.includes(name)),
      quick: values.quick,
    };
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : error}\nUsage: ${usage}`);
  }
}
