import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openScratch } from '../../src/store/scratch.ts';

let directory: string;
beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'scratch-test-')), 'scratch');
});
afterEach(() => rm(join(directory, '..'), { recursive: true, force: true }));

test('is for its owner alone, and no path is given twice', async () => {
  const scratch = await openScratch(directory);
  expect(scratch.path()).not.toBe(scratch.path());
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
});

test('of a process that is gone is removed at once, of another machine when it is old, its own never', async () => {
  const scratch = await openScratch(directory);
  const others = {
    gone: `4194304@${encodeURIComponent(hostname())}@${randomUUID()}`,
    ofThisNumberBefore: `${process.pid}@${encodeURIComponent(hostname())}@${randomUUID()}`,
    alive: `${process.ppid}@${encodeURIComponent(hostname())}@${randomUUID()}`,
    elsewhere: `4194304@elsewhere@${randomUUID()}`,
    elsewhereLongAgo: `1@elsewhere@${randomUUID()}`,
  };
  for (const name of Object.values(others)) {
    await mkdir(join(directory, name));
    await writeFile(join(directory, name, 'half'), 'half');
  }
  const own = scratch.path();
  await writeFile(own, 'mine');
  const longAgo = new Date(Date.now() - 7_200_000);
  for (const path of [join(directory, others.elsewhereLongAgo), own]) await utimes(path, longAgo, longAgo);
  await scratch.removeLeftovers(3_600_000);
  const left = await readdir(directory);
  expect(Object.entries(others).flatMap(([which, name]) => (left.includes(name) ? which : []))).toEqual([
    'alive',
    'elsewhere',
  ]);
  expect(await readFile(own, 'utf8')).toBe('mine');
});
