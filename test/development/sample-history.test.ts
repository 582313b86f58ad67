import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { loadSampleHistory, SAMPLE_LABEL } from '../../src/development/sample-history.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;
beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());

test('the sample is the work of several people over weeks, and each row is as old as the version that brought it', async () => {
  const { pool } = given.database;
  expect(await loadSampleHistory(given.database)).toBe(true);
  const { rows: versions } = await pool.query(
    `select serial, created_by, created_at, created_at - lag(created_at) over (order by serial) as gap
     from state_versions order by serial`,
  );
  expect(versions).toHaveLength(10);
  expect(new Set(versions.map((version) => version.created_by)).size).toBe(4);
  const { rows } = await pool.query(
    `select name, (select min(created_at) from state_versions) = states.created_at as begins,
       (select max(created_at) from state_versions) = updated_at as ends,
       (select max(created_at) - min(created_at) > interval '4 weeks' from state_versions) as long,
       (select bool_and(created_at > before) from (
          select created_at, lag(created_at) over (order by serial) as before from state_versions) step
        where before is not null) as ordered,
       (select bool_and(event.created_at = version.created_at)
        from events event join state_versions version on version.id = state_version_id) as events,
       (select bool_and(resource.created_at = version.created_at)
        from resources resource join state_versions version on version.serial = create_serial) as resources,
       (select bool_and(tag.created_at > version.created_at)
        from state_version_tags tag join state_versions version on version.id = state_version_id) as tags
     from states`,
  );
  const all = {
    begins: true,
    ends: true,
    long: true,
    ordered: true,
    events: true,
    resources: true,
    tags: true,
  };
  expect(rows).toEqual([{ name: SAMPLE_LABEL, ...all }]);
  expect(await loadSampleHistory(given.database)).toBe(false);
});
