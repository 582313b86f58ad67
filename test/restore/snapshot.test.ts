import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import { importStateSnapshot, type SnapshotRequest } from '../../src/operations/import-state-snapshot.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  runExport,
  runImport,
  stateIdOf,
  withPrincipal,
} from '../operations/support/backend.ts';
import { post, postTerraformHistory, TERRAFORM_LINEAGE } from '../operations/support/histories.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import { countRows, readStateRows } from '../support/state-rows.ts';

let backend: Backend;
let caller: Caller;
beforeAll(async () => {
  backend = await openBackend();
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

const documents = loadTerraformHistory().map(({ document }) => document);
const first = documents[0] ?? '';
const last = documents[9] ?? '';

const append = (label: string, document: string, actor?: string) =>
  post(backend.database, caller, label, document, actor);

async function refused(work: Promise<unknown>): Promise<unknown> {
  const before = await countRows(backend.database);
  const refusal = await work.then(
    () => new Error('It was not refused.'),
    (error: unknown) => error,
  );
  expect(await countRows(backend.database)).toEqual(before);
  return refusal;
}

describe('a snapshot', () => {
  test('becomes serial 1 of a new state, in the column and in the document, whatever serial it names', async () => {
    const { stateId, serial } = await append('new', last.replace(/"serial": \d+/, '"serial": 57'), 'Zoë');
    expect(serial).toBe(1n);
    const rows = await readStateRows(backend.database, stateId);
    expect(rows.state_versions).toMatchObject([
      { serial: '1', created_by: 'Zoë', source: 'apply', terraform_version: '1.11.4', tenant_id: 'own' },
    ]);
    expect(JSON.parse(rows.state_versions?.[0]?.raw_state ?? '')).toMatchObject({ serial: 1 });
    expect(rows.states).toMatchObject([
      {
        lineage: TERRAFORM_LINEAGE,
        current_version_id: 'version 1',
        lifecycle_status: 'active',
        exclusive_locks: 'false',
        coexistence_mode: 'warn',
      },
    ]);
  });

  test('changes nothing of the document but its serial', async () => {
    const { stateId } = await append('verbatim', first);
    const { rows } = await backend.database.pool.query(
      `select raw_state - 'serial' = $2::jsonb - 'serial' as same from state_versions where state_id = $1`,
      [stateId, first],
    );
    expect(rows).toEqual([{ same: true }]);
  });

  test('becomes the highest serial and one, even when the pointer stands lower', async () => {
    const { stateId } = await append('gaps', first);
    await backend.database.pool.query(
      `insert into state_versions (tenant_id, state_id, serial, raw_state)
       select tenant_id, state_id, 9007199254740993, raw_state from state_versions where state_id = $1`,
      [stateId],
    );
    expect(await append('gaps', first)).toEqual({ stateId, serial: 9007199254740994n });
    const rows = await readStateRows(backend.database, stateId);
    expect(rows.states?.[0]?.current_version_id).toBe('version 9007199254740994');
    expect(rows.state_versions?.map((row) => row.raw_state).join()).toContain('"serial": 9007199254740994,');
  });

  test('keeps the lineage a state has, and gives one to a state without', async () => {
    const withoutLineage = first.replace(TERRAFORM_LINEAGE, '');
    const { stateId } = await append('lineage', withoutLineage);
    const lineage = async () => (await readStateRows(backend.database, stateId)).states?.[0]?.lineage;
    expect(await lineage()).toBeNull();
    await append('lineage', first);
    expect(await lineage()).toBe(TERRAFORM_LINEAGE);
    await append('lineage', first.replace(TERRAFORM_LINEAGE, '11111111-2222-4333-8444-555555555555'));
    expect(await lineage()).toBe(TERRAFORM_LINEAGE);
  });

  test('is on record as state_write, by the one who posted it, at the time of the version', async () => {
    const { stateId } = await append('audited', first, 'Zoë');
    const { rows } = await backend.database.pool.query(
      `select event.kind, event.actor, event.payload, event.created_at = version.created_at as same_time
       from events event join state_versions version on version.id = event.state_version_id where event.state_id = $1`,
      [stateId],
    );
    expect(rows).toEqual([
      { kind: 'state_write', actor: 'Zoë', payload: '{"serial": 1, "source": "apply"}', same_time: true },
    ]);
  });

  test('opens and closes only the rows of what changed; the rows of a version are as old as the version', async () => {
    const { stateId } = await append('rows', first);
    await append('rows', first);
    const { rows } = await backend.database.pool.query(
      `select count(*)::int as count, max(create_serial) as last, count(delete_serial)::int as closed,
         bool_and(resources.created_at = version.created_at) as as_old
       from resources join state_versions version using (state_id)
       where state_id = $1 and version.serial = create_serial`,
      [stateId],
    );
    expect(rows).toEqual([{ count: expect.any(Number), last: '1', closed: 0, as_old: true }]);
    expect(rows[0].count).toBeGreaterThan(0);
  });

  test('posted twice at the same moment becomes two versions, one after the other', async () => {
    const posted = await Promise.all([1, 2, 3].map(() => append('crowd', first)));
    expect(new Set(posted.map(({ stateId }) => stateId)).size).toBe(1);
    expect(posted.map(({ serial }) => serial).sort()).toEqual([1n, 2n, 3n]);
  });
});

describe('a restored history goes on where the source stood', () => {
  test('the document of the current version, posted again, opens and closes no row', async () => {
    await postTerraformHistory(backend.database, caller, 'source');
    const archive = archivePath(backend, await runExport(backend, caller, 'source'));
    const elsewhere = await createCaller(backend);
    const stateId = stateIdOf(await runImport(backend, elsewhere, archive));
    const before = await readStateRows(backend.database, stateId);

    expect(await post(backend.database, elsewhere, 'source', last)).toEqual({ stateId, serial: 11n });

    const after = await readStateRows(backend.database, stateId);
    expect(after.resources).toEqual(before.resources);
    expect(after.state_versions).toHaveLength(11);
    expect(after.states?.[0]).toMatchObject({ current_version_id: 'version 11', lineage: TERRAFORM_LINEAGE });
  });

  test('also when the archive carried no resource rows', async () => {
    const stateId = await postTerraformHistory(backend.database, caller, 'source');
    await backend.database.pool.query('delete from resources where state_id = $1', [stateId]);
    const archive = archivePath(backend, await runExport(backend, caller, 'source'));
    const elsewhere = await createCaller(backend);
    const restoredId = stateIdOf(await runImport(backend, elsewhere, archive));
    const before = await readStateRows(backend.database, restoredId);
    expect(before.resources).toHaveLength(25);
    await post(backend.database, elsewhere, 'source', last);
    expect((await readStateRows(backend.database, restoredId)).resources).toEqual(before.resources);
  });
});

describe('a snapshot is refused', () => {
  test('with STATE_LOCKED, naming the holder, while the state is locked', async () => {
    const { stateId } = await append('locked', first);
    await backend.database.pool.query(
      `insert into state_locks (state_id, tenant_id, lock_id, who) values ($1, $2, 'l-1', 'alice@laptop')`,
      [stateId, caller.namespace.tenantId],
    );
    expect(await refused(append('locked', last))).toMatchObject({
      code: 'STATE_LOCKED',
      message: expect.stringContaining('alice@laptop'),
      inputPath: ['name'],
    });
  });

  test.each(['suspended', 'archived'])('with STATE_NOT_ACTIVE while the state is %s', async (status) => {
    const { stateId } = await append('held', first);
    await backend.database.pool.query('update states set lifecycle_status = $2 where id = $1', [
      stateId,
      status,
    ]);
    expect(await refused(append('held', last))).toMatchObject({
      code: 'STATE_NOT_ACTIVE',
      message: expect.stringContaining(status),
    });
  });

  test.each([TERRAFORM_LINEAGE, null])(
    'with STATE_NOT_ACTIVE when an archived state of the lineage %s once had the name',
    async (lineage) => {
      const { namespace } = caller;
      await backend.database.pool.query(
        `insert into states (tenant_id, name, lineage, lifecycle_status) values ($1, $2, $3, 'archived')`,
        [namespace.tenantId, `${namespace.namePrefix}once--archived-brave-otter-3f`, lineage],
      );
      expect(await refused(append('once', first))).toMatchObject({ code: 'STATE_NOT_ACTIVE' });
    },
  );

  test('with QUOTA_EXCEEDED, creating no state', async () => {
    caller = await createCaller(backend, { maxStateResources: 2 });
    expect(await refused(append('large', last))).toMatchObject({
      code: 'QUOTA_EXCEEDED',
      message: expect.stringContaining('at most 3'),
    });
  });

  test.each([
    ['is no JSON', 'no json'],
    ['is of version 3', '{"version": 3, "serial": 1, "lineage": ""}'],
    ['is encrypted', '{"encrypted_data": "AAAA", "encryption_version": "v0"}'],
    ['has a lineage that is no uuid', first.replace(TERRAFORM_LINEAGE, 'my-lineage')],
    ['has a NUL in a string', first.replace('"managed"', '"man\\u0000aged"')],
    ['is cut off', first.slice(0, -10)],
    ['has more behind its end', `${first}{}`],
  ])('with UNSUPPORTED_STATE_DOCUMENT when the document %s', async (_what, document) => {
    expect(await refused(append('unsupported', document))).toMatchObject({
      code: 'UNSUPPORTED_STATE_DOCUMENT',
    });
  });

  test('when the credential does not cover the label', async () => {
    const confined = withPrincipal(caller, { statePatterns: ['dev/*'] });
    const request = { caller: confined, requestId: 'request-1' };
    const outcome = importStateSnapshot(backend.services, request, snapshotOf('prod/x', Buffer.from(first)));
    expect(await refused(outcome)).toMatchObject({ name: 'NotPermittedError' });
  });

  test('with INVALID_INPUT for a source Kilolock’s own import does not take; "import" is the default', async () => {
    const request = { caller, requestId: 'request-1' };
    const document = Buffer.from(first);
    const outcome = importStateSnapshot(backend.services, request, {
      ...snapshotOf('sources', document),
      source: 'rollback',
    });
    expect(await refused(outcome)).toMatchObject({ code: 'INVALID_INPUT', inputPath: ['source'] });
    const { stateId } = await importStateSnapshot(backend.services, request, snapshotOf('sources', document));
    const rows = await readStateRows(backend.database, stateId);
    expect(rows.state_versions?.[0]).toMatchObject({ source: 'import', created_by: 'Zoë Öst' });
  });
});

function snapshotOf(label: string, document: Buffer): SnapshotRequest {
  return { label, document, source: null, idempotencyKey: null };
}
