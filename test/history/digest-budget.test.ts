import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { CallerError } from '../../src/base/caller-error.ts';
import { DigestBudget, DigestsMissingError } from '../../src/history/digest-budget.ts';
import { readManifestPreviews } from '../../src/history/manifest-preview.ts';
import type { Caller } from '../../src/history/states.ts';
import { listVersions, readRawStateFacts } from '../../src/history/versions.ts';
import { type Backend, createCaller, openBackend } from '../operations/support/backend.ts';
import { post } from '../operations/support/histories.ts';

let backend: Backend;
let caller: Caller;
beforeAll(async () => {
  backend = await openBackend();
  // What is inserted in vain is work that was done twice.
  await backend.database.pool.query(`
    create table attempt (state_version_id uuid);
    create function note_attempt() returns trigger language plpgsql as
      $$ begin insert into public.attempt values (new.state_version_id); return new; end $$;
    create trigger note_attempt before insert on state_archive.version_digest
      for each row execute function note_attempt()`);
});
beforeEach(async () => {
  caller = await createCaller(backend);
  await backend.database.pool.query('truncate attempt');
});
afterAll(() => backend.close());

/** States of so many versions each, none of them digested. */
async function seed(...versions: number[]): Promise<string[]> {
  const ids: string[] = [];
  for (const [index, count] of versions.entries()) {
    const { stateId } = await post(backend.database, caller, `state-${index}`, DOCUMENT);
    await backend.database.pool.query(
      `insert into state_versions (state_id, tenant_id, serial, source, raw_state)
       select state_id, tenant_id, serial + n, source, raw_state || jsonb_build_object('serial', serial + n)
       from state_versions, generate_series(1, $2) n where state_id = $1`,
      [stateId, count - 1],
    );
    ids.push(stateId);
  }
  return ids;
}

const DOCUMENT = '{"version": 4, "serial": 1, "lineage": "", "outputs": {}, "resources": []}';

async function attempts(): Promise<number> {
  const { rows } = await backend.database.pool.query('select count(*)::int as n from attempt');
  return rows[0].n;
}

/** What a page of previews gives for each state: its versions, or null when they are not digested. */
async function preview(ids: readonly string[], budget: DigestBudget): Promise<(number | null)[]> {
  const previews = await readManifestPreviews(backend.database, ids, budget);
  return ids.map((id) => {
    const found = previews.get(id);
    return found instanceof DigestsMissingError ? null : (found?.versionCount ?? -1);
  });
}

describe('the digests that one request may have made', () => {
  test('end with its budget: the states beyond it have an error, and a later request goes on from there', async () => {
    const ids = await seed(30, 40, 50);
    expect(await preview(ids, new DigestBudget(undefined, 1))).toEqual([30, null, null]);
    expect(await attempts()).toBe(50);
    expect(await preview(ids, new DigestBudget(undefined, 1))).toEqual([30, 40, null]);
    expect(await preview(ids, new DigestBudget())).toEqual([30, 40, 50]);
    expect(await attempts()).toBe(120);
  });

  test('are those of the versions it asks for, and not of their whole history', async () => {
    const [id = ''] = await seed(80);
    const { database } = backend;
    const page = (await listVersions(database.for('read'), [id], { before: null, limit: 3 })).get(id) ?? [];
    expect((await readRawStateFacts(database, page, new DigestBudget())).size).toBe(3);
    expect(await attempts()).toBe(3);
  });

  test('stop when nobody waits for them any more', async () => {
    const ids = await seed(200);
    const gone = new AbortController();
    const writer = await backend.database.pool.connect();
    await writer.query('begin; lock table state_archive.version_digest in exclusive mode');
    const read = preview(ids, new DigestBudget(gone.signal));
    gone.abort();
    await writer.query('rollback');
    writer.release();
    expect(await read).toEqual([null]);
    expect(await attempts()).toBeLessThan(200);
  });

  test('are made once when they are asked for several times at the same moment', async () => {
    const ids = await seed(130, 20);
    const together = await Promise.all(Array.from({ length: 6 }, () => preview(ids, new DigestBudget())));
    expect(together).toEqual(together.map(() => [130, 20]));
    expect(await attempts()).toBe(150);
  });

  test('may be of large raw states: a statement takes few of them', async () => {
    const [id = ''] = await seed(6);
    await backend.database.pool.query(
      `update state_versions set raw_state = raw_state || jsonb_build_object('text',
         (select string_agg(md5(n::text || serial), '') from generate_series(1, 80000) n)) where state_id = $1`,
      [id],
    );
    expect(await preview([id], new DigestBudget(undefined, 1))).toEqual([null]);
    expect(await attempts()).toBeLessThan(6);
    expect(await preview([id], new DigestBudget())).toEqual([6]);
  });

  test('that are missing are told of by a code that says to ask again', () => {
    const error = new DigestsMissingError();
    expect(error).toBeInstanceOf(CallerError);
    expect(error.code).toBe('DIGESTS_INCOMPLETE');
  });
});
