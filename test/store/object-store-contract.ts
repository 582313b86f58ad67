import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { LocalFile, ObjectStore, Retention, StoredObject } from '../../src/store/object-store.ts';
import { until } from '../support/until.ts';

const never = new AbortController().signal;
const MEBIBYTE = 1024 * 1024;

/** The objects of a store, all of them or those whose keys begin so. */
export async function listed(store: ObjectStore, prefix?: string, after?: string): Promise<StoredObject[]> {
  const found: StoredObject[] = [];
  for await (const object of store.list(prefix, after)) found.push(object);
  return found;
}

/** A store for the tests of a `describe`, and files to put into it. */
function useStore(open: () => Promise<ObjectStore>) {
  let store: ObjectStore;
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'object-store-test-'));
    store = await open();
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  async function localFile(bytes: Uint8Array): Promise<LocalFile> {
    const path = join(directory, randomUUID());
    await writeFile(path, bytes, { mode: 0o600 });
    return { path, sha256: createHash('sha256').update(bytes).digest('hex') };
  }
  return {
    get store() {
      return store;
    },
    localFile,
    async put(bytes: Uint8Array, key: string = randomUUID()): Promise<string> {
      await store.put(key, await localFile(bytes), never);
      return key;
    },
    keys: async () => (await listed(store)).map(({ key }) => key),
    contentOf: async (key: string) => buffer(await store.read(key)),
  };
}

/** What every store promises, whatever it keeps its objects in. */
export function describeObjectStore(name: string, open: () => Promise<ObjectStore>): void {
  describe(`objects in ${name}`, () => {
    const used = useStore(open);
    const { localFile, put, keys, contentOf } = used;
    let store: ObjectStore;
    beforeAll(() => {
      store = used.store;
    });

    test.each([
      ['empty', 0],
      ['small', 1000],
      ['as long as a part', 8 * MEBIBYTE],
      ['of several parts', 17 * MEBIBYTE + 1],
    ])('one that is %s comes back byte for byte, whole and in ranges', async (_size, length) => {
      const bytes = randomBytes(length);
      const key = await put(bytes);
      expect(await store.sizeOf(key)).toBe(BigInt(length));
      expect((await contentOf(key)).equals(bytes)).toBe(true);
      if (length === 0) return;
      for (const [start, end] of [
        [0, 0],
        [length - 1, length - 1],
        [Math.floor(length / 3), Math.floor(length / 2)],
      ] as const) {
        const range = await buffer(await store.read(key, { start, end }));
        expect(range.equals(bytes.subarray(start, end + 1))).toBe(true);
      }
    });

    test('one that is not there is missing, in every way of asking', async () => {
      const key = randomUUID();
      expect(await store.sizeOf(key)).toBeNull();
      await expect(store.read(key)).rejects.toMatchObject({ name: 'ObjectMissingError' });
      await store.remove(key);
    });

    test('a key that is taken stays what it was', async () => {
      const key = await put(Buffer.from('first'));
      await expect(put(Buffer.from('other'), key)).rejects.toMatchObject({ name: 'ObjectExistsError' });
      await expect(put(randomBytes(9 * MEBIBYTE), key)).rejects.toMatchObject({ name: 'ObjectExistsError' });
      expect(String(await contentOf(key))).toBe('first');
    });

    test('of those who write under one key at the same time exactly one is first', async () => {
      const key = randomUUID();
      const texts = Array.from({ length: 8 }, (_, index) => `writer ${index}`);
      const outcomes = await Promise.allSettled(texts.map((text) => put(Buffer.from(text), key)));
      const winners = texts.filter((_text, index) => outcomes[index]?.status === 'fulfilled');
      expect(winners).toHaveLength(1);
      expect(String(await contentOf(key))).toBe(winners[0]);
    });

    test('to put the same file again comes to the same', async () => {
      const key = await put(Buffer.from('once'));
      await put(Buffer.from('once'), key);
      expect(String(await contentOf(key))).toBe('once');
    });

    test('what is put outlives the file it was put from, and what is being read outlives the object', async () => {
      const bytes = randomBytes(MEBIBYTE);
      const file = await localFile(bytes);
      const key = randomUUID();
      await store.put(key, file, never);
      await rm(file.path);
      const reading = await store.read(key);
      await store.remove(key);
      expect(await store.sizeOf(key)).toBeNull();
      expect((await buffer(reading)).equals(bytes)).toBe(true);
    });

    test('the list holds what is there, with its size and age, and not what was removed', async () => {
      const kept = await put(Buffer.from('12345'));
      const removed = await put(Buffer.from('x'));
      await store.remove(removed);
      const found = await listed(store);
      expect(found.find(({ key }) => key === kept)).toMatchObject({ sizeBytes: 5n });
      // The clock of a store counts in whole seconds.
      expect(Math.abs(found.find(({ key }) => key === kept)?.ageMs ?? Infinity)).toBeLessThan(300_000);
      expect(found.map(({ key }) => key)).not.toContain(removed);
      expect((await listed(store, kept.slice(0, 20))).map(({ key }) => key)).toEqual([kept]);
      expect(await listed(store, kept.slice(1))).toEqual([]);
    });

    test('a put that is called off leaves nothing behind', async () => {
      const before = await keys();
      const key = randomUUID();
      const file = await localFile(randomBytes(9 * MEBIBYTE));
      const called = store.put(key, file, AbortSignal.abort(new Error('called off')));
      await expect(called).rejects.toThrow('called off');
      expect(await keys()).toEqual(before);
    });

    test('the list can begin behind a key, and is in the order of keys', async () => {
      const prefix = randomUUID();
      for (const name of ['b', 'c', 'a', 'd']) await put(Buffer.from(name), `${prefix}.${name}`);
      const behind = (await listed(store, `${prefix}.`, `${prefix}.b`)).map(({ key }) => key);
      expect(behind).toEqual([`${prefix}.c`, `${prefix}.d`]);
    });

    test.each(['', '.', '..', '../x', 'a/b', '/etc/passwd', 'a\0b', 'ä', 'x'.repeat(300)])(
      'the key %j is none, and leads nowhere',
      async (key) => {
        await expect((async () => store.sizeOf(key))()).rejects.toThrow('A key of the store is none.');
        await expect((async () => store.remove(key))()).rejects.toThrow('A key of the store is none.');
      },
    );
  });
}

