import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { caseNumbers, insertHistory, loadCase, loadTerraformHistory } from '../support/fixtures.ts';

let given: TestDatabase;
beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());

const micros = (text: string) => text.replace(' ', 'T').replace('+00', 'Z');

test('the Terraform history is ten documents in the order of their serials', () => {
  const history = loadTerraformHistory();
  expect(history.map(({ serial }) => serial)).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n, 10n]);
  expect(history.every(({ document }) => document.startsWith('{'))).toBe(true);
});

describe('a case inserted is in the rows as it was written', () => {
  test.each(caseNumbers().filter((number) => loadCase(number).via === 'database'))('%s', async (number) => {
    const history = loadCase(number);
    const { stateId, versionIds } = await insertHistory(given.database, history, { name: `case/${number}` });

    const state = await given.database.pool.query(
      `select states.name, lineage, serial as current_serial from states
       left join state_versions on state_versions.id = current_version_id where states.id = $1`,
      [stateId],
    );
    expect(state.rows).toEqual([
      { name: `case/${number}`, lineage: history.state.lineage, current_serial: history.current_serial },
    ]);

    const versions = await given.database.pool.query(
      `select serial, source, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US+00') as created_at,
         created_by, terraform_version, raw_state::text from state_versions where state_id = $1 order by serial`,
      [stateId],
    );
    expect(versions.rows).toMatchObject(
      history.versions.map(({ raw_state, ...version }) => ({ ...version, raw_state: expect.any(String) })),
    );
    expect([...versionIds.keys()]).toEqual(history.versions.map(({ serial }) => serial));

    const tags = await given.database.pool.query(
      `select tag, serial, description, actor, tag.created_at, tag.updated_at
       from state_version_tags tag join state_versions version on version.id = state_version_id
       where tag.state_id = $1 order by tag.created_at`,
      [stateId],
    );
    expect(tags.rows).toMatchObject(history.tags.map((tag) => ({ ...tag })));
    const times = tags.rows.flatMap((row) => [micros(row.created_at), micros(row.updated_at)]);
    expect(new Set(times).size).toBe(times.length);
  });
});
