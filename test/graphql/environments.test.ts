import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { SCOPES } from '../../src/auth/principal.ts';
import { connectDatabase, type KilolockDatabase } from '../../src/database/connection.ts';
import { createEmptyTestDatabase } from '../support/database.ts';
import { insertHistory, loadCase } from '../support/fixtures.ts';
import { type AskOptions, startTestService, type TestService, withoutRequestId } from '../support/service.ts';
import { giveOwnDatabase, type OwnDatabaseEnvironment, pointTo } from './support/own-database.ts';
import { createEnvironment, documentOf, postHistory, scopeOf } from './support/states.ts';

const HOME = { workspace: 'ws_own', environment: 'env_own' };
/** An environment of the same workspace, in the control database. */
const SHARED = { workspace: 'ws_own', environment: 'env_shared' };
const PREFIX = `${HOME.workspace}/${HOME.environment}/`;

interface UserError {
  readonly code: string;
  readonly path: readonly string[] | null;
}

interface Operation {
  readonly id: string;
  readonly status: string;
  readonly error: UserError | null;
  readonly stateArchive: { readonly id: string; readonly name: string } | null;
  readonly archive: { readonly sha256: string; readonly historyDigest: string; readonly downloadUrl: string };
  readonly report: { readonly outcome: string; readonly name: string } | null;
  readonly replaced: Operation | null;
}

interface Payload {
  readonly operation: Operation | null;
  readonly userErrors: readonly UserError[];
}

const OPERATION = `id status error { code path } stateArchive { id name }
  archive { sha256 historyDigest downloadUrl } report { outcome name }`;
const PAYLOAD = `operation { ${OPERATION} replaced { ${OPERATION} } } userErrors { code path }`;
const EXPORT = `mutation ($name: String!, $scope: StateScopeInput) {
  exportStateArchive(input: { name: $name, scope: $scope }) { ${PAYLOAD} }
}`;
const IMPORT = `mutation (
  $file: Upload!, $name: String, $onConflict: StateArchiveConflictPolicy! = REFUSE, $confirmName: String,
  $expectedCurrentSerial: BigInt, $allowSharedLineage: Boolean! = true
) {
  importStateArchive(input: {
    file: $file, name: $name, onConflict: $onConflict, confirmName: $confirmName,
    expectedCurrentSerial: $expectedCurrentSerial, allowSharedLineage: $allowSharedLineage
  }) { ${PAYLOAD} }
}`;
const SNAPSHOT = `mutation ($name: String!, $document: String) {
  importStateSnapshot(input: { name: $name, document: $document }) {
    stateArchive { id name } version { serial } userErrors { code path }
  }
}`;

type Bytes = Uint8Array<ArrayBuffer>;

let service: TestService;
let own: OwnDatabaseEnvironment;
let token: string;

beforeAll(async () => {
  service = await startTestService();
  await createEnvironment(service.database, HOME.workspace, HOME.environment);
  await createEnvironment(service.database, SHARED.workspace, SHARED.environment);
});
beforeEach(async () => {
  own = await giveOwnDatabase(service, HOME);
  token = await service.token({ ...HOME, scopes: SCOPES });
});
afterEach(() => own.drop());
afterAll(() => service.stop());

function ask<Data = unknown>(
  query: string,
  variables: AskOptions['variables'] = {},
  file?: AskOptions['file'],
) {
  return service.ask<Data>(query, { token, variables, ...(file && { file }) });
}

/** Puts a history of four versions into the environment's database, in rows of a tenant that is not the environment's. */
function seed(name: string) {
  return insertHistory(own.database, loadCase('06'), { name });
}

async function exportState(name: string): Promise<Payload> {
  const { data, errors } = await ask<{ exportStateArchive: Payload }>(EXPORT, { name });
  expect(errors).toEqual([]);
  return data.exportStateArchive;
}

async function importArchive(bytes: Bytes, variables: object): Promise<Payload> {
  const { data, errors } = await ask<{ importStateArchive: Payload }>(IMPORT, { ...variables }, { bytes });
  expect(errors).toEqual([]);
  return data.importStateArchive;
}

async function download({ operation }: Payload): Promise<Bytes> {
  const response = await fetch(operation?.archive.downloadUrl ?? '');
  expect(response.status).toBe(200);
  return new Uint8Array(await response.arrayBuffer());
}

/** The rows of every table that anything here writes. */
async function contentsOf({ pool }: KilolockDatabase): Promise<Record<string, unknown[]>> {
  const tables = [
    'tenants',
    'states',
    'state_versions',
    'state_version_tags',
    'resources',
    'outputs',
    'events',
    'state_archive.operation',
    'state_archive.version_digest',
    'state_archive.version_mapping',
  ];
  const contents: Record<string, unknown[]> = {};
  for (const table of tables) {
    contents[table] = (await pool.query(`select md5(row::text) from ${table} as row order by 1`)).rows;
  }
  return contents;
}