/** What a store promises that can keep objects from being removed. */
export function describeRetention(name: string, open: () => Promise<ObjectStore>): void {
  describe(`objects that are kept in ${name}`, () => {
    const used = useStore(open);
    const { put, keys, contentOf } = used;
    let store: ObjectStore;
    let retention: Retention;
    beforeAll(() => {
      store = used.store;
      if (store.retention === null) throw new Error('The store can keep nothing.');
      retention = store.retention;
    });

    test('one that is kept until a time is not removed before, is read as ever, and is never kept for less long', async () => {
      const soon = Math.ceil(Date.now() / 1000) + 1;
      const [short, long] = [await put(Buffer.from('short')), await put(Buffer.from('long'))];
      await retention.retainUntil(short, soon);
      await retention.retainUntil(short, soon);
      await retention.retainUntil(long, soon + 3600);
      await retention.retainUntil(long, soon);
      expect([await store.remove(short), await store.remove(long)]).toEqual([false, false]);
      expect(String(await contentOf(short))).toBe('short');
      await store.removeLeftovers(0);
      // The clock of the store may be another's.
      await until(() => store.remove(short));
      expect(await store.sizeOf(short)).toBeNull();
      expect(await store.remove(long)).toBe(false);
      expect(await store.sizeOf(long)).toBe(4n);
    });

    test('one that is held is not removed until it is let go, and a time outlasts that', async () => {
      const [held, both] = [await put(Buffer.from('held')), await put(Buffer.from('both'))];
      for (const key of [held, both]) {
        await retention.hold(key, true);
        await retention.hold(key, true);
        expect(await store.remove(key)).toBe(false);
      }
      expect((await keys()).filter((key) => key.startsWith(held))).toEqual([held]);
      await retention.retainUntil(both, Math.ceil(Date.now() / 1000) + 3600);
      for (const key of [held, both]) await retention.hold(key, false);
      expect([await store.remove(held), await store.remove(both)]).toEqual([true, false]);
    });

    test('one that is not there cannot be kept', async () => {
      const later = Math.ceil(Date.now() / 1000) + 3600;
      for (const work of [retention.hold(randomUUID(), true), retention.retainUntil(randomUUID(), later)]) {
        await expect(work).rejects.toMatchObject({ name: 'ObjectMissingError' });
      }
    });
  });
}
