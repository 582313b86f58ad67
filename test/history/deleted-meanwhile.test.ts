import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DigestBudget } from '../../src/history/digest-budget.ts';
import { readManifestPreviews } from '../../src/history/manifest-preview.ts';
import type { Caller } from '../../src/history/states.ts';
import { type Backend, createCaller, openBackend } from '../operations/support/backend.ts';
import { postTerraformHistory } from '../operations/support/histories.ts';
import { interceptQueries } from '../operations/support/intercept-queries.ts';

let backend: Backend;
let caller: Caller;

beforeAll(async () => {
  backend = await openBackend();
  caller = await createCaller(backend);
});

afterAll(() => backend.close());

test('a state that is deleted while its digests are made has no preview, and the request ends', async () => {
  const stateId = await postTerraformHistory(backend.database, caller, 'app');
  let statements = 0;
  const database = interceptQueries(backend.database, async (statement) => {
    statements += 1;
    if (statement.includes('version_digest') && statement.includes('missing'))
      await backend.database.pool.query('delete from states where id = $1', [stateId]);
  });
  expect(await readManifestPreviews(database, [stateId], new DigestBudget())).toEqual(new Map());
  expect(statements).toBe(3);
});
