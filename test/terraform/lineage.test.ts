import { afterAll, beforeAll, expect, test } from '@jest/globals';
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

test.each([
  '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
  '7C1E5D1A-3B52-4C8E-9A44-0D8F2B6C9E10',
  '7c1e5d1a3b524c8e9a440d8f2b6c9e10',
  '{7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10}',
  '{7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
  '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10}',
  '7c1e-5d1a-3b52-4c8e-9a44-0d8f-2b6c-9e10',
  '7c1e-5d1a-3b52-4c8e-9a44-0d8f-2b6c-9e10-',
  '7c1e--5d1a-3b52-4c8e-9a44-0d8f-2b6c-9e10',
  '7c-1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
  '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e1',
  '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e100',
  '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e1g',
  ' 7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
  '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10\n',
  'urn:uuid:7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
  '00000000-0000-0000-0000-000000000000',
])('the lineage %j is accepted exactly if PostgreSQL takes it for a uuid', async (lineage) => {
  const isUuid = await client.query('select $1::text::uuid', [lineage]).then(
    () => true,
    () => false,
  );
  const document = Buffer.from(JSON.stringify({ version: 4, serial: 1, lineage }));
  if (isUuid) expect(readStateDocument(document).lineage).toBe(lineage);
  else expect(() => readStateDocument(document)).toThrow('lineage');
});
