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
  const { rows } = await client.query<{ bytes: number }>(
    'select pg_column_size(t.json::jsonb) as bytes from unnest($1::text[]) with ordinality as t (json, n) order by n',
    [documents],
  );
  const foreseen = documents.map((text) => readStateDocument(Buffer.from(text)).jsonbBytes);
  expect(documents.filter((_, n) => (rows[n]?.bytes ?? Infinity) > (foreseen[n] ?? 0))).toEqual([]);
});
