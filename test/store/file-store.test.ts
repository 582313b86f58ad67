import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { openFileStore } from '../../src/store/file-store.ts';
import { describeObjectStore, describeRetention, listed } from './object-store-contract.ts';

const directory = await mkdtemp(join(tmpdir(), 'file-store-test-'));
afterAll(() => rm(directory, { recursive: true, force: true }));
const never = new AbortController().signal;

describeObjectStore('a directory', () => openFileStore(join(directory, 'objects')));
describeRetention('a directory', () => openFileStore(join(directory, 'kept')));

// Where there is one: Linux keeps its shared memory in it.
const elsewhere = await mkdtemp('/dev/shm/file-store-test-').catch(() => null);
afterAll(() => rm(elsewhere ?? directory, { recursive: true, force: true }));
const isElsewhere = elsewhere !== null && (await stat(elsewhere)).dev !== (await stat(directory)).dev;

(isElsewhere ? describeObjectStore : () => {})('a directory on another file system', () =>
  openFileStore(join(elsewhere ?? '', 'objects')),
);

test('objects are for their owner alone, and so is the directory', async () => {
  const path = join(directory, 'private');
  const store = await openFileStore(path);
  const key = randomUUID();
  const local = join(directory, randomUUID());
  await writeFile(local, 'secret', { mode: 0o600 });
  await store.put(key, { path: local, sha256: '' }, never);
  expect((await stat(path)).mode & 0o777).toBe(0o700);
  expect((await stat(join(path, key))).mode & 0o777).toBe(0o600);
});

test('what was begun long ago and never became an object is removed, and an object is none, however old', async () => {
  const path = join(directory, 'leftovers');
  const store = await openFileStore(path);
  const names = ['old.partial', 'new.partial', 'old-object'];
  for (const name of names) await writeFile(join(path, name), name);
  const longAgo = new Date(Date.now() - 7_200_000);
  for (const name of ['old.partial', 'old-object']) await utimes(join(path, name), longAgo, longAgo);
  expect((await listed(store)).map(({ key }) => key)).toEqual(['old-object']);
  await store.removeLeftovers(3_600_000);
  expect((await readdir(path)).sort()).toEqual(['new.partial', 'old-object']);
  expect(await readFile(join(path, 'old-object'), 'utf8')).toBe('old-object');
});
