import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';

/** A directory of the calling test file's own, removed after its tests. Gives paths inside it. */
export function temporaryDirectory(): (name?: string) => string {
  let path = '';
  beforeAll(async () => {
    path = await mkdtemp(join(tmpdir(), 'state-archive-'));
  });
  afterAll(() => rm(path, { recursive: true, force: true }));
  return (name = '') => join(path, name);
}
