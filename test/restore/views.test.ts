import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { KilolockDatabase } from '../../src/database/connection.ts';
import type { Caller } from '../../src/history/states.ts';
import { destinationOf } from '../../src/restore/destination.ts';
import { appendSnapshot, type SnapshotSource } from '../../src/restore/snapshot.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  runExport,
  runImport,
  stateIdOf,
} from '../operations/support/backend.ts';
import { postTerraformHistory } from '../operations/support/histories.ts';
import { type Things, thingsDocument } from './support/histories.ts';

let source: Backend;
let elsewhere: Backend;
let owner: Caller;
beforeAll(async () => {
  [source, elsewhere] = await Promise.all([openBackend(), openBackend()]);
  owner = await createCaller(source);
});
afterAll(() => Promise.all([source.close(), elsewhere.close()]));

/** Kilolock's views of one state, with a resource row named by its address and first serial, and a version by its serial. */
const VIEWS = {
  current_resources: `
    select to_jsonb(view) - array['id', 'state_id', 'state_name', 'tenant_id', 'tenant_slug'] as answer
    from current_resources view where state_id = $1`,
  resource_dependencies: `
    select jsonb_build_array(version.serial, dependent.address, dependent.create_serial,
      dependency.address, dependency.create_serial, view.kind) as answer
    from resource_dependencies view
    join state_versions version on version.id = view.state_version_id
    join resources dependent on dependent.id = view.from_resource_id
    join resources dependency on dependency.id = view.to_resource_id
    where version.state_id = $1`,
  current_resource_dependencies: `
    select jsonb_build_array(dependent.address, dependency.address, view.kind) as answer
    from current_resource_dependencies view
    join resources dependent on dependent.id = view.from_resource_id
    join resources dependency on dependency.id = view.to_resource_id
    where dependent.state_id = $1`,
  current_resource_drift: `
    select to_jsonb(view) - array['resource_id', 'state_id', 'state_name', 'detected_in_version_id', 'refresh_run_id']
      || jsonb_build_object('detected_in_version', version.serial) as answer
    from current_resource_drift view join state_versions version on version.id = view.detected_in_version_id
    where view.state_id = $1`,
} as const;

type View = keyof typeof VIEWS;

async function ask({ pool }: KilolockDatabase, view: View, stateId: string): Promise<string[]> {
  const { rows } = await pool.query<{ answer: string }>(
    `select answer::text from (${VIEWS[view]}) answers order by answer::text collate "C"`,
    [stateId],
  );
  return rows.map(({ answer }) => answer);
}

/** Restores the state into the other backend; returns the id it has there. */
async function restoreElsewhere(label: string): Promise<string> {
  const path = archivePath(source, await runExport(source, owner, label));
  return stateIdOf(await runImport(elsewhere, await createCaller(elsewhere), path));
}

describe('of the history that Terraform wrote, the restored state says what the source says in', () => {
  let sourceId: string;
  let restoredId: string;
  beforeAll(async () => {
    sourceId = await postTerraformHistory(source.database, owner, 'demo/network');
    restoredId = await restoreElsewhere('demo/network');
  });

  test.each<[View, number]>([
    ['current_resources', 7],
    ['resource_dependencies', 20],
    ['current_resource_dependencies', 1],
  ])('%s', async (view, atLeast) => {
    const answers = await ask(source.database, view, sourceId);
    expect(answers.length).toBeGreaterThanOrEqual(atLeast);
    expect(await ask(elsewhere.database, view, restoredId)).toEqual(answers);
  });

  test('current_resource_drift: there is none', async () => {
    expect(await ask(source.database, 'current_resource_drift', sourceId)).toEqual([]);
    expect(await ask(elsewhere.database, 'current_resource_drift', restoredId)).toEqual([]);
  });
});

describe('drift that a refresh found', () => {
  const write = (label: string, writeSource: SnapshotSource, things: Things) =>
    appendSnapshot(source.database, destinationOf(owner.namespace, label), {
      document: Buffer.from(thingsDocument(1n, things, '')),
      source: writeSource,
      actor: 'ci@runner',
    });

  /** Two things, of which a refresh finds one changed. */
  async function writeDrift(label: string): Promise<string> {
    await write(label, 'apply', { a: '{"id": "a"}', b: '{"id": "b", "size": 1}' });
    const { stateId } = await write(label, 'refresh', { a: '{"id": "a"}', b: '{"id": "b", "size": 2}' });
    return stateId;
  }

  test('is found in the restored state too: what it was, what it is, since when', async () => {
    const sourceId = await writeDrift('drifted');
    const [drift, ...others] = await ask(source.database, 'current_resource_drift', sourceId);
    expect(others).toEqual([]);
    expect(JSON.parse(drift ?? '')).toMatchObject({
      address: 'thing.b',
      previous_attributes: { id: 'b', size: 1 },
      current_attributes: { id: 'b', size: 2 },
      detected_in_version: 2,
    });
    const restoredId = await restoreElsewhere('drifted');
    expect(await ask(elsewhere.database, 'current_resource_drift', restoredId)).toEqual([drift]);
  });

  test('that an apply has dealt with since is none in either', async () => {
    const sourceId = await writeDrift('mended');
    await write('mended', 'apply', { a: '{"id": "a", "size": 3}', b: '{"id": "b", "size": 2}' });
    const restoredId = await restoreElsewhere('mended');
    expect(await ask(source.database, 'current_resource_drift', sourceId)).toEqual([]);
    expect(await ask(elsewhere.database, 'current_resource_drift', restoredId)).toEqual([]);
    const current = await ask(elsewhere.database, 'current_resources', restoredId);
    expect(current).toEqual(await ask(source.database, 'current_resources', sourceId));
    expect(current).toHaveLength(2);
  });

  test('does not name the refresh run, which stays where it ran', async () => {
    const sourceId = await writeDrift('run');
    await source.database.pool.query(
      `insert into refresh_runs (tenant_id, state_id, from_version_id, to_version_id, started_at, finished_at, status)
       select tenant_id, id, current_version_id, current_version_id, now(), now(), 'succeeded' from states where id = $1`,
      [sourceId],
    );
    const runs = async ({ pool }: KilolockDatabase, stateId: string) => {
      const { rows } = await pool.query<{ address: string; run: boolean }>(
        'select address, refresh_run_id is not null as run from current_resource_drift where state_id = $1',
        [stateId],
      );
      return rows;
    };
    const restoredId = await restoreElsewhere('run');
    expect(await runs(source.database, sourceId)).toEqual([{ address: 'thing.b', run: true }]);
    expect(await runs(elsewhere.database, restoredId)).toEqual([{ address: 'thing.b', run: false }]);
  });
});
