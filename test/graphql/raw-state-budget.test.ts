import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { RawStateBudget } from '../../src/graphql/raw-state-budget.ts';
import { type Backend, createCaller, openBackend } from '../operations/support/backend.ts';
import { post } from '../operations/support/histories.ts';
import { thingsDocument } from '../restore/support/histories.ts';

let backend: Backend;
/** Two versions of this many bytes each. */
let [ids, size]: [string[], number] = [[], 0];

beforeAll(async () => {
  backend = await openBackend();
  const caller = await createCaller(backend);
  for (const serial of [1n, 2n]) await post(backend.database, caller, 'app', thingsDocument(serial, {}));
  const { rows } = await backend.database.pool.query(
    'select id, octet_length(raw_state::text) as size from state_versions order by serial',
  );
  ids = rows.map(({ id }) => id);
  size = rows[0].size;
  expect(rows[1].size).toBe(size);
});
afterAll(() => backend.close());

const TOO_MUCH = { extensions: { code: 'BAD_USER_INPUT' } };

test('one request is given so many bytes of raw states, whichever asks first, and is refused the rest', async () => {
  const budget = new RawStateBudget(2 * size - 1);
  const [first = '', second = ''] = ids;
  const db = backend.database.for('read');
  const read = await Promise.allSettled([budget.read(db, first), budget.read(db, second)]);
  expect(read).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: TOO_MUCH }]);
});

test('what stands in the answer twice counts twice', async () => {
  const budget = new RawStateBudget(2 * size);
  const raw = await budget.read(backend.database.for('read'), ids[0] ?? '');
  expect([raw?.take().length, raw?.take().length]).toEqual([size, size]);
  expect(() => raw?.take()).toThrow(expect.objectContaining(TOO_MUCH));
});