async function eventsOf(kind: string) {
  const { rows } = await own.database.pool.query<{
    tenant_id: string;
    state_id: string | null;
    actor: string;
    payload: string;
  }>('select tenant_id, state_id, actor, payload from events where kind = $1 order by created_at', [kind]);
  return rows.map(({ payload, ...event }) => ({ ...event, payload: JSON.parse(payload) }));
}

describe('an environment with a database of its own', () => {
  test('shows the states stored there under the full name and under the bare one, whatever tenant their rows name', async () => {
    const full = await seed(`${PREFIX}prod/full`);
    const bare = await seed('prod/bare');
    const { data, errors } = await ask(
      `query ($fullId: ID!, $bareId: ID!) {
        full: stateArchive(name: "prod/full") { id name workspaceId environmentId manifest { versionCount currentSerial } }
        bare: stateArchive(name: "prod/bare") { id name workspaceId environmentId manifest { versionCount currentSerial } }
        stateArchives(filter: { namePrefix: "prod/" }) { nodes { id name } pageInfo { hasNextPage } }
        _entities(representations: [
          { __typename: "StateArchive", id: $fullId }
          { __typename: "StateArchive", workspaceId: "ws_own", environmentId: "env_own", name: "prod/bare" }
          { __typename: "State", id: $bareId }
        ]) { ... on StateArchive { id name } ... on State { archive { id name status { versionCount } } } }
      }`,
      { fullId: full.stateId, bareId: bare.stateId },
    );
    expect(errors).toEqual([]);
    const manifest = { versionCount: 4, currentSerial: '5' };
    expect(data).toEqual({
      full: { id: full.stateId, name: 'prod/full', ...scopeOf(HOME), manifest },
      bare: { id: bare.stateId, name: 'prod/bare', ...scopeOf(HOME), manifest },
      stateArchives: {
        nodes: [
          { id: bare.stateId, name: 'prod/bare' },
          { id: full.stateId, name: 'prod/full' },
        ],
        pageInfo: { hasNextPage: false },
      },
      _entities: [
        { id: full.stateId, name: 'prod/full' },
        { id: bare.stateId, name: 'prod/bare' },
        { archive: { id: bare.stateId, name: 'prod/bare', status: { versionCount: 4 } } },
      ],
    });
  });

  test('shows nothing of the control database, nor the control database anything of it', async () => {
    await seed('prod/bare');
    const { tenantId } = own;
    const stray = await insertHistory(service.database, loadCase('06'), {
      tenantId,
      name: `${PREFIX}prod/stray`,
    });
    const { data } = await ask(
      `query ($id: ID!) {
        stateArchive(name: "prod/stray") { id }
        stateArchives { nodes { name } }
        _entities(representations: [{ __typename: "StateArchive", id: $id }]) { __typename }
      }`,
      { id: stray.stateId },
    );
    expect(data).toEqual({
      stateArchive: null,
      stateArchives: { nodes: [{ name: 'prod/bare' }] },
      _entities: [null],
    });
    const elsewhere = await service.ask(
      '{ stateArchive(name: "prod/bare") { id } stateArchives { nodes { id } } }',
      {
        token: await service.token(SHARED),
      },
    );
    expect(elsewhere.data).toEqual({ stateArchive: null, stateArchives: { nodes: [] } });
  });

  test('exports and restores there, in every way there is, and writes nothing into the control database', async () => {
    const { stateId } = await seed('prod/bare');
    const before = await contentsOf(service.database);

    const exported = await exportState('prod/bare');
    expect(exported).toMatchObject({
      operation: { status: 'SUCCEEDED', stateArchive: { id: stateId } },
      userErrors: [],
    });
    const digest = exported.operation?.archive.historyDigest;
    const archive = await download(exported);
    expect(createHash('sha256').update(archive).digest('hex')).toBe(exported.operation?.archive.sha256);

    const restored = await importArchive(archive, { name: 'prod/restored' });
    expect(restored).toMatchObject({
      operation: { status: 'SUCCEEDED', report: { outcome: 'CREATED' }, archive: { historyDigest: digest } },
      userErrors: [],
    });
    const again = await exportState('prod/restored');
    expect(again.operation?.archive.historyDigest).toBe(digest);

    const copied = await importArchive(archive, { name: 'prod/bare', onConflict: 'ARCHIVED_COPY' });
    expect(copied.operation?.report).toEqual({
      outcome: 'ARCHIVED_COPY',
      name: expect.stringMatching(/^prod\/bare--archived-/),
    });

    const posted = await ask<{ importStateSnapshot: object }>(SNAPSHOT, {
      name: 'prod/bare',
      document: documentOf(loadCase('06').state.lineage ?? '', { resources: { a: '1' } }),
    });
    expect(posted.data).toMatchObject({
      importStateSnapshot: {
        stateArchive: { id: stateId },
        version: { serial: expect.any(String) },
        userErrors: [],
      },
    });
    const { serial } = (posted.data.importStateSnapshot as { version: { serial: string } }).version;
    const overwritten = await importArchive(archive, {
      name: 'prod/bare',
      onConflict: 'OVERWRITE',
      confirmName: 'prod/bare',
      expectedCurrentSerial: serial,
    });
    expect(overwritten).toMatchObject({
      operation: {
        status: 'SUCCEEDED',
        report: { outcome: 'REPLACED', name: 'prod/bare' },
        stateArchive: { id: stateId },
        replaced: { status: 'SUCCEEDED', stateArchive: { id: stateId } },
      },
      userErrors: [],
    });
    expect((await exportState('prod/bare')).operation?.archive.historyDigest).toBe(digest);

    const { rows } = await own.database.pool.query(
      'select name, tenant_id, lifecycle_status from states order by name',
    );
    expect(rows).toEqual([
      { name: 'prod/bare', tenant_id: '00000000-0000-0000-0000-000000000000', lifecycle_status: 'active' },
      {
        name: expect.stringMatching(/^ws_own\/env_own\/prod\/bare--archived-/),
        tenant_id: own.tenantId,
        lifecycle_status: 'archived',
      },
      { name: `${PREFIX}prod/restored`, tenant_id: own.tenantId, lifecycle_status: 'active' },
    ]);
    expect(await contentsOf(service.database)).toEqual(before);
  });

  test('keeps the records of operations, where they are found by id, by state and by reference', async () => {
    await seed('prod/bare');
    const exported = await exportState('prod/bare');
    const id = exported.operation?.id ?? '';
    const restored = await importArchive(await download(exported), { name: 'prod/restored' });
    const { data, errors } = await ask(
      `query ($id: ID!, $import: ID!) {
        stateArchiveOperation(id: $id) { kind status }
        import: stateArchiveOperation(id: $import) { versionMapping { nodes { serial } } }
        stateArchive(name: "prod/bare") { operations { nodes { id } } status { lastExport { id } } }
        _entities(representations: [{ __typename: "StateArchiveOperation", id: $id }]) {
          ... on StateArchiveOperation { id status }
        }
      }`,
      { id, import: restored.operation?.id },
    );
    expect(errors).toEqual([]);
    expect(data).toEqual({
      stateArchiveOperation: { kind: 'EXPORT', status: 'SUCCEEDED' },
      import: { versionMapping: { nodes: ['0', '1', '5', '9'].map((serial) => ({ serial })) } },
      stateArchive: { operations: { nodes: [{ id }] }, status: { lastExport: { id } } },
      _entities: [{ id, status: 'SUCCEEDED' }],
    });
  });

  test('gets the tenant’s row when something is first written there, with the names of the control database', async () => {
    await seed('prod/bare');
    const { rows: before } = await own.database.pool.query('select id from tenants where id = $1', [
      own.tenantId,
    ]);
    expect(before).toEqual([]);
    expect((await exportState('prod/bare')).operation?.status).toBe('SUCCEEDED');
    const { rows } = await own.database.pool.query('select slug, name from tenants where id = $1', [
      own.tenantId,
    ]);
    expect(rows).toEqual([{ slug: 'ws_own', name: 'ws_own' }]);
    expect(await eventsOf('state_export')).toMatchObject([{ tenant_id: own.tenantId, actor: 'alice@test' }]);
  });

  test('has the schema of this service made in it at first use', async () => {
    await own.database.pool.query('drop schema state_archive cascade');
    await seed('prod/bare');
    expect((await exportState('prod/bare')).operation?.status).toBe('SUCCEEDED');
  });

  test('is told of a download there, whole or in part', async () => {
    await seed('prod/bare');
    const exported = await exportState('prod/bare');
    const url = exported.operation?.archive.downloadUrl ?? '';
    const { length } = await download(exported);
    await (await fetch(url, { headers: { range: 'bytes=0-9' } })).arrayBuffer();
    let events: Awaited<ReturnType<typeof eventsOf>>;
    do events = await eventsOf('state_archive_download');
    while (events[0]?.payload.bytes !== String(length + 10));
    expect(events).toHaveLength(1);
    for (const { tenant_id, payload } of events) {
      expect([tenant_id, payload]).toEqual([
        own.tenantId,
        expect.objectContaining({
          archive_id: exported.operation?.id,
          archive_digest: exported.operation?.archive.sha256,
          label: 'prod/bare',
          principal: 'alice@test',
        }),
      ]);
    }
  });
});

