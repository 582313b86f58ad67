import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { inTransaction } from '../../src/database/connection.ts';
import { DigestBudget } from '../../src/history/digest-budget.ts';
import { historyOf } from '../../src/history/history.ts';
import { type ManifestPreview, previewOf, readManifestPreviews } from '../../src/history/manifest-preview.ts';
import { findStateAtOnce } from '../../src/history/state-at-once.ts';
import { postHistory, tagVersion } from '../graphql/support/states.ts';
import { interceptQueries } from '../operations/support/intercept-queries.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;
let stateId: string;
let states = 0;

beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());
beforeEach(async () => {
  states += 1;
  const history = [{ resources: { a: '1' } }, { resources: { a: '2', b: '1' } }];
  ({ stateId } = await postHistory(given.database, null, `preview/${states}`, history));
  await tagVersion(given.database, stateId, 1n, 'first');
});

async function preview(): Promise<ManifestPreview> {
  const found = (await readManifestPreviews(given.database, [stateId], new DigestBudget())).get(stateId);
  if (found === undefined || found instanceof Error) throw new Error('There is no preview.');
  return found;
}

/** As a request finds it by its name: what is known of the state's history is not sent again. */
async function previewAtOnce(database = given.database): Promise<ManifestPreview> {
  const label = `preview/${states}`;
  const found = await findStateAtOnce(database.for('read'), null, label, { withHistory: true });
  const made = found?.history && previewOf(historyOf(found.history));
  if (!made) throw new Error('There is no preview.');
  return made;
}

const change = (statement: string) => given.database.pool.query(statement, [stateId]);

test('a preview is the same while nothing of its history changes', async () => {
  expect(await preview()).toEqual(await preview());
});

describe.each([
  ['by its id', preview],
  ['at once with its state', previewAtOnce],
])('asked for %s', (_how, ask) => {
  // Until the digests are made there is another history to know.
  beforeEach(async () => {
    await preview();
    await ask();
  });

  test.each([
    [
      'the lineage',
      'update states set lineage = gen_random_uuid() where id = $1',
      ['lineage', 'historyDigest'],
    ],
    [
      'the current pointer',
      'update states set current_version_id = (select id from state_versions where state_id = $1 and serial = 1) where id = $1',
      ['currentSerial', 'currentVersionId', 'historyDigest'],
    ],
    [
      'the author of a version',
      "update state_versions set created_by = 'bob' where state_id = $1 and serial = 1",
      ['historyDigest'],
    ],
    // Of all versions: one that is written anew by itself comes to stand behind the others, which a mark tells anyway.
    [
      'an author who becomes the empty text',
      "update state_versions set created_by = case when created_by is null then '' end where state_id = $1",
      ['historyDigest'],
    ],
    [
      'a text that moves from one column to the next',
      `update state_versions set source = source || coalesce(created_by, ''), created_by = ''
       where state_id = $1`,
      ['sources', 'historyDigest'],
    ],
    [
      'the time of a version',
      "update state_versions set created_at = created_at - interval '1 microsecond' where state_id = $1 and serial = 1",
      ['firstCreatedAt', 'historyDigest'],
    ],
    [
      'the digest of a version that is on record',
      `update state_archive.version_digest set sha256 = sha256('') where state_version_id =
       (select id from state_versions where state_id = $1 and serial = 1)`,
      ['historyDigest'],
    ],
    [
      'the description of a tag',
      "update state_version_tags set description = 'new' where state_id = $1",
      ['historyDigest'],
    ],
    ['a tag less', 'delete from state_version_tags where state_id = $1', ['tagCount', 'historyDigest']],
    [
      'an event more',
      `insert into events (kind, state_id, tenant_id, payload)
       select 'state_push', id, tenant_id, '{}' from states where id = $1`,
      ['eventCount'],
    ],
    [
      'a span less',
      "delete from resources where state_id = $1 and address like '%.b'",
      ['resourceSpanCount'],
    ],
  ] as const)('a preview follows its history: %s', async (_what, statement, changed) => {
    const before = await ask();
    await change(statement);
    const after = await ask();
    const different = (Object.keys(before) as (keyof ManifestPreview)[]).filter(
      (name) => String(before[name]) !== String(after[name]),
    );
    expect(different.sort()).toEqual([...changed].sort());
  });

  test.each([
    [
      'a version',
      "update state_versions set created_at = 'infinity' where state_id = $1 and serial = 1",
      'created_at',
    ],
    [
      'a version',
      "update state_versions set created_at = '0044-03-15 BC' where state_id = $1 and serial = 1",
      'created_at',
    ],
    ['a tag', "update state_version_tags set updated_at = '10000-01-01' where state_id = $1", 'updated_at'],
    ['an event', "update events set created_at = '-infinity' where state_id = $1", 'a time outside'],
    [
      'a resource',
      "update resources set created_at = '10000-01-01' where state_id = $1 and address like '%.b'",
      'terraform_data.b',
    ],
  ])('a preview refuses a time of %s that no archive can hold: %s', async (_what, statement, told) => {
    await ask();
    await change(statement);
    await expect(ask()).rejects.toThrow(told);
  });
});

