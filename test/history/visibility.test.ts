import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { findNamespace } from '../../src/history/namespace.ts';
import { type Caller, findStatesById, findStatesByLabel, listStates } from '../../src/history/states.ts';
import { USUAL_RETENTION } from '../../src/operations/archive-retention.ts';
import { exportStateArchive } from '../../src/operations/export-state-archive.ts';
import { findOperations, listOperations } from '../../src/operations/operation-records.ts';
import {
  type Backend,
  createCaller,
  createEnvironment,
  openBackend,
  runExport,
  withPrincipal,
} from '../operations/support/backend.ts';
import { post } from '../operations/support/histories.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import { countRows } from '../support/state-rows.ts';

let backend: Backend;
let caller: Caller;
beforeAll(async () => {
  backend = await openBackend();
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

async function insertState(name: string, columns: { tenantId?: string; status?: string } = {}) {
  const { rows } = await backend.database.pool.query<{ id: string }>(
    'insert into states (tenant_id, name, lifecycle_status) values ($1, $2, $3) returning id',
    [columns.tenantId ?? caller.namespace.tenantId, name, columns.status ?? 'active'],
  );
  return rows[0]?.id ?? '';
}

const inEnvironment = (label: string) => caller.namespace.namePrefix + label;

/** What a caller finds under a label and an id, one way or the other. */
async function found(who: Caller, label: string, id: string) {
  const db = backend.database.for('read');
  const page = { labelPrefix: '', after: null, limit: 100 };
  return {
    byLabel: [...(await findStatesByLabel(db, who, [label])).values()],
    byId: [...(await findStatesById(db, who, [id])).values()],
    listed: (await listStates(db, who, page)).filter((state) => state.id === id),
  };
}

const nothing = { byLabel: [], byId: [], listed: [] };

describe('a state is visible by label, by id and in the list', () => {
  test('to a caller of its environment', async () => {
    const id = await insertState(inEnvironment('prod/network'));
    const { byLabel, byId, listed } = await found(caller, 'prod/network', id);
    expect(byLabel).toEqual(byId);
    expect(byLabel).toEqual(listed);
    expect(byLabel).toMatchObject([
      {
        id,
        label: 'prod/network',
        name: inEnvironment('prod/network'),
        workspace: caller.namespace.workspace,
        environment: caller.namespace.environment,
        currentVersionId: null,
      },
    ]);
  });

  test('to a caller whose patterns cover it: exactly, or by prefix', async () => {
    const id = await insertState(inEnvironment('prod/network'));
    for (const pattern of ['prod/network', 'prod/*', '*', 'prod/net*']) {
      const confined = withPrincipal(caller, { statePatterns: ['other', pattern] });
      expect(await found(confined, 'prod/network', id)).toEqual(await found(caller, 'prod/network', id));
    }
  });
});

describe('a state is as good as not there', () => {
  test('when it is not', async () => {
    expect(await found(caller, 'prod/network', '3f9a1c2b-4d5e-4f60-8172-839405162738')).toEqual(nothing);
  });

  test('for another workspace', async () => {
    const id = await insertState(inEnvironment('prod/network'));
    expect(await found(await createCaller(backend), 'prod/network', id)).toEqual(nothing);
  });

  test('for another environment of its own workspace, in the other direction too', async () => {
    const neighbour = await createEnvironment(backend, caller.namespace.workspace);
    const id = await insertState(inEnvironment('prod/network'));
    const theirs = await insertState(`${neighbour.namespace.namePrefix}prod/network`);
    expect(await found(neighbour, 'prod/network', id)).toMatchObject({ byId: [], listed: [] });
    expect(await found(caller, 'prod/network', theirs)).toMatchObject({ byId: [], listed: [] });
  });

  test('for an environment whose id begins the same, or is the same but for a wildcard of LIKE', async () => {
    const { workspace } = caller.namespace;
    const short = await createEnvironment(backend, workspace, { environment: 'env_1' });
    const long = await createEnvironment(backend, workspace, { environment: 'env_12' });
    const alike = await createEnvironment(backend, workspace, { environment: 'envx1' });
    const wild = await createEnvironment(backend, workspace, { environment: 'env%' });
    for (const [owner, others] of [
      [short, [long, alike, wild]],
      [long, [short, alike, wild]],
      [alike, [short, long, wild]],
    ] as const) {
      const id = await insertState(`${owner.namespace.namePrefix}app`);
      expect(await found(owner, 'app', id)).not.toEqual(nothing);
      for (const other of others) {
        expect(await found(other, 'app', id)).toMatchObject({ byId: [], listed: [] });
      }
    }
  });

  test('when its name begins with the environment’s without being in it', async () => {
    const { workspace, environment } = caller.namespace;
    for (const name of [`${workspace}/${environment}`, `${workspace}/${environment}x/app`, 'app']) {
      const id = await insertState(name);
      expect(await found(caller, 'app', id)).toEqual(nothing);
    }
  });

  test('when it has the environment’s prefix under another tenant', async () => {
    const stranger = await createCaller(backend);
    const name = inEnvironment('prod/network');
    const id = await insertState(name, { tenantId: stranger.namespace.tenantId });
    expect(await found(caller, 'prod/network', id)).toEqual(nothing);
    expect(await found(stranger, 'prod/network', id)).toEqual(nothing);
  });

  test.each([
    [['dev/*']],
    [['prod']],
    [['prod/networ']],
    [['PROD/*']],
    [['prod/network/*']],
    [['%', 'prod/%', 'prod_network', '_rod/*']],
    [[]],
  ])('for a credential confined to %j', async (statePatterns) => {
    const id = await insertState(inEnvironment('prod/network'));
    expect(await found(withPrincipal(caller, { statePatterns }), 'prod/network', id)).toEqual(nothing);
  });

  test.each(['suspended', 'archived'])('while it is %s', async (status) => {
    const id = await insertState(inEnvironment('prod/network'), { status });
    expect(await found(caller, 'prod/network', id)).toEqual(nothing);
  });
});

test.each(['prod_network', 'prod%', '%', 'prod/network%', 'PROD/network', 'prod/network ', ''])(
  'the label %j finds no state of another spelling',
  async (label) => {
    await insertState(inEnvironment('prod/network'));
    await insertState(inEnvironment('prodXnetwork'));
    expect([...(await findStatesByLabel(backend.database.for('record'), caller, [label])).values()]).toEqual(
      [],
    );
  },
);

test.each(['nul\0here', '\ud800', 'not-a-uuid', "'; select 1; --"])(
  '%j is the label and the id of nothing, not an error',
  async (text) => {
    await insertState(inEnvironment('\ufffd'));
    expect(await found(caller, text, text)).toEqual(nothing);
    for (const page of [
      { labelPrefix: text, after: null },
      { labelPrefix: 'x', after: text },
    ]) {
      expect(await listStates(backend.database.for('record'), caller, { ...page, limit: 10 })).toEqual([]);
    }
    const confined = withPrincipal(caller, { statePatterns: [text, `${text}*`] });
    expect(
      await listStates(backend.database.for('record'), confined, { labelPrefix: '', after: null, limit: 10 }),
    ).toEqual([]);
  },
);

describe('a list of states', () => {
  const labels = async (
    who: Caller,
    page: { labelPrefix?: string; after?: string | null; limit?: number },
  ) => {
    const states = await listStates(backend.database.for('record'), who, {
      labelPrefix: '',
      after: null,
      limit: 100,
      ...page,
    });
    return states.map((state) => state.label);
  };

  beforeEach(async () => {
    for (const label of ['a_b', 'aXb', 'a%', 'ab', 'Ab', 'é', 'b/1', 'b/10', 'b/2']) {
      await insertState(inEnvironment(label));
    }
  });

  test('is in the order of the labels’ bytes, a page at a time', async () => {
    const whole = ['Ab', 'a%', 'aXb', 'a_b', 'ab', 'b/1', 'b/10', 'b/2', 'é'];
    expect(await labels(caller, {})).toEqual(whole);
    expect(await labels(caller, { limit: 4 })).toEqual(whole.slice(0, 4));
    expect(await labels(caller, { limit: 4, after: 'a_b' })).toEqual(whole.slice(4, 8));
    expect(await labels(caller, { after: 'é' })).toEqual([]);
  });

  test('takes a prefix literally', async () => {
    expect(await labels(caller, { labelPrefix: 'a_' })).toEqual(['a_b']);
    expect(await labels(caller, { labelPrefix: 'a%' })).toEqual(['a%']);
    expect(await labels(caller, { labelPrefix: 'b/1' })).toEqual(['b/1', 'b/10']);
  });

  test('fills its pages although the credential does not cover everything', async () => {
    const confined = withPrincipal(caller, { statePatterns: ['b/*', 'é'] });
    expect(await labels(confined, { limit: 2 })).toEqual(['b/1', 'b/10']);
    expect(await labels(confined, { limit: 2, after: 'b/10' })).toEqual(['b/2', 'é']);
    expect(await labels(withPrincipal(caller, { statePatterns: [] }), {})).toEqual([]);
  });
});

describe('an operation', () => {
  test('is seen by whoever may read the states there, and otherwise by whoever asked for it', async () => {
    const document = loadTerraformHistory()[0]?.document ?? '';
    const { stateId } = await post(backend.database, caller, 'prod/seen', document);
    const { id } = await runExport(backend, caller, 'prod/seen');
    const idsSeenBy = async (reader: Caller) => {
      const db = backend.database.for('read');
      const found = [...(await findOperations(db, reader, [id])).keys()];
      const listed = await listOperations(db, reader, [stateId], { after: null, limit: 10 });
      expect((listed.get(stateId) ?? []).map((operation) => operation.id)).toEqual(found);
      return found;
    };
    const reads = new Set(['state.read']);
    const exports = new Set(['state.export']);
    expect(await idsSeenBy(withPrincipal(caller, { subject: 'another', scopes: reads }))).toEqual([id]);
    expect(await idsSeenBy(withPrincipal(caller, { scopes: exports }))).toEqual([id]);
    expect(await idsSeenBy(withPrincipal(caller, { subject: 'another', scopes: exports }))).toEqual([]);
  });

  test('is seen only in the environment it belongs to, and by credentials that cover its state', async () => {
    const { stateId } = await post(
      backend.database,
      caller,
      'prod/network',
      loadTerraformHistory()[0]?.document ?? '',
    );
    const operation = await runExport(backend, caller, 'prod/network');
    const neighbour = await createEnvironment(backend, caller.namespace.workspace);
    const page = { after: null, limit: 10 };
    for (const stranger of [
      neighbour,
      await createCaller(backend),
      withPrincipal(caller, { statePatterns: ['dev/*'] }),
      withPrincipal(caller, { statePatterns: [] }),
    ]) {
      expect(await findOperations(backend.database.for('record'), stranger, [operation.id])).toEqual(
        new Map(),
      );
      expect(await listOperations(backend.database.for('record'), stranger, [stateId], page)).toEqual(
        new Map(),
      );
    }
    for (const reader of [
      caller,
      withPrincipal(caller, { subject: 'a colleague', statePatterns: ['prod/*'] }),
    ]) {
      expect([
        ...(await findOperations(backend.database.for('record'), reader, [operation.id])).keys(),
      ]).toEqual([operation.id]);
      expect(await listOperations(backend.database.for('record'), reader, [stateId], page)).toEqual(
        new Map([[stateId, [operation]]]),
      );
    }
  });
});

test('an export of a state that is not visible is refused in the same words as one that is not there', async () => {
  await insertState(inEnvironment('suspended'), { status: 'suspended' });
  await insertState(inEnvironment('prod/secret'));
  const confined = withPrincipal(caller, { statePatterns: ['suspended', 'absent'] });
  const before = await countRows(backend.database);
  const refusals = [];
  for (const label of ['suspended', 'prod/secret', 'absent', 'a\0b']) {
    const request = { caller: confined, requestId: 'request-1' };
    const options = { waitSeconds: 0, idempotencyKey: null, ...USUAL_RETENTION };
    const refusal = await exportStateArchive(backend.services, request, label, options).catch(
      (error) => error,
    );
    refusals.push([refusal.code, refusal.message, refusal.inputPath]);
  }
  expect(refusals).toEqual(Array(4).fill(refusals[2]));
  expect(refusals[2]?.[0]).toBe('STATE_NOT_FOUND');
  expect(await countRows(backend.database)).toEqual(before);
});

describe('a namespace', () => {
  const namespaceOf = (workspace: string, environment: string) =>
    findNamespace(backend.database.for('record'), { workspace, environment });

  test('is not there when workspace or environment is unknown, not active, or not the other’s', async () => {
    const { workspace, environment } = caller.namespace;
    const stranger = await createCaller(backend);
    expect(await namespaceOf(workspace, environment)).toEqual(caller.namespace);
    expect(await namespaceOf(workspace, stranger.namespace.environment)).toBeNull();
    expect(await namespaceOf('ws_unknown', environment)).toBeNull();
    expect(await namespaceOf(workspace, 'env_unknown')).toBeNull();
    for (const [table, column, value] of [
      ['environments', 'env_public_id', environment],
      ['tenants', 'workspace_id', workspace],
    ]) {
      const set = (status: string) =>
        backend.database.pool.query(
          `update ${table} set lifecycle_status = '${status}' where ${column} = $1`,
          [value],
        );
      await set('suspended');
      expect(await namespaceOf(workspace, environment)).toBeNull();
      await set('active');
    }
  });

  test('of an environment with a database of its own is found when that is ready, and never holds its DSN', async () => {
    const { workspace, environment } = caller.namespace;
    await backend.database.pool.query(
      `update environments set database_dsn = 'postgres://user:hunter2@elsewhere/db', status = 'provisioning' where env_public_id = $1`,
      [environment],
    );
    expect(await namespaceOf(workspace, environment)).toBeNull();
    await backend.database.pool.query(`update environments set status = 'ready' where env_public_id = $1`, [
      environment,
    ]);
    const namespace = await namespaceOf(workspace, environment);
    expect(namespace).toMatchObject({ hasOwnDatabase: true });
    expect(JSON.stringify(namespace)).not.toContain('hunter2');
  });

  test('of the self-hosted tenant takes labels as stored names, and sees no other tenant’s', async () => {
    const namespace = await findNamespace(backend.database.for('record'), null);
    if (namespace === null) throw new Error('The self-hosted tenant is seeded.');
    const selfHosted: Caller = {
      ...caller,
      namespace,
      principal: { ...caller.principal, workspace: null, environment: null },
    };
    const theirs = await insertState(inEnvironment('app'));
    const own = await insertState('any/name/at-all', { tenantId: namespace.tenantId });
    expect(await found(selfHosted, inEnvironment('app'), theirs)).toEqual(nothing);
    expect(await found(selfHosted, 'any/name/at-all', own)).toMatchObject({
      byId: [{ label: 'any/name/at-all' }],
    });
  });
});
