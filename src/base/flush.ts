import { open } from 'node:fs/promises';

/** Makes what was written to a file, or given a name in a directory, survive a loss of power. */
export async function flush(path: string): Promise<void> {
  await using handle = await open(path);
  await handle.sync();
}
