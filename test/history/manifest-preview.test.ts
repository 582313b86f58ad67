import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { inTransaction } from '../../src/database/connection.ts';
import { DigestBudget } from '../../src/history/digest-budget.ts';
import { type ManifestPreview, readManifestPreviews } from '../../src/history/manifest-preview.ts';
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

const change = (statement: string) => given.database.pool.query(statement, [stateId]);

test('a preview is the same while nothing of its history changes', async () => {
  expect(await preview()).toEqual(await preview());
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
  ['a span less', "delete from resources where state_id = $1 and address like '%.b'", ['resourceSpanCount']],
] as const)('a preview follows its history: %s', async (_what, statement, changed) => {
  const before = await preview();
  await change(statement);
  const after = await preview();
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
  await preview();
  await change(statement);
  await expect(preview()).rejects.toThrow(told);
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