describe('a label that is stored both with the prefix and without it', () => {
  let archive: Bytes;
  beforeEach(async () => {
    await seed('other/state');
    archive = await download(await exportState('other/state'));
    await seed('prod/twice');
    await seed(`${PREFIX}prod/twice`);
  });

  test('is STATE_AMBIGUOUS to queries and references', async () => {
    const { data, denials } = await ask(`{
      stateArchive(name: "prod/twice") { id }
      _entities(representations: [
        { __typename: "StateArchive", workspaceId: "ws_own", environmentId: "env_own", name: "prod/twice" }
      ]) { __typename }
    }`);
    expect(data).toEqual({ stateArchive: null, _entities: [null] });
    expect([...denials].sort()).toEqual(['_entities.0: STATE_AMBIGUOUS', 'stateArchive: STATE_AMBIGUOUS']);
  });

  test('spoils nothing that is asked for beside it', async () => {
    const { data, denials } = await ask(`{
      stateArchive(name: "prod/twice") { id }
      other: stateArchive(name: "other/state") { name }
    }`);
    expect(data).toEqual({ stateArchive: null, other: { name: 'other/state' } });
    expect(denials).toEqual(['stateArchive: STATE_AMBIGUOUS']);
  });

  test('is refused by every mutation, and nothing is written', async () => {
    const before = await contentsOf(own.database);
    const ambiguous = [{ code: 'STATE_AMBIGUOUS', path: ['input', 'name'] }];
    expect(await exportState('prod/twice')).toEqual({ operation: null, userErrors: ambiguous });
    expect(
      await importArchive(archive, {
        name: 'prod/twice',
        onConflict: 'OVERWRITE',
        confirmName: 'prod/twice',
        expectedCurrentSerial: '5',
      }),
    ).toEqual({ operation: null, userErrors: ambiguous });
    // There is no need to tell which of the two is meant to know that the name is taken.
    expect(await importArchive(archive, { name: 'prod/twice' })).toEqual({
      operation: null,
      userErrors: [{ code: 'STATE_ALREADY_EXISTS', path: ['input', 'name'] }],
    });
    const { data } = await ask(SNAPSHOT, {
      name: 'prod/twice',
      document: documentOf(crypto.randomUUID(), {}),
    });
    expect(data).toEqual({
      importStateSnapshot: { stateArchive: null, version: null, userErrors: ambiguous },
    });
    expect(await contentsOf(own.database)).toEqual(before);
  });

  test('is STATE_AMBIGUOUS to a list it belongs in, on whatever page, and not to the others', async () => {
    const list = (page: string) =>
      ask(`{ stateArchives(${page}) { nodes { name } pageInfo { endCursor } } }`);
    expect((await list('first: 100')).denials).toEqual(['stateArchives: STATE_AMBIGUOUS']);
    const { data } = await ask<{ stateArchives: { pageInfo: { endCursor: string } } }>(
      '{ stateArchives(first: 1) { nodes { name } pageInfo { endCursor } } }',
    );
    expect(data).toMatchObject({ stateArchives: { nodes: [{ name: 'other/state' }] } });
    const { endCursor } = data.stateArchives.pageInfo;
    expect((await list(`first: 1, after: "${endCursor}"`)).denials).toEqual([
      'stateArchives: STATE_AMBIGUOUS',
    ]);
    const others = await list('filter: { namePrefix: "other/" }');
    expect(others.data).toMatchObject({ stateArchives: { nodes: [{ name: 'other/state' }] } });
  });

  test('may be one name under two tenants', async () => {
    await own.database.pool.query(`insert into states (name, tenant_id) values ('other/state', $1)`, [
      own.tenantId,
    ]);
    expect((await ask('{ stateArchive(name: "other/state") { id } }')).denials).toEqual([
      'stateArchive: STATE_AMBIGUOUS',
    ]);
    expect(await exportState('other/state')).toMatchObject({ userErrors: [{ code: 'STATE_AMBIGUOUS' }] });
  });
});

