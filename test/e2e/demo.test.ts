import { afterEach, expect, test } from '@jest/globals';
import { cleanUp, start, temporaryDirectory } from './support/processes.ts';

afterEach(cleanUp);

test('the demo takes a history from one backend to another, and shows that nothing was lost', async () => {
  const { exitCode, stdout, stderr } = await start('src/development/demo.ts', {
    DATA_DIR: await temporaryDirectory(),
  }).ended;
  expect([exitCode, stderr]).toEqual([0, '']);
  const digests = [...stdout.matchAll(/history digest +([0-9a-f]{64})$/gm)].map(([, digest]) => digest);
  // Of the source, of the file by itself, of the restored state, and of its own export.
  expect(digests.length).toBe(4);
  expect(new Set(digests).size).toBe(1);
  expect(stdout).toContain('The digests agree');
});
