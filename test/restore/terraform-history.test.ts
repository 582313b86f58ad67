import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  runExport,
  runImport,
  stateIdOf,
} from '../operations/support/backend.ts';
import { annotate, postTerraformHistory } from '../operations/support/histories.ts';
import { readStateRows, type StateRows, type TextRow } from '../support/state-rows.ts';

let source: Backend;
let elsewhere: Backend;
let owner: Caller;
let archive: string;
let sourceId: string;
let sourceRows: StateRows;

beforeAll(async () => {
  [source, elsewhere] = await Promise.all([openBackend(), openBackend()]);
  owner = await createCaller(source);
  sourceId = await postTerraformHistory(source.database, owner, 'demo/network');
  await annotate(source.database, sourceId);
  sourceRows = await readStateRows(source.database, sourceId);
  archive = archivePath(source, await runExport(source, owner, 'demo/network'));
});
afterAll(() => Promise.all([source.close(), elsewhere.close()]));

test('posting the documents gives exactly the resource rows that Kilolock made of them', () => {
  const fixture = new URL('../fixtures/terraform-history/expected-resources.json', import.meta.url);
  const expected: Record<string, string | number | null>[] = JSON.parse(readFileSync(fixture, 'utf8'));
  const columns = Object.keys(expected[0] ?? {});
  const posted = sourceRows.resources?.map((row) => pick(row, columns));
  expect(posted).toHaveLength(25);
  expect(sorted(posted ?? [])).toEqual(
    sorted(expected.map((row) => mapValues(row, (value) => (value === null ? null : String(value))))),
  );
});

describe.each([
  ['another backend', () => elsewhere],
  ['the same backend, beside the source', () => source],
])('restored into %s', (_where, backend) => {
  let caller: Caller;
  let restored: StateRows;
  let operationId: string;
  let stateId: string;

  beforeAll(async () => {
    caller = await createCaller(backend(), { lockDefault: 'vanilla' });
    const operation = await runImport(backend(), caller, archive, { label: 'restored/network' });
    operationId = operation.id;
    stateId = stateIdOf(operation);
    restored = await readStateRows(backend().database, stateId);
  });

  test.each(['state_versions', 'state_version_tags', 'resources', 'outputs'])(
    'every row of %s is the source’s in every column',
    (table) => {
      expect(sourceRows[table]?.length).toBeGreaterThan(0);
      expect(restored[table]).toEqual(sourceRows[table]);
    },
  );

  test('the state keeps its lineage, its creation time and its pointer; name and lock policy are the destination’s', () => {
    const { workspace, environment } = caller.namespace;
    const [state] = sourceRows.states ?? [];
    expect(restored.states).toEqual([
      {
        ...state,
        name: `${workspace}/${environment}/restored/network`,
        exclusive_locks: 'true',
        coexistence_mode: 'strict',
        updated_at: expect.any(String),
      },
    ]);
    expect(state).toMatchObject({ exclusive_locks: 'false', coexistence_mode: 'warn' });
    expect(state?.current_version_id).toBe('version 10');
  });

  test('the events that travel are the source’s, with links to the restored versions, and say which import brought them', () => {
    const travelling = sourceRows.events?.filter(({ kind }) => kind !== 'lock_acquire') ?? [];
    expect(travelling.length).toBe(15);
    const brought = restored.events?.filter(({ kind }) => kind !== 'state_import') ?? [];
    const marker = `"restored_by_import": "${operationId}"`;
    const unmarked = brought.map(({ payload, ...event }) => {
      expect(payload).toContain(marker);
      const original = payload?.replace(`, ${marker}`, '').replace(`${marker}, `, '') ?? null;
      return { ...event, payload: original?.replace(/^\{"payload": (\[.*\])\}$/, '$1') ?? null };
    });
    expect(sorted(unmarked)).toEqual(
      sorted(travelling.map(({ payload, ...event }) => ({ ...event, payload }))),
    );
    const payloads = brought.map(({ payload }) => payload).join('\n');
    expect(payloads).toContain('"replayed_from_version": "version 4"');
    expect(payloads).toContain('"resolved_version_id": "version 7"');
    expect(payloads).toContain('"was_version_id": "version 2"');
    expect(payloads).toContain('"big": 9007199254740993');
    expect(payloads).toContain('"scale": 1.10');
  });

  test('one event more says that there was an import, of what, and by whom', () => {
    const imports = restored.events?.filter(({ kind }) => kind === 'state_import') ?? [];
    expect(imports).toHaveLength(1);
    expect(imports[0]).toMatchObject({ actor: 'Zoë Öst', state_version_id: 'version 10', tenant_id: 'own' });
    expect(JSON.parse(imports[0]?.payload ?? '')).toMatchObject({
      archive_format: 'kilolock-state-archive/v1',
      archive_id: operationId,
      versions: 10,
      tags: 3,
      current_serial: '10',
      label: 'restored/network',
      ids: 'remapped',
      principal: caller.principal.subject,
      source: { name: `${owner.namespace.workspace}/${owner.namespace.environment}/demo/network` },
    });
  });

  test('nothing else belongs to it: no lock, no run, no reservation', () => {
    const filled = Object.keys(restored).filter((table) => restored[table]?.length !== 0);
    expect(filled.sort()).toEqual([
      'events',
      'outputs',
      'resources',
      'state_version_tags',
      'state_versions',
      'states',
    ]);
  });

  test('no id of the source is used again', async () => {
    const ids = async ({ database }: Backend, id: string) => {
      const { rows } = await database.pool.query<{ id: string }>(
        `select id from states where id = $1 union all select id from state_versions where state_id = $1
         union all select id from state_version_tags where state_id = $1
         union all select id from resources where state_id = $1 union all select id from events where state_id = $1`,
        [id],
      );
      return rows.map((row) => row.id);
    };
    const theirs = new Set(await ids(source, sourceId));
    const ours = await ids(backend(), stateId);
    expect(ours.length).toBeGreaterThan(50);
    expect(ours.filter((id) => theirs.has(id))).toEqual([]);
  });
});

function pick(row: TextRow, columns: readonly string[]): TextRow {
  return Object.fromEntries(columns.map((column) => [column, row[column] ?? null]));
}

function mapValues<A, B>(row: Record<string, A>, change: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(row).map(([key, value]) => [key, change(value)]));
}

function sorted<Row>(rows: readonly Row[]): Row[] {
  return rows.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}