describe('the stored name of a state given for its label', () => {
  test('names another state, one that is not there', async () => {
    await seed(`${PREFIX}prod/full`);
    const archive = await download(await exportState('prod/full'));
    const stored = `${PREFIX}prod/full`;
    const { data } = await ask('query ($name: String!) { stateArchive(name: $name) { id } }', {
      name: stored,
    });
    expect(data).toEqual({ stateArchive: null });
    const before = await contentsOf(own.database);
    expect(
      await importArchive(archive, {
        name: stored,
        onConflict: 'OVERWRITE',
        confirmName: stored,
        expectedCurrentSerial: '5',
      }),
    ).toEqual({ operation: null, userErrors: [{ code: 'STATE_NOT_FOUND', path: ['input', 'name'] }] });
    expect(await contentsOf(own.database)).toEqual(before);
  });

  test('leads a token that is confined to labels to none of the others', async () => {
    const { stateId } = await seed(`${PREFIX}prod/full`);
    token = await service.token({ ...HOME, scopes: SCOPES, states: [`${PREFIX}*`] });
    await ask(SNAPSHOT, { name: `${PREFIX}prod/full`, document: documentOf(crypto.randomUUID(), {}) });
    const { rows } = await own.database.pool.query(
      'select count(*) from state_versions where state_id = $1',
      [stateId],
    );
    expect(rows).toEqual([{ count: '4' }]);
  });
});

