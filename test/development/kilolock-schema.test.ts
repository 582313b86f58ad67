import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { present } from '../../src/base/invariant.ts';
import { kilolockCatalog, readRelation } from '../support/catalog.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { insertHistory } from '../support/fixtures.ts';

let given: TestDatabase;
beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());

describe('our tables and views are those of a real Kilolock database', () => {
  test.each(Object.entries(kilolockCatalog))('%s', async (name, expected) => {
    const byName = (one: { name: string }, other: { name: string }) => (one.name < other.name ? -1 : 1);
    expect(await readRelation(given.database, `public.${name}`)).toEqual({
      ...expected,
      constraints: [...(expected.constraints ?? [])].sort(byName),
      unique_indexes: [...expected.unique_indexes].sort(),
    });
  });

  test('and there are no others', async () => {
    const { rows } = await given.database.pool.query<{ relname: string }>(
      "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v', 'm', 'p', 'f', 'S')",
    );
    expect(rows.map((row) => row.relname).sort()).toEqual(Object.keys(kilolockCatalog).sort());
  });
});

test('a new database has the self-hosted tenant and its environment', async () => {
  const { rows } = await given.database.pool.query(`
    select tenants.id, tenants.slug, workspace_id, environments.slug as environment, env_public_id
    from tenants join environments on tenant_id = tenants.id`);
  expect(rows).toEqual([
    {
      id: '00000000-0000-0000-0000-000000000000',
      slug: 'self-hosted',
      workspace_id: 'ws_000000000000',
      environment: 'default',
      env_public_id: 'env_000000000000',
    },
  ]);
});

describe('the pointers between tables', () => {
  test('a state may name its current version before that version exists, but not at the end', async () => {
    const { pool } = given.database;
    const client = await pool.connect();
    try {
      await client.query('begin');
      await client.query("insert into states (name, current_version_id) values ('early', gen_random_uuid())");
      await expect(client.query('commit')).rejects.toMatchObject({
        code: '23503',
        constraint: 'states_current_version_fk',
      });
    } finally {
      client.release();
    }
  });

  test('deleting a state takes its tagged versions along and leaves its events, unlinked', async () => {
    const { pool } = given.database;
    const { stateId, versionIds } = await history('deleted', [['1', 'http_backend']], '1');
    await pool.query(
      "insert into state_version_tags (state_id, state_version_id, tag) values ($1, $2, 'kept')",
      [stateId, versionIds.get('1')],
    );
    await pool.query("insert into events (kind, state_id, state_version_id) values ('state_write', $1, $2)", [
      stateId,
      versionIds.get('1'),
    ]);
    await pool.query('delete from states where id = $1', [stateId]);
    const { rows } = await pool.query('select state_id, state_version_id from events');
    expect(rows).toEqual([{ state_id: null, state_version_id: null }]);
  });
});

/** A state whose versions have these serials and sources. */
function history(
  name: string,
  versions: ReadonlyArray<readonly [serial: string, source: string]>,
  current: string,
) {
  return insertHistory(given.database, {
    state: { name, lineage: null },
    current_serial: current,
    versions: versions.map(([serial, source]) => ({
      serial,
      source,
      created_at: `2026-03-0${serial}T10:00:00.000001Z`,
      created_by: null,
      terraform_version: '1.11.4',
      raw_state: '{}',
    })),
    tags: [],
  });
}

async function resource(
  stateId: string,
  address: string,
  span: readonly [create: bigint, remove: bigint | null],
  { attributes = '{}', dependencies = '[]' } = {},
): Promise<string> {
  const { rows } = await given.database.pool.query<{ id: string }>(
    `insert into resources (state_id, address, mode, type, name, provider, attributes_hash, create_serial, delete_serial,
       attributes, dependencies_raw)
     values ($1, $2, 'managed', 'aws_instance', 'web', 'aws', '', $3, $4, $5, $6) returning id`,
    [stateId, address, ...span, attributes, dependencies],
  );
  return present(rows[0], 'it was inserted').id;
}

