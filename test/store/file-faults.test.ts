import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeEach, describe, expect, jest, test } from '@jest/globals';

type FileOperation = (...args: unknown[]) => Promise<unknown>;
/** The operations of the file system that a store makes. */
const OPERATIONS = ['link', 'copyFile', 'open', 'rm', 'readdir', 'stat'] as const;
type Operation = (typeof OPERATIONS)[number];

/** What is to happen to an operation: it fails before it was done, or after; so often. */
interface Fault {
  readonly on: Operation;
  readonly how: 'before' | 'after';
  left: number;
}
let fault: Fault | null = null;
/** How often it did. */
let hits = 0;
/** Whether another file system is to be played, from which no link leads. */
let isElsewhere = false;

const real: Record<string, unknown> = { ...(await import('node:fs/promises')) };
const faulty = Object.fromEntries(
  OPERATIONS.map((name) => {
    const operation = real[name] as FileOperation;
    return [
      name,
      async (...args: unknown[]) => {
        const [from] = args;
        if (name === 'link' && isElsewhere && !String(from).endsWith('.partial')) {
          throw Object.assign(new Error('another device'), { code: 'EXDEV' });
        }
        const isHit = fault !== null && fault.on === name && fault.left > 0;
        if (fault !== null && isHit) {
          fault.left -= 1;
          hits += 1;
        }
        if (isHit && fault?.how === 'before') throw Object.assign(new Error('EIO'), { code: 'EIO' });
        const done = await operation(...args);
        if (isHit) {
          if (name === 'open') await (done as { close(): Promise<void> }).close();
          throw Object.assign(new Error('EIO'), { code: 'EIO' });
        }
        return done;
      },
    ];
  }),
);
jest.unstable_mockModule('node:fs/promises', () => ({ ...real, ...faulty, default: real }));
const { openFileStore } = await import('../../src/store/file-store.ts');

const directory = await mkdtemp(join(tmpdir(), 'file-faults-test-'));
afterAll(() => rm(directory, { recursive: true, force: true }));
beforeEach(() => {
  fault = null;
  hits = 0;
  isElsewhere = false;
});
const never = new AbortController().signal;

async function localFile(text: string) {
  const path = join(directory, randomUUID());
  await writeFile(path, text, { mode: 0o600 });
  return { path, sha256: createHash('sha256').update(text).digest('hex') };
}

const PERSISTENT = Number.POSITIVE_INFINITY;
const FAULTS = [
  ['before', 1],
  ['after', 1],
  ['before', PERSISTENT],
  ['after', PERSISTENT],
] as const;

describe.each([
  ['on one file system', false, ['link', 'open'] as const],
  ['from another file system', true, ['link', 'copyFile', 'open', 'rm'] as const],
])('to put an object %s', (_where, elsewhere, operations) => {
  const cases = operations.flatMap((on) => FAULTS.map(([how, left]) => [on, how, left] as const));

  test.each(cases)(
    'when `%s` fails %s it is done, %d times, leaves it whole or not there, and again comes to it',
    async (on, how, left) => {
      const root = join(directory, randomUUID());
      const store = await openFileStore(root);
      const key = randomUUID();
      const file = await localFile('the object');
      isElsewhere = elsewhere;
      fault = { on, how, left };
      await store.put(key, file, never).catch((error) => expect(error).toMatchObject({ code: 'EIO' }));
      fault = null;
      expect(hits).toBeGreaterThan(0);
      const size = await store.sizeOf(key);
      if (size !== null) expect(String(await buffer(await store.read(key)))).toBe('the object');
      await store.put(key, file, never);
      expect(String(await buffer(await store.read(key)))).toBe('the object');
      expect(await readFile(file.path, 'utf8')).toBe('the object');
      await store.removeLeftovers(0);
      expect(await readdir(root)).toEqual([key]);
    },
  );
});

test.each(FAULTS)('when removing fails %s it is done, %d times, again removes it', async (how, left) => {
  const store = await openFileStore(join(directory, randomUUID()));
  const key = randomUUID();
  await store.put(key, await localFile('the object'), never);
  fault = { on: 'rm', how, left };
  await expect(store.remove(key)).rejects.toMatchObject({ code: 'EIO' });
  fault = null;
  await store.remove(key);
  expect(await store.sizeOf(key)).toBeNull();
});

test.each([
  ['stat', 'sizeOf'],
  ['open', 'read'],
] as const)('when `%s` fails, `%s` fails, and never says that there is no object', async (on, method) => {
  const store = await openFileStore(join(directory, randomUUID()));
  const key = randomUUID();
  await store.put(key, await localFile('the object'), never);
  fault = { on, how: 'before', left: PERSISTENT };
  await expect(store[method](key)).rejects.toMatchObject({ code: 'EIO' });
});
