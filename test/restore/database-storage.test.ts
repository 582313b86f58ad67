import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { SELF_HOSTED_TENANT_ID } from '../../src/history/namespace.ts';
import { DatabaseStorage } from '../../src/restore/database-storage.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { jsonbTexts } from '../support/jsonb-texts.ts';

let given: TestDatabase;
beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());

const textOf = (document: string) =>
  new DatabaseStorage(given.database, SELF_HOSTED_TENANT_ID).jsonbText(Buffer.from(document));

test.each([
  ['that is short', '{"b":1,"a":[1e3,"\\u00e9"]}'],
  // Two, three and four bytes a character, whose borders are none of any piece's.
  ['of many pieces', `["${'é漢😀'.repeat(100_000)}",1.50]`],
  ['of escapes alone', `["${'\\u0001'.repeat(200_000)}",0]`],
])('the text that jsonb gives out for a document %s comes to the byte', async (_length, document) => {
  const [expected] = await jsonbTexts(given.database.pool, [document]);
  const text = await textOf(document);
  expect(text instanceof Uint8Array && Buffer.from(text).toString()).toBe(expected);
});

test('of a document that is jsonb’s own text nothing comes', async () => {
  expect(await textOf(`["${'é漢😀'.repeat(100_000)}", 1.50]`)).toBeNull();
});

test('what PostgreSQL does not read it says, and goes on', async () => {
  expect(await textOf('{"a": "\\u0000"}')).toMatchObject({ path: '$' });
  expect(await textOf('{"a": 1}')).toBeNull();
});
