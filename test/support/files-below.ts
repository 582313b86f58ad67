import { readdir } from 'node:fs/promises';
import { until } from './until.ts';

/** The names of the files in a directory and in those below it. */
export async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();
}

/** Waits until directories hold no file: an operation is told to be over when it is on record, and tidied up after then. */
export async function noFilesBelow(...directories: readonly string[]): Promise<void> {
  await until(async () => (await Promise.all(directories.map(filesBelow))).flat().length === 0);
}