test('a history that is known is not sent again, and told anew in the same request when it has changed', async () => {
  await preview();
  let sent: string[] = [];
  const database = interceptQueries(given.database, (statement) => {
    if (statement.includes('resources')) sent.push(statement);
  });
  const sends = async () => {
    sent = [];
    await previewAtOnce(database);
    return sent.map((statement) => statement.includes('json_agg'));
  };
  expect(await sends()).toEqual([true]);
  expect(await sends()).toEqual([false]);
  await change("update state_versions set created_by = 'bob' where state_id = $1 and serial = 1");
  expect(await sends()).toEqual([false, true]);
  expect(await sends()).toEqual([false]);
});

test('a preview is of the state that has the name, though another had it a moment ago', async () => {
  await preview();
  const first = await previewAtOnce();
  expect(await previewAtOnce()).toEqual(first);
  const name = `preview/${states}`;
  await change("update states set name = name || '/former' where id = $1");
  const other = await postHistory(given.database, null, name, [{ resources: { c: '3' } }]);
  await readManifestPreviews(given.database, [other.stateId], new DigestBudget());
  const second = await previewAtOnce();
  expect(second.versionCount).toBe(1);
  expect(second.historyDigest).not.toBe(first.historyDigest);
});

test('a history that is too long to be kept is read each time', async () => {
  await change("update state_versions set created_by = repeat('x', 1024 * 1024) where state_id = $1");
  await change("update state_versions set source = repeat('y', 1024) where state_id = $1");
  await preview();
  const before = await previewAtOnce();
  expect(await previewAtOnce()).toEqual(before);
  await change("update state_versions set created_by = 'bob' where state_id = $1 and serial = 1");
  expect((await previewAtOnce()).historyDigest).not.toBe(before.historyDigest);
});

test('a preview finds its rows by keys, so that what imports are writing in the same tables costs it nothing', async () => {
  // A state that has nearly all rows of these tables would be read as whole tables are.
  const many = Array.from({ length: 20 }, (_, version) => ({
    resources: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`r${i}`, `${version}`])),
  }));
  ({ stateId } = await postHistory(given.database, null, 'preview/many', many));
  await preview();
  await given.database.pool.query('analyze');
  let sent = { text: '', values: [] as unknown[] };
  const database = interceptQueries(given.database, (statement) => {
    if (statement.includes('resources')) sent = { text: statement, values: [[stateId]] };
  });
  await readManifestPreviews(database, [stateId], new DigestBudget());
  const { rows } = await inTransaction(given.database, 'read', ({ client }) =>
    client.query<{ 'QUERY PLAN': string }>(`explain ${sent.text}`, sent.values),
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toContain('on resources');
  expect(plan).not.toContain('Seq Scan');
});
