import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import pg from 'pg';
import { readStateDocument } from '../../src/terraform/document.ts';
import { createEmptyTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createEmptyTestDatabase();
  client = new pg.Client({ connectionString: database.connectionString });
  await client.connect();
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

const leaf = fc.oneof(
  fc.constantFrom('0', '-0', '7', '-7.5', '0.1', '1e3', '1e-30', '10001', '12345.67891', '1e400', '-1e-400'),
  fc.constantFrom('""', '"a"', '"\\n"', '"\\u0001"', '"é"', 'true', 'false', 'null', '{}', '[]'),
  fc.bigInt().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
);

/** JSON without white space, of which jsonb's form is the longest beside it. */
const compactJson = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('value')).map((items) => `[${items}]`),
    fc.array(tie('value')).map((items) => `{${items.map((item, key) => `"${key}":${item}`)}}`),
  ),
})).value;

test('no document has a longer form as jsonb than was foreseen of it', async () => {
  const many = fc.array(compactJson, { minLength: 1, maxLength: 30 });
  const documents = [
    ...fc.sample(many, 100),
    ...['0', '{}', '[[]]', '"a"', 'null', '{"a":0}'].map((item) => Array<string>(1000).fill(item)),
  ].map(
    (values) =>
      `{"version":4,"outputs":{"o":{"value":[${values}]}},"resources":[{"mode":"data","instances":[{"attributes":[${values}]}]}],"x":[${values}]}`,
  );
  expect((await kept(documents)).filter(({ bytes, foreseen }) => bytes > foreseen)).toEqual([]);
  const printed = (await kept(documents)).map(({ text }) => text);
  expect((await kept(printed)).filter(({ bytes, foreseen }) => bytes > foreseen)).toEqual([]);
});

test('white space counts as little as jsonb keeps it', async () => {
  const instances = [{ attributes: { ids: [1, 2, 3], name: 'a b', none: {}, nested: [[{}], null] } }];
  const document = { version: 4, resources: [{ mode: 'data', instances }] };
  const spellings = [0, 2, 8].map((indent) => JSON.stringify(document, null, indent));
  const [first, ...others] = (await kept(spellings)).map(({ foreseen }) => foreseen);
  expect(others).toEqual([first, first]);
});

/** What jsonb makes of documents, and what was foreseen of each. */
async function kept(
  documents: readonly string[],
): Promise<{ text: string; bytes: number; foreseen: number }[]> {
  const { rows } = await client.query<{ text: string; bytes: number }>(
    `select pg_column_size(json) as bytes, json::text as text from (
       select given.json::jsonb, n from unnest($1::text[]) with ordinality as given (json, n) offset 0) t order by n`,
    [documents],
  );
  return rows.map((row, n) => ({
    ...row,
    foreseen: readStateDocument(Buffer.from(documents[n] ?? '')).index.jsonbBytes,
  }));
}
