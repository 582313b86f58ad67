import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { getPriority } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DEFAULT_ARCHIVE_LIMITS } from '../../src/archive/format.ts';
import { Growth } from '../../src/archive/growth.ts';
import { TRUST_NOBODY } from '../../src/archive/signing-keys.ts';
import { Inspector } from '../../src/inspection/inspector.ts';
import { readSnapshot } from '../../src/inspection/snapshot.ts';
import type { ResourceRow } from '../../src/inspection/spooled-rows.ts';
import type { Storage } from '../../src/inspection/storage.ts';
import { rowPathsOf } from '../../src/restore/plan.ts';
import { buildArchive } from '../archive/support/build-archive.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import { smallHistory, thingsDocument } from '../restore/support/histories.ts';

const inDirectory = temporaryDirectory();
let inspector: Inspector;
beforeAll(() => {
  inspector = new Inspector(2, 0);
});
afterAll(() => inspector.close());

const inspected = (path: string, signal = new AbortController().signal) => ({
  path,
  limits: DEFAULT_ARCHIVE_LIMITS,
  trust: TRUST_NOBODY,
  signal,
});

/** A PostgreSQL that keeps every document as it is. */
const keepsAll: Storage = { jsonbText: async () => null, faultOf: async () => null };

async function all<Item>(items: AsyncIterable<Item> | Iterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const historyOf = (...rawStates: string[]) => ({
  versions: rawStates.map((rawState, i) => ({ serial: BigInt(i + 1), rawState })),
  resources: null,
});

test('two inspections at a time do not mix', async () => {
  const paths = [inDirectory('one'), inDirectory('two')];
  await buildArchive(smallHistory, paths[0] ?? '');
  await buildArchive(historyOf(thingsDocument(1n, { a: '{}', b: '{}', c: '{}' })), paths[1] ?? '');
  const [one, two] = await Promise.all(
    paths.map((path) => inspector.inspectForRestore(inspected(path), keepsAll, null)),
  );
  expect(one).toMatchObject({ resourceSpans: 3, spansAreDerived: false, managedInstances: 2 });
  expect(two).toMatchObject({ resourceSpans: 3, spansAreDerived: true, managedInstances: 3 });
});

const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('what else the process does goes before an inspection', async () => {
  const path = inDirectory('polite');
  await buildArchive(smallHistory, path);
  let niceness: number[] = [];
  const looking: Storage = {
    ...keepsAll,
    jsonbText: async () => {
      niceness = readdirSync('/proc/self/task').map((thread) => getPriority(Number(thread)));
      return null;
    },
  };
  await inspector.inspectForRestore(inspected(path), looking, null);
  const own = getPriority();
  expect(niceness).toContain(own);
  expect(niceness).toContain(Math.min(own + 5, 19));
});

describe('nothing is left of an inspection', () => {
  test.each(['called off', 'failed by the database'])('that is %s', async (how) => {
    const path = inDirectory(`ended ${how}`);
    await buildArchive(smallHistory, path);
    const ending = new AbortController();
    const storage = {
      ...keepsAll,
      jsonbText: async () => {
        if (how === 'called off') {
          ending.abort(new Error(how));
          return new Promise<never>(() => {});
        }
        throw new Error(how);
      },
    };
    const rows = rowPathsOf(path);
    await expect(inspector.inspectForRestore(inspected(path, ending.signal), storage, rows)).rejects.toThrow(
      how,
    );
    expect(existsSync(`${path}.spans`)).toBe(false);
  });
});

test('a document that takes more memory than there is for it is refused, and the next inspection goes on', async () => {
  const path = inDirectory('much');
  const outputs = Array.from({ length: 400_000 }, (_, i) => `"output_${i}": {}`).join();
  await buildArchive(historyOf(`{"version": 4, "outputs": {${outputs}}}`), path);
  const narrow = new Inspector(1, 0, { maxHeapMb: 24 });
  try {
    await expect(narrow.inspectForRestore(inspected(path), keepsAll, null)).rejects.toMatchObject({
      name: 'RefusedDocumentError',
      document: { serial: 1n },
      reason: 'it takes more than 24 MiB to check',
    });
    const small = inDirectory('small');
    await buildArchive(historyOf('{"version": 4}'), small);
    await narrow.inspectForRestore(inspected(small), keepsAll, null);
  } finally {
    await narrow.close();
  }
});

test('a document that takes more time than there is for it is refused', async () => {
  const path = inDirectory('long');
  await buildArchive(historyOf(`{"version": 4, "unknown": [${'0,'.repeat(20_000_000)}0]}`), path);
  const hasty = new Inspector(1, 0, { maxDocumentCpuMs: 50 });
  try {
    await expect(hasty.inspectForRestore(inspected(path), keepsAll, null)).rejects.toMatchObject({
      name: 'RefusedDocumentError',
      document: { serial: 1n },
      reason: 'it takes more than 50 ms to check',
    });
  } finally {
    await hasty.close();
  }
});

test('large documents take turns, whoever leaves without having had one; others pass them', async () => {
  const MEGABYTE = 1024 * 1024;
  const archiveOf = async (name: string, ...megabytes: number[]) => {
    const path = inDirectory(name);
    // What repeats itself would be refused for unpacking to so much.
    const documents = megabytes.map(
      (size) => `{"version": 4, "text": "${randomBytes((size * MEGABYTE) / 2).toString('hex')}"}`,
    );
    await buildArchive(historyOf(...documents), path);
    return path;
  };
  const [large, small] = [await archiveOf('large', 33), await archiveOf('small enough', 31, 31, 31)];
  const calledOff = new AbortController();
  const held = Promise.withResolvers<void>();
  const holding: Storage = {
    ...keepsAll,
    jsonbText: () => {
      held.resolve();
      return new Promise<never>(() => {});
    },
  };
  const three = new Inspector(3, 0);
  try {
    const first = three.inspectForRestore(inspected(large, calledOff.signal), holding, null);
    await held.promise;
    let isSecondOver = false;
    const second = three.inspectForRestore(inspected(large), keepsAll, null).finally(() => {
      isSecondOver = true;
    });
    await three.inspectForRestore(inspected(small), keepsAll, null);
    expect(isSecondOver).toBe(false);
    calledOff.abort(new Error('called off'));
    await expect(first).rejects.toThrow('called off');
    await second;
  } finally {
    await three.close();
  }
});

test('an inspection that no thread can be made for fails, and does not wait for ever', async () => {
  const path = inDirectory('no thread');
  await buildArchive(smallHistory, path);
  const starved = new Inspector(1, 0, { maxHeapMb: 8 });
  try {
    await expect(starved.inspectForRestore(inspected(path), keepsAll, null)).rejects.toMatchObject({
      code: 'ERR_WORKER_OUT_OF_MEMORY',
    });
  } finally {
    await starved.close();
  }
});

test('an archive that never becomes whole fails its inspection with what the writing failed with', async () => {
  const path = inDirectory('growing');
  await writeFile(path, '');
  const growth = new Growth();
  const inspection = inspector.inspectForExport(inspected(path), growth);
  growth.fail(new Error('the disk is full'));
  await expect(inspection).rejects.toThrow('the disk is full');
});

describe('a snapshot too large to be read beside everything else', () => {
  const large = (attributes: string) =>
    Buffer.from(thingsDocument(7n, { a: `{"text": "${'x'.repeat(300_000)}"}`, b: attributes }));
  const rows = () => ({ resources: inDirectory(`r${++asides}`), outputs: inDirectory(`o${asides}`) });
  let asides = 0;

  test('has the rows it would have here', async () => {
    const document = large('{"id": 1}');
    const here = await readSnapshot(document, keepsAll);
    const there = await inspector.readSnapshot(document, keepsAll, rows());
    expect(there).toMatchObject({ lineage: here.lineage, managedInstances: 2, terraformVersion: '1.9.8' });
    expect(await all(there.resources())).toMatchObject(
      Array.from(here.resources() as Iterable<ResourceRow['resource']>, (row) => {
        const { address, attributes, attributesHash, dependencies, indexValue, schemaVersion } = row;
        return { address, attributes, attributesHash, dependencies, indexValue, schemaVersion };
      }),
    );
    expect(await all(there.outputs())).toMatchObject(await all(here.outputs()));
  });

  test('is refused in the words it would be refused in here', async () => {
    const document = large('{"id": 1e999999}');
    const refusals = await Promise.allSettled([
      readSnapshot(document, keepsAll),
      inspector.readSnapshot(document, keepsAll, rows()),
    ]);
    const [here, there] = refusals.map((each) => (each.status === 'rejected' ? each.reason.message : null));
    expect(here).toMatch(/^This document cannot be held by Kilolock: at \$\.resources/);
    expect(there).toBe(here);
  });
});