/** Everything a caller can ask of an environment, for answers that are to be the same. */
async function answersFor(operationId: string, link: string): Promise<unknown[]> {
  const document = documentOf(crypto.randomUUID(), {});
  const queries = await ask(
    `query ($id: ID!) {
      stateArchive(name: "prod/bare") { id }
      stateArchives { nodes { id } }
      stateArchiveOperation(id: $id) { id }
      _entities(representations: [
        { __typename: "StateArchive", workspaceId: "ws_own", environmentId: "env_own", name: "prod/bare" }
        { __typename: "StateArchiveOperation", id: $id }
      ]) { __typename }
    }`,
    { id: operationId },
  );
  const exporting = await ask(EXPORT, { name: 'prod/bare' });
  const posting = await ask(SNAPSHOT, { name: 'prod/bare', document });
  const importing = await ask(
    IMPORT,
    { name: 'prod/bare' },
    { bytes: new TextEncoder().encode('no archive') },
  );
  const downloading = await fetch(link);
  const { error } = (await downloading.json()) as { error: { code: string; message: string } };
  const texts = [queries, exporting, posting, importing].map(({ text }) => withoutRequestId(text));
  return [...texts, error.code, error.message];
}

describe('an environment that is not open', () => {
  test.each([
    ['being provisioned', `update environments set status = 'provisioning' where env_public_id = 'env_own'`],
    [
      'whose provisioning failed',
      `update environments set status = 'failed' where env_public_id = 'env_own'`,
    ],
    ['suspended', `update environments set lifecycle_status = 'suspended' where env_public_id = 'env_own'`],
    ['archived', `update environments set lifecycle_status = 'archived' where env_public_id = 'env_own'`],
    [
      'of a suspended tenant',
      `update tenants set lifecycle_status = 'suspended' where workspace_id = 'ws_own'`,
    ],
  ])(
    '(%s) is answered word for word like one that does not exist, and is back when it is',
    async (_name, statement) => {
      await seed('prod/bare');
      const exported = await exportState('prod/bare');
      const { id = '', archive } = exported.operation ?? {};
      const link = archive?.downloadUrl ?? '';
      const before = await contentsOf(own.database);

      const client = await service.database.pool.connect();
      try {
        await client.query(statement);
        const closed = await answersFor(id, link);
        await client.query(
          `update environments set env_public_id = 'env_gone' where env_public_id = 'env_own'`,
        );
        expect(closed).toEqual(await answersFor(id, link));
        expect(await contentsOf(own.database)).toEqual(before);
        await client.query(
          `update environments set env_public_id = 'env_own', status = 'ready', lifecycle_status = 'active'
           where env_public_id = 'env_gone'`,
        );
        await client.query(`update tenants set lifecycle_status = 'active'`);
      } finally {
        client.release();
      }
      const { data } = await ask('{ stateArchive(name: "prod/bare") { name } }');
      expect(data).toEqual({ stateArchive: { name: 'prod/bare' } });
      expect((await fetch(link)).status).toBe(200);
    },
  );
});

