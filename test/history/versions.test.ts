import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DigestBudget } from '../../src/history/digest-budget.ts';
import type { Caller } from '../../src/history/states.ts';
import {
  countVersions,
  findLockHolders,
  findVersions,
  listOutputNames,
  listTags,
  listVersions,
  readRawState,
  readRawStateFacts,
  readVersionContents,
} from '../../src/history/versions.ts';
import { AttributesHasher } from '../../src/terraform/attributes-hash.ts';
import { readStateDocument } from '../../src/terraform/document.ts';
import { projectResources } from '../../src/terraform/projection.ts';
import { type Backend, createCaller, openBackend } from '../operations/support/backend.ts';
import { annotate, post, postTerraformHistory } from '../operations/support/histories.ts';
import { insertHistory, loadCase, loadTerraformHistory } from '../support/fixtures.ts';
import { jsonbTexts } from '../support/jsonb-texts.ts';
import { stateText } from '../terraform/state-text.ts';

let backend: Backend;
let caller: Caller;
let stateId: string;
let otherId: string;
beforeAll(async () => {
  backend = await openBackend();
  caller = await createCaller(backend);
  stateId = await postTerraformHistory(backend.database, caller, 'app');
  await annotate(backend.database, stateId);
  ({ stateId: otherId } = await post(backend.database, caller, 'other', documents[0] ?? ''));
});
afterAll(() => backend.close());

const documents = loadTerraformHistory().map(({ document }) => document);

const versionsOf = async (id: string) =>
  (await listVersions(backend.database.for('record'), [id], { before: null, limit: 100 })).get(id) ?? [];

describe('the versions of a state', () => {
  test('come newest serial first, a page at a time, for each state its own', async () => {
    const page = async (before: bigint | null, limit: number) => {
      const pages = await listVersions(backend.database.for('record'), [stateId, otherId], { before, limit });
      return [stateId, otherId].map((id) => pages.get(id)?.map(({ serial }) => serial) ?? []);
    };
    expect(await page(null, 3)).toEqual([[10n, 9n, 8n], [1n]]);
    expect(await page(8n, 3)).toEqual([[7n, 6n, 5n], [1n]]);
    expect(await page(1n, 3)).toEqual([[], []]);
  });

  test('say which of them is current, wherever the pointer stands', async () => {
    const { namePrefix, tenantId } = caller.namespace;
    const { stateId: id } = await insertHistory(backend.database, loadCase('06'), {
      tenantId,
      name: `${namePrefix}gaps`,
    });
    const versions = await versionsOf(id);
    expect(versions.map(({ serial, isCurrent }) => [serial, isCurrent])).toEqual([
      [9n, false],
      [5n, true],
      [1n, false],
      [0n, false],
    ]);
    expect(versions.at(-1)).toMatchObject({ createdAt: '2026-03-01T10:00:00.000007Z', source: 'genesis' });
  });

  test('are found by serial; a serial of another state is not', async () => {
    const db = backend.database.for('read');
    const found = await findVersions(db, [
      { stateId, serial: 10n },
      { stateId: otherId, serial: 10n },
      { stateId: otherId, serial: 1n },
      { stateId, serial: 9223372036854775807n },
    ]);
    expect(found.map((version) => [version.stateId, version.serial]).sort()).toEqual(
      [
        [stateId, 10n],
        [otherId, 1n],
      ].sort(),
    );
    expect(await countVersions(db, [stateId, otherId])).toEqual(
      new Map([
        [stateId, 10],
        [otherId, 1],
      ]),
    );
  });
});

test('another spelling of the same attributes opens rows and is no change', async () => {
  const document = stateText('{"attributes": {"id": "i-1", "a": 1}, "index_key": 0}, {"index_key": 1}');
  const respelled = document.replace('{"id": "i-1", "a": 1}', '{"a":1,"id":"\\u0069-1"}');
  const { stateId: id } = await post(backend.database, caller, 'spelled', document);
  await post(backend.database, caller, 'spelled', respelled);
  await post(backend.database, caller, 'spelled', document.replace('"a": 1', '"a": 2'));
  const { rows } = await backend.database.pool.query('select from resources where state_id = $1', [id]);
  expect(rows).toHaveLength(4);
  const versions = (await versionsOf(id)).toReversed();
  const contents = await readVersionContents(
    backend.database.for('record'),
    versions.map((version) => version.id),
  );
  expect(versions.map((version) => contents.get(version.id)?.changed)).toEqual([0, 0, 1]);
});

