import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { FuzzTarget } from './target.ts';

const ROOT = new URL('corpus/', import.meta.url);

/** Every input of a target that once failed, by the name of its file. */
export function readCorpus<Input>(
  target: FuzzTarget<Input>,
): { readonly name: string; readonly input: Input }[] {
  const directory = new URL(`${target.name}/`, ROOT);
  let names: string[];
  try {
    names = readdirSync(directory).sort();
  } catch {
    return [];
  }
  return names.map((name) => ({ name, input: target.decode(readFileSync(new URL(name, directory))) }));
}

/** Keeps an input that failed; the same one is kept once. @returns the path of its file. */
export function keepInCorpus<Input>(target: FuzzTarget<Input>, input: Input): string {
  const file = target.encode(input);
  const directory = new URL(`${target.name}/`, ROOT);
  mkdirSync(directory, { recursive: true });
  const path = new URL(createHash('sha256').update(file).digest('hex').slice(0, 12), directory);
  writeFileSync(path, file);
  return fileURLToPath(path);
}