describe('an environment whose database cannot be used', () => {
  const PASSWORD = 'dsn-password-hunter2';
  const HOST = 'dsn-host.invalid';

  async function breakWith(dsn: string): Promise<void> {
    await pointTo(service.database, HOME, dsn);
  }

  test.each([
    ['refuses connections', `postgresql://kilolock:${PASSWORD}@127.0.0.1:1/kilolock`, 'UNAVAILABLE'],
    ['has a host that does not exist', `postgresql://kilolock:${PASSWORD}@${HOST}/kilolock`, 'UNAVAILABLE'],
    ['is no address at all', `postgresql://kilolock:${PASSWORD}@[${HOST}/kilolock`, 'INTERNAL'],
  ])('(%s) fails its callers alone, and tells nobody how it is reached', async (_name, dsn, code) => {
    await seed('prod/bare');
    await breakWith(dsn);
    const document = documentOf(crypto.randomUUID(), {});
    const answers = await Promise.all([
      ask('{ stateArchive(name: "prod/bare") { id } again: stateArchive(name: "prod/other") { id } }'),
      ask('{ stateArchives { nodes { id } } }'),
      ask(EXPORT, { name: 'prod/bare' }),
      ask(SNAPSHOT, { name: 'prod/bare', document }),
      ask(IMPORT, {}, { bytes: new TextEncoder().encode('no archive') }),
    ]);
    for (const { denials, text } of answers) {
      expect(denials).not.toEqual([]);
      expect(denials.map((denial) => denial.split(': ')[1])).toEqual(denials.map(() => code));
      for (const secret of [PASSWORD, HOST, '127.0.0.1:1', dsn]) expect(text).not.toContain(secret);
    }
    const neighbour = await service.token(SHARED);
    expect((await service.ask('{ stateArchives { nodes { id } } }', { token: neighbour })).errors).toEqual(
      [],
    );
    const log = service.log.join('');
    expect(log).toMatch(/GraphQL request failed|the database is unavailable/);
    expect(log).not.toContain(PASSWORD);

    await breakWith(own.connectionString);
    expect((await ask('{ stateArchive(name: "prod/bare") { name } }')).data).toEqual({
      stateArchive: { name: 'prod/bare' },
    });
  });

  test('is told to nobody it is nothing to: they are answered as if it did not exist', async () => {
    await breakWith(`postgresql://kilolock:${PASSWORD}@127.0.0.1:1/kilolock`);
    const stranger = await service.token({
      ...SHARED,
      scopes: ['state.read', 'state.export', 'state.import'],
    });
    const answersFor = (environment: string) =>
      Promise.all(
        [
          'query ($scope: StateScopeInput) { stateArchives(scope: $scope) { nodes { id } } }',
          'query ($scope: StateScopeInput) { stateArchiveOperations(scope: $scope) { nodes { id } } }',
          EXPORT,
          'mutation ($name: String!, $scope: StateScopeInput) { importStateSnapshot(input: { name: $name, scope: $scope, document: "{}" }) { userErrors { code } } }',
        ].map(async (query) => {
          const scope = scopeOf({ workspace: HOME.workspace, environment });
          const { text } = await service.ask(query, {
            token: stranger,
            variables: { name: 'prod/bare', scope },
          });
          return withoutRequestId(text);
        }),
      );
    const before = service.log.length;
    expect(await answersFor(HOME.environment)).toEqual(await answersFor('env_none'));
    expect(service.log.slice(before).filter((line) => line.includes('unavailable'))).toEqual([]);
  });

  test('says in the log what failed, however many requests failed at the same time', async () => {
    await breakWith(`postgresql://kilolock:${PASSWORD}@127.0.0.1:1/kilolock`);
    const before = service.log.length;
    await Promise.all(Array.from({ length: 4 }, () => ask('{ stateArchives { nodes { id } } }')));
    const failures = service.log.slice(before).filter((line) => line.includes('the database is unavailable'));
    expect(failures).toEqual(Array.from({ length: 4 }, () => expect.stringContaining('ECONNREFUSED')));
  });

  test('works again once its server answers, and what was begun elsewhere meanwhile went on', async () => {
    await seed('prod/bare');
    expect((await exportState('prod/bare')).operation?.status).toBe('SUCCEEDED');
    const name = new URL(own.connectionString).pathname.slice(1);
    const admin = connectDatabase({ connectionString: new URL('/postgres', own.connectionString).href });
    try {
      await admin.pool.query(`alter database "${name}" with allow_connections false`);
      await admin.pool.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
        [name],
      );
      const { denials } = await ask('{ stateArchives { nodes { name } } }');
      expect(denials).toEqual(['stateArchives: UNAVAILABLE']);
      await admin.pool.query(`alter database "${name}" with allow_connections true`);
    } finally {
      await admin.close();
    }
    const { data } = await ask('{ stateArchives { nodes { name } } }');
    expect(data).toEqual({ stateArchives: { nodes: [{ name: 'prod/bare' }] } });
  });

  test('because it is not Kilolock’s is left as it is', async () => {
    const empty = await createEmptyTestDatabase();
    try {
      await breakWith(empty.connectionString);
      const { denials } = await ask('{ stateArchives { nodes { name } } }');
      expect(denials).toEqual(['stateArchives: INTERNAL']);
      const { rows } = await empty.database.pool.query(
        `select nspname from pg_namespace where nspname !~ '^(pg_|information_schema)'`,
      );
      expect(rows).toEqual([{ nspname: 'public' }]);
    } finally {
      await empty.drop();
    }
  });
});

test('the connection string of an environment is in no log line, no answer, no event and no record', async () => {
  const { stateId } = await seed('prod/bare');
  await seed('prod/twice');
  await seed(`${PREFIX}prod/twice`);
  await postHistory(service.database, null, 'self/hosted', [{}]);
  const texts: string[] = [];
  const exported = await exportState('prod/bare');
  const archive = await download(exported);
  texts.push(
    JSON.stringify(await importArchive(archive, { name: 'prod/restored' })),
    JSON.stringify(exported),
  );
  texts.push((await ask(EXPORT, { name: 'prod/absent' })).text);
  texts.push((await ask(EXPORT, { name: 'prod/twice' })).text);
  texts.push(
    (
      await ask(
        'query ($id: ID!) { _entities(representations: [{ __typename: "StateArchive", id: $id }]) { __typename } }',
        {
          id: stateId,
        },
      )
    ).text,
  );
  await own.database.pool.query('alter table events rename to events_gone');
  texts.push((await ask(EXPORT, { name: 'prod/bare' })).text);
  texts.push((await ask('{ stateArchive(name: "prod/bare") { manifest { eventCount } } }')).text);
  await own.database.pool.query('alter table events_gone rename to events');
  expect(texts.join('')).toContain('INTERNAL');
  for (const { pool } of [own.database, service.database]) {
    for (const table of ['events', 'state_archive.operation']) {
      texts.push(...(await pool.query(`select row::text from ${table} as row`)).rows.map(({ row }) => row));
    }
  }
  texts.push(...service.log, Buffer.from(archive).toString('latin1'));
  expect(texts.filter((text) => text.includes(own.secret))).toEqual([]);
});