test('what a version holds, and how it differs from the one before, is what its document says', async () => {
  const versions = (await versionsOf(stateId)).toReversed();
  const contents = await readVersionContents(
    backend.database.for('record'),
    versions.map(({ id }) => id),
  );
  let before = new Map<string, string | undefined>();
  for (const [index, version] of versions.entries()) {
    const document = readStateDocument(Buffer.from(documents[index] ?? ''));
    const resources = [...projectResources(document, new AttributesHasher('as-written')).rows()];
    const attributes = await jsonbTexts(
      backend.database.pool,
      resources.map((resource) => resource.attributes.toString()),
    );
    const now = new Map(resources.map(({ address }, i) => [address, attributes[i]]));
    const added = [...now.keys()].filter((address) => !before.has(address));
    const changed = [...now].filter(([address, text]) => before.has(address) && before.get(address) !== text);
    expect(contents.get(version.id)).toEqual({
      resources: now.size,
      added: added.length,
      changed: changed.length,
      removed: [...before.keys()].filter((key) => !now.has(key)).length,
    });
    before = now;
  }
});

test('size and digest of a raw state are those of its bytes, and the bytes are PostgreSQL’s own', async () => {
  const versions = await versionsOf(stateId);
  const facts = await readRawStateFacts(backend.database, versions, new DigestBudget());
  for (const version of versions) {
    const { text = '' } = (await readRawState(backend.database.for('read'), version.id, 1e6)) ?? {};
    expect(facts.get(version.id)).toEqual({
      sha256: createHash('sha256')
        .update(text ?? '')
        .digest('hex'),
      byteLength: BigInt(Buffer.byteLength(text ?? '')),
    });
  }
  const { rows } = await backend.database.pool.query(
    'select raw_state::text as text from state_versions where id = $1',
    [versions[0]?.id],
  );
  const read = (maxBytes: number) =>
    readRawState(backend.database.for('read'), versions[0]?.id ?? '', maxBytes);
  const byteLength = Buffer.byteLength(rows[0].text);
  expect(await read(byteLength)).toEqual({ byteLength, text: rows[0].text });
  expect(await read(byteLength - 1)).toEqual({ byteLength, text: null });
});

test('output names are sorted by code point, and are those of the document', async () => {
  const { stateId: id } = await post(
    backend.database,
    caller,
    'outputs',
    '{"version": 4, "serial": 1, "lineage": "", "resources": [], "outputs": {"b": {"value": 1, "type": "number"}, "B": {"value": "s", "type": "string", "sensitive": true}, "é": {"value": null, "type": "dynamic"}, "\ufffd": {}, "🚀": {}}}',
  );
  const [version] = await versionsOf(id);
  const names = await listOutputNames(backend.database.for('record'), [version?.id ?? '']);
  expect(names.get(version?.id ?? '')).toEqual(['B', 'b', 'é', '\ufffd', '🚀']);
});

test('tags come by name in the order of code points, with NULL and empty descriptions apart', async () => {
  const tags = (await listTags(backend.database.for('record'), [stateId, otherId])).get(stateId) ?? [];
  expect(tags.map(({ tag, serial, description }) => [tag, serial, description])).toEqual([
    ['Release', 7n, ''],
    ['before-resize', 3n, 'three web servers — before'],
    ['release', 7n, null],
  ]);
  expect(tags[2]).toMatchObject({
    createdAt: '2026-03-03T10:00:00.123456Z',
    updatedAt: '2026-03-09T23:59:59.999999Z',
  });
});

test('the holder of a lock is the oldest one’s name, or the lock’s id when it has none', async () => {
  await backend.database.pool.query(
    `insert into state_locks (state_id, tenant_id, lock_id, who, acquired_at) values
       ($1, $3, 'second', 'bob', '2026-03-02T10:00:00.000002Z'),
       ($1, $3, 'first', 'alice', '2026-03-02T10:00:00.000001Z'),
       ($2, $3, 'nameless', '', '2026-03-02T10:00:00Z')`,
    [stateId, otherId, caller.namespace.tenantId],
  );
  expect(await findLockHolders(backend.database.for('record'), [stateId, otherId])).toEqual(
    new Map([
      [stateId, 'alice'],
      [otherId, 'nameless'],
    ]),
  );
});

describe('a row that somebody blew up', () => {
  test('shows its texts cut and marked, so that a page of them has a bound', async () => {
    const { stateId: id } = await post(backend.database, caller, 'long', documents[0] ?? '');
    await backend.database.pool.query(
      `update state_versions set created_by = repeat('é', 65536), source = repeat('x', 5000000) where state_id = $1`,
      [id],
    );
    const [version] = await versionsOf(id);
    expect(version?.createdBy).toBe('é'.repeat(65536));
    expect(version?.source).toBe(`${'x'.repeat(65536)}…`);
  });

  test('does not end the process by a raw state that unfolds when it is printed', async () => {
    const { stateId: id } = await post(backend.database, caller, 'unfolding', documents[0] ?? '');
    await backend.database.pool.query(
      `update state_versions set raw_state = ('[' || repeat('1e131000, ', 2100) || '0]')::jsonb where state_id = $1`,
      [id],
    );
    const [version] = await versionsOf(id);
    await expect(readRawState(backend.database.for('read'), version?.id ?? '', 1e6)).rejects.toMatchObject({
      code: 'HISTORY_INCONSISTENT',
      message: expect.stringMatching(/serial 1 has 2751\d{5} bytes/),
    });
  });
});
