import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, isAbsolute, join, resolve } from 'node:path';

/** The programs that the checks run. The first four are named by flags or variables, the others are taken from PATH. */
export const PROGRAMS = ['kld', 'kl', 'klc', 'terraform', 'zstd', 'tar', 'sha256sum'] as const;

export type ProgramName = (typeof PROGRAMS)[number];

/** Where the programs are; those that are missing are absent. */
export type Programs = ReadonlyMap<ProgramName, string>;

/** Looks for every program: at the path given for it, or by its name in the directories of PATH. */
export function findPrograms(given: Partial<Record<ProgramName, string | undefined>>): Programs {
  const found = new Map<ProgramName, string>();
  for (const name of PROGRAMS) {
    const path = find(given[name] ?? name);
    if (path !== undefined) found.set(name, path);
  }
  return found;
}

function find(program: string): string | undefined {
  if (isAbsolute(program) || program.includes('/')) return isProgram(program) ? resolve(program) : undefined;
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((directory) => join(directory, program))
    .find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