test('a failure in the database puts nothing of a state into the log, nor into an answer', async () => {
  const lineage = crypto.randomUUID();
  const document = documentOf(lineage, { outputs: { password: 'hunter2-in-a-state' } });
  await ask(SNAPSHOT, { name: 'prod/secret', document });
  const archive = await download(await exportState('prod/secret'));
  const before = service.log.length;
  const { pool } = own.database;
  await pool.query(`alter table state_versions add constraint never check (source = 'never') not valid`);
  await pool.query(`alter table outputs add constraint never check (name = 'never') not valid`);
  const answers = [
    await ask(IMPORT, { name: 'prod/restored' }, { bytes: archive }),
    await ask(SNAPSHOT, { name: 'prod/secret', document }),
  ];
  await pool.query('alter table state_versions drop constraint never');
  answers.push(
    await ask(IMPORT, { name: 'prod/restored' }, { bytes: archive }),
    await ask(SNAPSHOT, { name: 'prod/secret', document }),
  );
  for (const { text } of answers) expect(text).toContain('INTERNAL');
  const log = service.log.slice(before);
  expect(log.join('')).toContain('operation failed');
  expect(log.filter((line) => line.includes('hunter2'))).toEqual([]);
  expect(answers.filter(({ text }) => text.includes('hunter2'))).toEqual([]);
});

/** What one can name: what is there, or what is not. */
interface Target {
  readonly name: string;
  readonly stateId: string;
  readonly operationId: string;
  readonly workspace: string;
  readonly environment: string;
}

const FIELDS = `id name lineage status { versionCount lastExport { id } } manifest { historyDigest } tags { name }
  version(serial: "1") { serial rawState }`;

/** Every way to a row. All take the target as variables, so that what is asked is the same text whatever it is. */
const WAYS: readonly (readonly [name: string, query: string])[] = [
  [
    'a root field',
    `query ($name: String!, $scope: StateScopeInput) { stateArchive(name: $name, scope: $scope) { ${FIELDS} } }`,
  ],
  [
    'an alias',
    `query ($name: String!, $scope: StateScopeInput) { stateArchives: stateArchive(name: $name, scope: $scope) { id: name } }`,
  ],
  [
    'a fragment',
    `query ($name: String!, $scope: StateScopeInput) { ...q }
     fragment q on Query { stateArchive(name: $name, scope: $scope) { ...s } }
     fragment s on StateArchive { ${FIELDS} }`,
  ],
  [
    'a list',
    `query ($name: String, $scope: StateScopeInput) {
       stateArchives(first: 2, scope: $scope, filter: { namePrefix: $name }) { nodes { ${FIELDS} } pageInfo { endCursor } }
     }`,
  ],
  [
    'an operation',
    `query ($operationId: ID!, $scope: StateScopeInput) {
       stateArchiveOperation(id: $operationId, scope: $scope) {
         id status stateArchive { id } archive { sha256 downloadUrl } versionMapping(first: 2) { nodes { serial } }
       }
     }`,
  ],
  [
    'references',
    `query ($stateArchive: _Any!, $byName: _Any!, $state: _Any!, $operation: _Any!) {
       _entities(representations: [$stateArchive, $byName, $state, $operation]) {
         __typename
         ... on StateArchive { ${FIELDS} }
         ... on State { archive { ${FIELDS} } }
         ... on StateArchiveOperation { id archive { sha256 downloadUrl } }
       }
     }`,
  ],
  [
    'a batch with what is the caller’s own',
    `query ($stateArchive: _Any!, $byName: _Any!, $ownState: _Any!, $operation: _Any!) {
       _entities(representations: [$stateArchive, $ownState, $byName, $operation]) {
         ... on StateArchive { ${FIELDS} }
       }
       stateArchives(first: 2) { nodes { name } }
     }`,
  ],
  [
    'an export',
    `mutation ($name: String!, $scope: StateScopeInput) {
       exportStateArchive(input: { name: $name, scope: $scope }) {
         operation { id archive { downloadUrl } } userErrors { code message path }
       }
     }`,
  ],
  [
    'a snapshot',
    `mutation ($name: String!, $scope: StateScopeInput!, $document: String) {
       importStateSnapshot(input: { name: $name, scope: $scope, document: $document }) {
         stateArchive { id } version { serial } userErrors { code message path }
       }
     }`,
  ],
];

const UPLOAD = `mutation ($file: Upload!, $name: String, $scope: StateScopeInput!, $policy: StateArchiveConflictPolicy!, $confirm: String, $serial: BigInt) {
  importStateArchive(input: {
    file: $file, name: $name, scope: $scope, onConflict: $policy, confirmName: $confirm, expectedCurrentSerial: $serial
  }) { operation { id } userErrors { code message path } }
}`;

