import { readFile, writeFile } from 'node:fs/promises';
import { tarOf } from '../../archive/support/handmade.ts';

/**
 * Writes the tar inside the archive at `from` to `to`, which is an archive too. One import reads an archive several times
 * over, and each time zstd sets aside a window of 128 MiB: that is what most of the time of a small import goes into.
 */
export async function writePlainTar(from: string, to: string): Promise<void> {
  await writeFile(to, tarOf(await readFile(from)));
}
