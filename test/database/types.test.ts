import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { kilolockCatalog, type Relation, readRelation } from '../support/catalog.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { generateTypes } from './support/generate-types.ts';

const FILE = fileURLToPath(new URL('../../src/database/types.ts', import.meta.url));
const BIOME = fileURLToPath(new URL('../../node_modules/@biomejs/biome/bin/biome', import.meta.url));

let given: TestDatabase;
beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());

/** The project's own tables, as the migrations have made them. */
async function ownTables(): Promise<Record<string, Relation>> {
  const { rows } = await given.database.pool.query<{ name: string }>(
    `select 'state_archive.' || relname as name from pg_class
     where relnamespace = 'state_archive'::regnamespace and relkind = 'r' and relname not like 'kysely%'`,
  );
  const relations = rows.map(async ({ name }) => [name, await readRelation(given.database, name)] as const);
  return Object.fromEntries(await Promise.all(relations));
}

/** `UPDATE_DOCS=1 npm test -- test/database/types` writes the file anew. */
test('the types of the database are those of the catalogues, and bigint, timestamptz and jsonb are never parsed', async () => {
  const kilolock = Object.entries(kilolockCatalog).filter(([, { kind }]) => kind === 'table');
  const source = generateTypes({ ...Object.fromEntries(kilolock), ...(await ownTables()) });
  const formatted = execFileSync(process.execPath, [BIOME, 'format', `--stdin-file-path=${FILE}`], {
    input: source,
    encoding: 'utf8',
  });
  if (process.env.UPDATE_DOCS) writeFileSync(FILE, formatted);
  expect(readFileSync(FILE, 'utf8')).toBe(formatted);
});
