import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startTestService, type TestService, withoutRequestId } from '../support/service.ts';
import { giveOwnDatabase } from './support/own-database.ts';
import { createEnvironment, documentOf, postHistory, scopeOf } from './support/states.ts';

const DESK = { workspace: 'ws_desk', environment: 'env_desk' };
const CUSTOMER = { workspace: 'ws_customer', environment: 'env_customer' };
const ABSENT = { workspace: 'ws_absent', environment: 'env_absent' };
const REASON = 'ticket 4711: the pointer looks wrong';
const ALL = ['state.read', 'state.export', 'state.import', 'state.raw.read', 'state.support'];
const ARCHIVED = 'prod/old--archived-calm-cedar-1f';

const LOOK = `query ($name: String!, $scope: StateScopeInput) {
  stateArchive(name: $name, scope: $scope) { id name lifecycleStatus manifest { versionCount } }
}`;
const LIST = `query ($scope: StateScopeInput) { stateArchives(scope: $scope) { nodes { name lifecycleStatus } } }`;
const OPERATION = `query ($id: ID!, $scope: StateScopeInput) {
  stateArchiveOperation(id: $id, scope: $scope) { id status archive { sha256 downloadUrl } }
}`;
const EXPORT = `mutation ($name: String!, $scope: StateScopeInput) {
  exportStateArchive(input: { name: $name, scope: $scope }) {
    operation { id status archive { sha256 historyDigest downloadUrl } } userErrors { code message path }
  }
}`;
const IMPORT = `mutation ($file: Upload!, $name: String, $scope: StateScopeInput) {
  importStateArchive(input: { file: $file, name: $name, scope: $scope, allowSharedLineage: true }) {
    operation { id status stateArchive { id name } } userErrors { code message path }
  }
}`;
const SNAPSHOT = `mutation ($name: String!, $scope: StateScopeInput, $document: String) {
  importStateSnapshot(input: { name: $name, scope: $scope, document: $document }) {
    stateArchive { name } version { serial } userErrors { code message path }
  }
}`;

interface Exported {
  readonly exportStateArchive: {
    readonly operation: {
      readonly id: string;
      readonly status: string;
      readonly archive: {
        readonly sha256: string;
        readonly historyDigest: string;
        readonly downloadUrl: string;
      };
    } | null;
    readonly userErrors: readonly { readonly code: string }[];
  };
}

let service: TestService;
let stateId: string;
let operationId: string;
let support: string;

beforeAll(async () => {
  service = await startTestService();
  for (const { workspace, environment } of [DESK, CUSTOMER]) {
    await createEnvironment(service.database, workspace, environment);
  }
  ({ stateId } = await postHistory(service.database, CUSTOMER, 'prod/network', [{}, {}]));
  await postHistory(service.database, CUSTOMER, 'prod/held', [{}]);
  await postHistory(service.database, CUSTOMER, ARCHIVED, [{}, {}, {}]);
  await postHistory(service.database, CUSTOMER, 'secret/vault', [{}]);
  await postHistory(service.database, DESK, 'desk/notes', [{}]);
  await postHistory(service.database, DESK, 'desk/held', [{}]);
  await service.database.pool.query(
    `update states set lifecycle_status = 'suspended' where name ~ '/(prod|desk)/held$'`,
  );
  await service.database.pool.query(
    `update states set lifecycle_status = 'archived' where name like '%--archived-%'`,
  );
  const exported = await service.ask<Exported>(EXPORT, {
    variables: { name: 'prod/network' },
    token: await service.token(CUSTOMER),
  });
  operationId = exported.data.exportStateArchive.operation?.id ?? '';
  support = await service.token({ ...DESK, subject: 'sam@support', name: 'Sam', scopes: ALL });
});

beforeEach(async () => {
  await service.database.pool.query(`delete from events where kind = 'state_support_access'`);
});

afterAll(() => service.stop());

