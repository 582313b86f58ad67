import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connectDatabase, type KilolockDatabase } from '../../src/database/connection.ts';
import { buildArchive } from '../archive/support/build-archive.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import {
  type Backend,
  createCaller,
  openBackend,
  runImport,
  stateIdOf,
} from '../operations/support/backend.ts';
import { stateText } from '../terraform/state-text.ts';

let backend: Backend;
let knowsLz4: boolean;
beforeAll(async () => {
  backend = await openBackend();
  const { rows } = await backend.database.pool.query<{ knows: boolean }>(
    "select 'lz4' = any(enumvals) as knows from pg_settings where name = 'default_toast_compression'",
  );
  knowsLz4 = rows[0]?.knows ?? false;
});
afterAll(() => backend.close());

const inDirectory = temporaryDirectory();

async function compressionOfImported(database: KilolockDatabase): Promise<string | null> {
  const caller = { ...(await createCaller(backend)), database };
  const path = inDirectory('compressible.klstate');
  const rawState = stateText(`{"attributes": {"text": "${'compressible '.repeat(2000)}"}}`);
  await buildArchive({ versions: [{ serial: 1n, rawState }] }, path);
  const stateId = stateIdOf(await runImport(backend, caller, path));
  const { rows } = await backend.database.pool.query<{ method: string | null }>(
    'select pg_column_compression(raw_state) as method from state_versions where state_id = $1',
    [stateId],
  );
  return rows[0]?.method ?? null;
}

test('raw states are compressed with lz4 where the server knows it', async () => {
  expect(await compressionOfImported(backend.database)).toBe(knowsLz4 ? 'lz4' : 'pglz');
});

test('what an operator chose is left as it is', async () => {
  const chosen = encodeURIComponent('-c default_toast_compression=pglz');
  const database = connectDatabase({ connectionString: `${backend.connectionString}?options=${chosen}` });
  try {
    expect(await compressionOfImported(database)).toBe('pglz');
  } finally {
    await database.close();
  }
});