describe('the views', () => {
  const view = async (text: string, values: readonly unknown[]) =>
    (await given.database.pool.query(text, [...values])).rows;

  test('current_resources holds the open rows, with the names of state and tenant', async () => {
    const { stateId } = await history('view/current', [['1', 'apply']], '1');
    await resource(stateId, 'aws_instance.gone', [0n, 1n]);
    const open = await resource(stateId, 'aws_instance.web', [1n, null]);
    const rows = await view('select * from current_resources where state_id = $1', [stateId]);
    expect(rows).toMatchObject([
      {
        id: open,
        state_name: 'view/current',
        tenant_slug: 'self-hosted',
        resource_name: 'web',
        create_serial: '1',
      },
    ]);
  });

  test('resource_dependencies holds, per version, the edges between what was alive in it', async () => {
    const { stateId, versionIds } = await history(
      'view/edges',
      [
        ['1', 'apply'],
        ['2', 'apply'],
      ],
      '2',
    );
    const dependent = await resource(stateId, 'a.dependent', [1n, null], {
      dependencies: '["a.plain", "a.each", "a.none"]',
    });
    const plain = await resource(stateId, 'a.plain', [1n, 2n]);
    const first = await resource(stateId, 'a.each[0]', [1n, null]);
    const second = await resource(stateId, 'a.each["k"]', [2n, null]);
    await resource(stateId, 'a.each_other', [1n, null]);

    const edges = (serial: string) =>
      view(
        'select from_resource_id, to_resource_id, kind from resource_dependencies where state_version_id = $1',
        [versionIds.get(serial)],
      );
    const edge = (to: string) => ({ from_resource_id: dependent, to_resource_id: to, kind: 'unknown' });
    expect(new Set(await edges('1'))).toEqual(new Set([edge(plain), edge(first)]));
    expect(new Set(await edges('2'))).toEqual(new Set([edge(first), edge(second)]));

    const now = await view(
      'select edge.* from current_resource_dependencies edge join resources on id = from_resource_id where state_id = $1',
      [stateId],
    );
    expect(new Set(now)).toEqual(new Set([edge(first), edge(second)]));
  });

  test('a resource that names itself, or one instance among many of itself, has no edge to itself', async () => {
    const { stateId } = await history('view/self', [['1', 'apply']], '1');
    const zero = await resource(stateId, 'a.self[0]', [1n, null], { dependencies: '["a.self"]' });
    const one = await resource(stateId, 'a.self[1]', [1n, null]);
    const rows = await view(
      'select edge.* from current_resource_dependencies edge join resources on id = from_resource_id where state_id = $1',
      [stateId],
    );
    expect(rows).toEqual([{ from_resource_id: zero, to_resource_id: one, kind: 'unknown' }]);
  });

  describe('current_resource_drift', () => {
    const drift = (stateId: string) =>
      view(
        'select address, previous_attributes, current_attributes, refresh_run_id from current_resource_drift where state_id = $1',
        [stateId],
      );

    async function changedAt2(
      name: string,
      versions: ReadonlyArray<readonly [serial: string, source: string]>,
    ) {
      const made = await history(name, versions, '2');
      await resource(made.stateId, 'a.changed', [1n, 2n], { attributes: '{"size": 1}' });
      await resource(made.stateId, 'a.changed', [2n, null], { attributes: '{"size": 2}' });
      await resource(made.stateId, 'a.new', [2n, null]);
      await resource(made.stateId, 'a.same', [1n, null]);
      return made;
    }

    test('holds what a refresh changed, with what was before and the run that found it', async () => {
      const { stateId, versionIds } = await changedAt2('drift/refresh', [
        ['1', 'apply'],
        ['2', 'refresh'],
        ['3', 'http_backend'],
      ]);
      const { rows } = await given.database.pool.query(
        `insert into refresh_runs (state_id, from_version_id, to_version_id, status, finished_at)
         values ($1, $2, $3, 'succeeded', now()) returning id`,
        [stateId, versionIds.get('1'), versionIds.get('2')],
      );
      expect(await drift(stateId)).toEqual([
        {
          address: 'a.changed',
          previous_attributes: '{"size": 1}',
          current_attributes: '{"size": 2}',
          refresh_run_id: rows[0].id,
        },
      ]);
    });

    test('holds it without its run too', async () => {
      const { stateId } = await changedAt2('drift/no-run', [
        ['1', 'apply'],
        ['2', 'refresh'],
      ]);
      expect(await drift(stateId)).toMatchObject([{ address: 'a.changed', refresh_run_id: null }]);
    });

    test('holds nothing once an apply came after, nor what anything but a refresh changed', async () => {
      const applied = await changedAt2('drift/applied', [
        ['1', 'apply'],
        ['2', 'refresh'],
        ['3', 'apply'],
      ]);
      expect(await drift(applied.stateId)).toEqual([]);
      const posted = await changedAt2('drift/posted', [
        ['1', 'apply'],
        ['2', 'http_backend'],
      ]);
      expect(await drift(posted.stateId)).toEqual([]);
    });
  });
});