function ask<Data = unknown>(query: string, variables: Record<string, unknown>, token = support) {
  return service.ask<Data>(query, {
    variables: { scope: scopeOf(CUSTOMER, REASON), ...variables },
    token,
  });
}

/** The events of one kind, the oldest first, with the environment's own names for tenants. */
async function eventsOf(kind: string, { pool } = service.database) {
  const { rows } = await pool.query<{
    actor: string;
    state_id: string | null;
    payload: string;
    slug: string;
  }>(
    `select actor, state_id, payload, slug from events join tenants on tenants.id = events.tenant_id
     where events.kind = $1 order by events.created_at`,
    [kind],
  );
  return rows.map(({ payload, ...event }) => ({ ...event, payload: JSON.parse(payload) }));
}

/** The ids under which the log knows the last requests, the newest last. */
function loggedRequests(): string[] {
  return service.log
    .map((line) => JSON.parse(line) as { msg: string; requestId: string })
    .filter(({ msg }) => msg === 'support access')
    .map(({ requestId }) => requestId);
}

describe('support, with a reason', () => {
  test('reaches states in another workspace, whatever their lifecycle, by the label they are stored under', async () => {
    expect((await ask(LOOK, { name: 'prod/network' })).data).toEqual({
      stateArchive: {
        id: stateId,
        name: 'prod/network',
        lifecycleStatus: 'ACTIVE',
        manifest: { versionCount: 2 },
      },
    });
    expect((await ask(LOOK, { name: ARCHIVED })).data).toMatchObject({
      stateArchive: { name: ARCHIVED, lifecycleStatus: 'ARCHIVED', manifest: { versionCount: 3 } },
    });
    expect((await ask(LOOK, { name: 'prod/old' })).data).toEqual({ stateArchive: null });
    expect((await ask(LIST, {})).data).toEqual({
      stateArchives: {
        nodes: [
          { name: 'prod/held', lifecycleStatus: 'SUSPENDED' },
          { name: 'prod/network', lifecycleStatus: 'ACTIVE' },
          { name: ARCHIVED, lifecycleStatus: 'ARCHIVED' },
          { name: 'secret/vault', lifecycleStatus: 'ACTIVE' },
        ],
      },
    });
    expect((await ask(OPERATION, { id: operationId })).data).toMatchObject({
      stateArchiveOperation: { id: operationId, status: 'SUCCEEDED' },
    });
  });

  test.each(['prod/network', 'prod/held', ARCHIVED])(
    'exports %s, and restores it elsewhere',
    async (name) => {
      const { data } = await ask<Exported>(EXPORT, { name });
      const { operation } = data.exportStateArchive;
      expect([operation?.status, data.exportStateArchive.userErrors]).toEqual(['SUCCEEDED', []]);
      const response = await fetch(operation?.archive.downloadUrl ?? '');
      const bytes = new Uint8Array(await response.arrayBuffer());
      const scope = scopeOf(CUSTOMER, REASON);
      const label = `restored/${crypto.randomUUID()}`;
      const restored = await service.ask(IMPORT, {
        variables: { scope, name: label },
        token: support,
        file: { bytes },
      });
      expect(restored.data).toMatchObject({
        importStateArchive: {
          operation: { status: 'SUCCEEDED', stateArchive: { name: label } },
          userErrors: [],
        },
      });
      const again = await ask<Exported>(EXPORT, { name: label });
      expect(again.data.exportStateArchive.operation?.archive.historyDigest).toBe(
        operation?.archive.historyDigest,
      );
    },
  );

  test('is put on record in the environment it enters: who, why, and in which request', async () => {
    await ask(LOOK, { name: 'prod/network' });
    const [event, ...others] = await eventsOf('state_support_access');
    expect(others).toEqual([]);
    expect(event).toEqual({
      actor: 'Sam',
      state_id: null,
      slug: CUSTOMER.workspace,
      payload: { ...CUSTOMER, reason: REASON, principal: 'sam@support', request_id: loggedRequests().at(-1) },
    });
  });

  test('is put on record before anything of the environment is read', async () => {
    const statements = await service.statementsOf(() => ask(LOOK, { name: 'prod/network' }));
    const recorded = statements.findIndex((statement) => statement.includes('insert into public.events'));
    const read = statements.findIndex((statement) => statement.includes('from "public"."states"'));
    expect(recorded).toBeGreaterThan(-1);
    expect(read).toBeGreaterThan(recorded);
  });

  test('gets nothing when that cannot be put on record', async () => {
    const { pool } = service.database;
    await pool.query(`alter table events add constraint no_access check (kind <> 'state_support_access')`);
    try {
      const { data, denials } = await ask(
        `query ($name: String!, $scope: StateScopeInput) {
          stateArchive(name: $name, scope: $scope) { id }
          again: stateArchive(name: $name, scope: $scope) { id }
        }`,
        { name: 'prod/network' },
      );
      expect(data).toEqual({ stateArchive: null, again: null });
      expect([...denials].sort()).toEqual(['again: INTERNAL', 'stateArchive: INTERNAL']);
    } finally {
      await pool.query('alter table events drop constraint no_access');
    }
  });

  test('is put on record once for each request, however often it asks', async () => {
    const query = `query ($scope: StateScopeInput, $id: ID!) {
      a: stateArchive(name: "prod/network", scope: $scope) { id }
      b: stateArchive(name: "prod/held", scope: $scope) { id }
      stateArchives(scope: $scope) { nodes { id versions { nodes { serial } } } }
      stateArchiveOperation(id: $id, scope: $scope) { id stateArchive { id } }
    }`;
    await ask(query, { id: operationId });
    await ask(query, { id: operationId });
    const events = await eventsOf('state_support_access');
    expect(events.map(({ payload }) => payload.request_id)).toEqual(loggedRequests().slice(-2));
  });

  test('puts every reason it gives on record', async () => {
    await ask(
      `query ($one: StateScopeInput, $two: StateScopeInput) {
        a: stateArchive(name: "prod/network", scope: $one) { id }
        b: stateArchive(name: "prod/network", scope: $two) { id }
      }`,
      { one: scopeOf(CUSTOMER, 'first'), two: scopeOf(CUSTOMER, ' second ') },
    );
    const events = await eventsOf('state_support_access');
    expect(events.map(({ payload }) => payload.reason).sort()).toEqual(['first', 'second']);
  });

  test('is put on record in the database of an environment that has its own, and nowhere else', async () => {
    const names = { workspace: 'ws_apart', environment: 'env_apart' };
    await createEnvironment(service.database, names.workspace, names.environment);
    const own = await giveOwnDatabase(service, names);
    try {
      const { denials } = await ask(LOOK, { name: 'prod/network', scope: scopeOf(names, REASON) });
      expect(denials).toEqual([]);
      expect(await eventsOf('state_support_access', own.database)).toMatchObject([
        { slug: names.workspace, payload: { ...names, reason: REASON } },
      ]);
      expect(await eventsOf('state_support_access')).toEqual([]);
    } finally {
      await own.drop();
    }
  });

  test('sees the states its token is confined to and no others', async () => {
    const confined = await service.token({ ...DESK, scopes: ALL, states: ['prod/*'] });
    expect((await ask(LOOK, { name: 'secret/vault' }, confined)).data).toEqual({ stateArchive: null });
    const { data } = await ask<{ stateArchives: { nodes: { name: string }[] } }>(LIST, {}, confined);
    expect(data.stateArchives.nodes.map(({ name }) => name)).toEqual(['prod/held', 'prod/network', ARCHIVED]);
    const exporting = await ask<Exported>(EXPORT, { name: 'secret/vault' }, confined);
    expect(exporting.data.exportStateArchive).toMatchObject({
      operation: null,
      userErrors: [{ code: 'STATE_NOT_FOUND' }],
    });
    const document = documentOf(crypto.randomUUID(), {});
    const posting = await ask(SNAPSHOT, { name: 'secret/vault', document }, confined);
    expect(posting.denials).toEqual(['importStateSnapshot: FORBIDDEN']);
  });

  test('does what its other scopes permit and nothing else', async () => {
    const reader = await service.token({ ...DESK, scopes: ['state.read', 'state.support'] });
    expect((await ask(LOOK, { name: 'prod/network' }, reader)).data).toMatchObject({
      stateArchive: { id: stateId },
    });
    expect((await ask(EXPORT, { name: 'prod/network' }, reader)).denials).toEqual([
      'exportStateArchive: FORBIDDEN',
    ]);
    const alone = await service.token({ ...DESK, scopes: ['state.support'] });
    expect((await ask(LOOK, { name: 'prod/network' }, alone)).denials).toEqual(['stateArchive: FORBIDDEN']);
    expect(await eventsOf('state_support_access')).toHaveLength(1);
  });

  test('finds nothing in an environment that does not exist, is suspended, or whose tenant is', async () => {
    const { pool } = service.database;
    const look = async (scope: object) =>
      withoutRequestId((await ask(LOOK, { name: 'prod/network', scope })).text);
    const absent = await look(scopeOf(ABSENT, REASON));
    expect(JSON.parse(absent)).toEqual({ data: { stateArchive: null } });
    for (const [table, column, id] of [
      ['environments', 'env_public_id', CUSTOMER.environment],
      ['tenants', 'workspace_id', CUSTOMER.workspace],
    ]) {
      await pool.query(`update ${table} set lifecycle_status = 'suspended' where ${column} = $1`, [id]);
      try {
        expect(await look(scopeOf(CUSTOMER, REASON))).toBe(absent);
      } finally {
        await pool.query(`update ${table} set lifecycle_status = 'active' where ${column} = $1`, [id]);
      }
    }
    expect(await eventsOf('state_support_access')).toEqual([]);
  });
});