describe('a row that is not the caller’s', () => {
  const OTHER = { workspace: 'ws_other', environment: 'env_other' };
  const SECOND = { workspace: SHARED.workspace, environment: 'env_second' };
  const ABSENT: Target = {
    name: 'prod/absent',
    stateId: '00000000-0000-4000-8000-000000000001',
    operationId: '00000000-0000-4000-8000-000000000002',
    workspace: 'ws_absent',
    environment: 'env_absent',
  };
  let there: Target;
  let archive: Bytes;

  beforeAll(async () => {
    for (const { workspace, environment } of [OTHER, SECOND]) {
      await createEnvironment(service.database, workspace, environment);
      await postHistory(service.database, { workspace, environment }, 'own/state', [{}]);
    }
    await postHistory(service.database, null, 'own/state', [{}]);
    await postHistory(service.database, SHARED, 'own/state', [{}]);
    const { stateId } = await postHistory(service.database, SHARED, 'prod/network', [
      { outputs: { secret: 'hunter2' } },
    ]);
    token = await service.token({ ...SHARED, scopes: SCOPES });
    const exported = await exportState('prod/network');
    archive = await download(exported);
    there = { name: 'prod/network', stateId, operationId: exported.operation?.id ?? '', ...SHARED };
  });

  /** Takes every way to a target, and gives what each was answered. */
  async function take({ name, stateId, operationId, workspace, environment }: Target, ownId: string) {
    const scope = scopeOf({ workspace, environment });
    const variables = {
      name,
      scope,
      operationId,
      document: documentOf('7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10', {}),
      stateArchive: { __typename: 'StateArchive', id: stateId },
      byName: { __typename: 'StateArchive', ...scope, name },
      state: { __typename: 'State', id: stateId },
      ownState: { __typename: 'StateArchive', id: ownId },
      operation: { __typename: 'StateArchiveOperation', id: operationId },
    };
    const answers: Record<string, string> = {};
    for (const [way, query] of WAYS) answers[way] = withoutRequestId((await ask(query, variables)).text);
    for (const policy of ['REFUSE', 'ARCHIVED_COPY', 'OVERWRITE']) {
      const confirmation = policy === 'OVERWRITE' ? { confirm: name, serial: '1' } : {};
      const answer = await ask(UPLOAD, { name, scope, policy, ...confirmation }, { bytes: archive });
      answers[`an upload to ${policy}`] = withoutRequestId(answer.text);
    }
    return answers;
  }

  async function idOfOwnState(): Promise<string> {
    const { data } = await ask<{ stateArchive: { id: string } }>(
      '{ stateArchive(name: "own/state") { id } }',
    );
    return data.stateArchive.id;
  }

  test.each([
    ['of another tenant', OTHER, {}],
    ['of another environment of the tenant', SECOND, {}],
    ['of a self-hosted environment', {}, {}],
    ['confined to other states of the environment', { ...SHARED, states: ['own/*', 'prod/net'] }, SHARED],
  ])('is to one %s, by every way, what a row that does not exist is', async (_name, claims, environment) => {
    token = await service.token({ ...claims, scopes: SCOPES.filter((scope) => scope !== 'state.support') });
    const ownId = await idOfOwnState();
    const absent = await take({ ...ABSENT, ...environment }, ownId);
    const before = await contentsOf(service.database);
    expect(await take(there, ownId)).toEqual(absent);
    expect(await contentsOf(service.database)).toEqual(before);
    const texts = Object.values(absent).join('');
    expect([
      texts.includes('"own/state"'),
      texts.includes('FORBIDDEN'),
      texts.includes('STATE_NOT_FOUND'),
    ]).toEqual([true, true, true]);
  });

  test('is behind no link but its own', async () => {
    token = await service.token({ ...OTHER, scopes: SCOPES });
    const exported = await exportState('own/state');
    const link = exported.operation?.archive.downloadUrl ?? '';
    const answerAt = async (operationId: string) => {
      const response = await fetch(link.replace(exported.operation?.id ?? '', operationId));
      return [response.status, withoutRequestId(await response.text())];
    };
    expect((await fetch(link)).status).toBe(200);
    const absent = await answerAt(ABSENT.operationId);
    expect(absent[0]).toBe(404);
    expect(await answerAt(there.operationId)).toEqual(absent);
  });

  test('is found by its own environment, by every way that reads', async () => {
    token = await service.token({ ...SHARED, scopes: SCOPES.filter((scope) => scope !== 'state.support') });
    const answers = await take(there, await idOfOwnState());
    const found = WAYS.map(([way]) => way).filter((way) => answers[way]?.includes('prod/network'));
    expect(found).toEqual([
      'a root field',
      'an alias',
      'a fragment',
      'a list',
      'references',
      'a batch with what is the caller’s own',
    ]);
    expect(answers['an operation']).toContain(there.operationId);
    expect(answers['an upload to REFUSE']).toContain('STATE_ALREADY_EXISTS');
  });
});