describe('support without a reason', () => {
  const REASONS = [
    undefined,
    null,
    '',
    ' \t\n',
    'x'.repeat(501),
    'nul\0',
    '\ud800',
    'two\nlines',
    'hid\u200bden',
    '\u202eecnedicni',
  ];

  test.each(REASONS)(
    '(%j) is refused in an environment that is not its own, and reads and writes nothing',
    async (reason) => {
      const scope = scopeOf(CUSTOMER, reason);
      const document = documentOf(crypto.randomUUID(), {});
      const answers = async () => [
        (await ask(LOOK, { name: 'prod/network', scope })).denials,
        (await ask(LIST, { scope })).denials,
        (await ask(OPERATION, { id: operationId, scope })).denials,
        (await ask(EXPORT, { name: 'prod/network', scope })).denials,
        (await ask(SNAPSHOT, { name: 'prod/new', scope, document })).denials,
        (
          await service.ask(IMPORT, {
            variables: { scope, name: 'prod/new' },
            token: support,
            file: { bytes: new TextEncoder().encode('no archive') },
          })
        ).denials,
      ];
      let denials: (readonly string[])[] = [];
      const statements = await service.statementsOf(async () => {
        denials = await answers();
      });
      const fields = [
        'stateArchive',
        'stateArchives',
        'stateArchiveOperation',
        'exportStateArchive',
        'importStateSnapshot',
        'importStateArchive',
      ];
      expect(denials).toEqual(fields.map((field) => [`${field}: BAD_USER_INPUT`]));
      expect(
        statements.filter((statement) => /states"|state_archive|^insert|^update/.test(statement)),
      ).toEqual([]);
    },
  );

  test('may not follow references either, which cannot carry one; others of the batch are answered', async () => {
    const { data, denials } = await ask(
      `query ($customer: _Any!, $own: _Any!) {
        _entities(representations: [$customer, $own]) { ... on StateArchive { name } }
      }`,
      {
        customer: { __typename: 'StateArchive', ...scopeOf(CUSTOMER), name: 'prod/network' },
        own: { __typename: 'StateArchive', ...scopeOf(DESK), name: 'desk/notes' },
      },
    );
    expect(data).toEqual({ _entities: [null, { name: 'desk/notes' }] });
    expect(denials).toEqual(['_entities.0: BAD_USER_INPUT']);
    expect(await eventsOf('state_support_access')).toEqual([]);
  });

  test('acts in its own environment as everybody does', async () => {
    for (const scope of [undefined, null, scopeOf(DESK)]) {
      const { data } = await service.ask(LIST, { variables: { scope }, token: support });
      expect(data).toEqual({ stateArchives: { nodes: [{ name: 'desk/notes', lifecycleStatus: 'ACTIVE' }] } });
    }
    expect(await eventsOf('state_support_access')).toEqual([]);
  });

  test('and with one sees all of its own environment, on record', async () => {
    const { data } = await ask(LIST, { scope: scopeOf(DESK, REASON) });
    expect(data).toEqual({
      stateArchives: {
        nodes: [
          { name: 'desk/held', lifecycleStatus: 'SUSPENDED' },
          { name: 'desk/notes', lifecycleStatus: 'ACTIVE' },
        ],
      },
    });
    expect(await eventsOf('state_support_access')).toMatchObject([{ slug: DESK.workspace }]);
  });
});

describe('a reason without state.support', () => {
  test('is answered word for word as in an environment that does not exist, and leaves no trace', async () => {
    const token = await service.token({ ...DESK, scopes: ALL.filter((scope) => scope !== 'state.support') });
    const document = documentOf(crypto.randomUUID(), {});
    const answersIn = async (scope: object) => {
      const answers = [
        await ask(LOOK, { name: 'prod/network', scope }, token),
        await ask(LIST, { scope }, token),
        await ask(OPERATION, { id: operationId, scope }, token),
        await ask(EXPORT, { name: 'prod/network', scope }, token),
        await ask(SNAPSHOT, { name: 'prod/network', scope, document }, token),
        await service.ask(IMPORT, {
          variables: { scope, name: 'prod/network' },
          token,
          file: { bytes: new TextEncoder().encode('no archive') },
        }),
      ];
      return answers.map(({ text }) => withoutRequestId(text));
    };
    const absent = await answersIn(scopeOf(ABSENT, REASON));
    expect(await answersIn(scopeOf(CUSTOMER, REASON))).toEqual(absent);
    expect(await answersIn(scopeOf(CUSTOMER))).toEqual(absent);
    expect(absent.map((text) => JSON.parse(text))).toMatchObject([
      { data: { stateArchive: null } },
      { data: { stateArchives: { nodes: [] } } },
      { data: { stateArchiveOperation: null } },
      { data: { exportStateArchive: { operation: null, userErrors: [{ code: 'STATE_NOT_FOUND' }] } } },
      { errors: [{ extensions: { code: 'FORBIDDEN' } }], data: { importStateSnapshot: null } },
      { errors: [{ extensions: { code: 'FORBIDDEN' } }], data: { importStateArchive: null } },
    ]);
    expect(await eventsOf('state_support_access')).toEqual([]);
  });

  test('shows no suspended or archived state of the caller’s own environment', async () => {
    const token = await service.token(CUSTOMER);
    const { data } = await ask<{ stateArchives: { nodes: { name: string }[] } }>(LIST, {}, token);
    const names = data.stateArchives.nodes.map(({ name }) => name);
    expect(names).toContain('prod/network');
    expect(names.filter((name) => name === 'prod/held' || name.includes('--archived-'))).toEqual([]);
  });
});

describe('the audit trail', () => {
  const AUDITOR = { ...CUSTOMER, subject: 'ann@customer', name: 'Ann' };

  async function lastEvent(kind: string) {
    const event = (await eventsOf(kind)).at(-1);
    if (event === undefined) throw new Error(`There is no ${kind}.`);
    return event;
  }

  test('says of an export who took what out, in which request, and of support why', async () => {
    const { data } = await service.ask<Exported>(EXPORT, {
      variables: { name: 'prod/network' },
      token: await service.token(AUDITOR),
    });
    const { operation } = data.exportStateArchive;
    const event = await lastEvent('state_export');
    expect(event).toMatchObject({
      actor: 'Ann',
      state_id: stateId,
      payload: {
        outcome: 'succeeded',
        archive_id: operation?.id,
        archive_digest: operation?.archive.sha256,
        history_digest: operation?.archive.historyDigest,
        label: 'prod/network',
        principal: 'ann@customer',
        request_id: expect.any(String),
      },
    });
    expect(event.payload).not.toHaveProperty('reason');
    await ask(EXPORT, { name: 'prod/network' });
    expect(await lastEvent('state_export')).toMatchObject({
      actor: 'Sam',
      payload: { principal: 'sam@support', reason: REASON, request_id: loggedRequests().at(-1) },
    });
  });

  test('says of an import who brought what in, from which archive, in which request, and of support why', async () => {
    const { data } = await ask<Exported>(EXPORT, { name: 'prod/network' });
    const { operation } = data.exportStateArchive;
    const file = {
      bytes: new Uint8Array(await (await fetch(operation?.archive.downloadUrl ?? '')).arrayBuffer()),
    };
    const restored = await service.ask<{
      importStateArchive: { operation: { id: string; stateArchive: { id: string } } };
    }>(IMPORT, {
      variables: { scope: scopeOf(CUSTOMER, REASON), name: 'audited/import' },
      token: support,
      file,
    });
    const { id, stateArchive } = restored.data.importStateArchive.operation;
    expect(await lastEvent('state_import')).toMatchObject({
      actor: 'Sam',
      state_id: stateArchive.id,
      slug: CUSTOMER.workspace,
      payload: {
        archive_id: id,
        archive_digest: operation?.archive.sha256,
        history_digest: operation?.archive.historyDigest,
        label: 'audited/import',
        principal: 'sam@support',
        request_id: loggedRequests().at(-1),
        reason: REASON,
      },
    });
  });

  test('says of an export that failed who asked, and why it failed', async () => {
    const { rows } = await service.database.pool.query<{ id: string }>(
      `insert into states (tenant_id, name) select id, $2 from tenants where workspace_id = $1 returning id`,
      [CUSTOMER.workspace, `${CUSTOMER.workspace}/${CUSTOMER.environment}/audited/empty`],
    );
    await ask(EXPORT, { name: 'audited/empty' });
    expect(await lastEvent('state_export')).toMatchObject({
      actor: 'Sam',
      state_id: rows[0]?.id,
      payload: { outcome: 'failed', error: 'STATE_EMPTY', principal: 'sam@support', reason: REASON },
    });
  });

  test('says of each download by whom the link was asked for, what was handed on, and in which request', async () => {
    const { data } = await service.ask<Exported>(EXPORT, {
      variables: { name: 'prod/network' },
      token: await service.token(AUDITOR),
    });
    const { operation } = data.exportStateArchive;
    const response = await fetch(operation?.archive.downloadUrl ?? '');
    const { byteLength } = await response.arrayBuffer();
    let downloads: Awaited<ReturnType<typeof eventsOf>>;
    do {
      downloads = (await eventsOf('state_archive_download')).filter(
        ({ payload }) => payload.archive_id === operation?.id,
      );
    } while (downloads[0]?.payload.outcome !== 'completed');
    expect(downloads).toEqual([
      {
        actor: expect.any(String),
        state_id: stateId,
        slug: CUSTOMER.workspace,
        payload: {
          archive_id: operation?.id,
          archive_digest: operation?.archive.sha256,
          bytes: String(byteLength),
          label: 'prod/network',
          outcome: 'completed',
          principal: 'ann@customer',
          request_id: response.headers.get('x-request-id'),
        },
      },
    ]);
  });
});
