import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  addMember,
  createAccount,
  createApiToken,
  createEnvironment,
  createWorkspace,
  grantEnvironment,
  grantRole,
  type TestEnvironment,
  type TestToken,
} from '../auth/support/kilolock-tenancy.ts';
import { type AskOptions, startTestService, type TestService, withoutRequestId } from '../support/service.ts';
import { documentOf, postHistory, scopeOf } from './support/states.ts';

const LOOK = `query ($scope: StateScopeInput) {
  stateArchive(name: "prod/network", scope: $scope) { name workspaceId environmentId manifest { versionCount } }
}`;
const RAW = '{ stateArchive(name: "prod/network") { version(serial: "1") { rawState } } }';
const EXPORT = `mutation ($scope: StateScopeInput) {
  exportStateArchive(input: { name: "prod/network", scope: $scope }) {
    operation { id status actor archive { downloadUrl } } userErrors { code message path }
  }
}`;
const IMPORT = `mutation ($file: Upload!, $name: String!, $scope: StateScopeInput) {
  importStateArchive(input: { file: $file, name: $name, scope: $scope, allowSharedLineage: true }) {
    operation { status } userErrors { code }
  }
}`;
const SNAPSHOT = `mutation ($scope: StateScopeInput, $name: String!, $document: String) {
  importStateSnapshot(input: { name: $name, scope: $scope, document: $document }) {
    stateArchive { name } version { serial createdBy } userErrors { code }
  }
}`;

interface Exported {
  readonly exportStateArchive: {
    readonly operation: {
      readonly status: string;
      readonly actor: string;
      readonly archive: { readonly downloadUrl: string } | null;
    } | null;
    readonly userErrors: readonly { readonly code: string }[];
  };
}

/** A service, and environments of two workspaces in it: one workspace has two. Each has a state `prod/network`. */
interface World {
  readonly service: TestService;
  readonly home: TestEnvironment;
  readonly neighbour: TestEnvironment;
  readonly abroad: TestEnvironment;
}

async function createWorld(environment: Readonly<Record<string, string>> = {}): Promise<World> {
  const service = await startTestService(environment);
  const { database } = service;
  const workspace = await createWorkspace(database);
  const home = await createEnvironment(database, workspace);
  const neighbour = await createEnvironment(database, workspace);
  const abroad = await createEnvironment(database);
  for (const each of [home, neighbour, abroad]) {
    await postHistory(database, each, 'prod/network', [{ outputs: { secret: 'hunter2' } }]);
  }
  return { service, home, neighbour, abroad };
}

/** Asks with one of Kilolock's tokens. */
function askWith<Data = unknown>(
  { service }: Pick<World, 'service'>,
  { secret }: Pick<TestToken, 'secret'>,
  query: string,
  variables: AskOptions['variables'] = {},
) {
  return service.ask<Data>(query, { token: secret, variables });
}

/** What each thing one can ask for comes to, in the environment itself or in the one named: done, or why not. */
async function outcomes(world: Pick<World, 'service'>, token: TestToken, scope: object | null = null) {
  const looked = await askWith<{ stateArchive: object | null }>(world, token, LOOK, { scope });
  const exported = await askWith<Exported>(world, token, EXPORT, { scope });
  const name = `posted/${crypto.randomUUID()}`;
  const document = documentOf(crypto.randomUUID(), {});
  const posted = await askWith<{ importStateSnapshot: { userErrors: { code: string }[] } }>(
    world,
    token,
    SNAPSHOT,
    {
      scope,
      name,
      document,
    },
  );
  return {
    read: looked.denials[0] ?? (looked.data.stateArchive === null ? 'null' : 'done'),
    export:
      exported.denials[0] ??
      exported.data.exportStateArchive.userErrors[0]?.code ??
      exported.data.exportStateArchive.operation?.status,
    import: posted.denials[0] ?? posted.data.importStateSnapshot.userErrors[0]?.code ?? 'done',
  };
}

const NOT_EXPORTED = 'exportStateArchive: FORBIDDEN';
const NOT_IMPORTED = 'importStateSnapshot: FORBIDDEN';

describe('without any policy', () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.service.stop());

  test('an API token reads its own environment, and takes nothing out and brings nothing in', async () => {
    const token = await createApiToken(world.service.database, world.home);
    expect((await askWith(world, token, LOOK)).data).toEqual({
      stateArchive: { name: 'prod/network', ...scopeOf(world.home), manifest: { versionCount: 1 } },
    });
    expect(await outcomes(world, token)).toEqual({
      read: 'done',
      export: NOT_EXPORTED,
      import: NOT_IMPORTED,
    });
    const raw = await askWith(world, token, RAW);
    expect(raw.denials).toEqual(['stateArchive.version.rawState: FORBIDDEN']);
    expect(raw.text).not.toContain('hunter2');
  });

  test('a token is told who it is, what it permits and where it works, and nobody else is', async () => {
    const query =
      '{ stateArchiveCaller { subject actor scopes workspaceId environmentId statePatterns expiresAt } }';
    const token = await createApiToken(world.service.database, world.home);
    const { data } = await askWith(world, token, query);
    expect(data).toEqual({
      stateArchiveCaller: {
        subject: expect.stringMatching(/^kilolock:api-token:/),
        actor: expect.any(String),
        scopes: ['state.read'],
        ...scopeOf(world.home),
        statePatterns: null,
        expiresAt: null,
      },
    });
    const claims = { scopes: ['state.export', 'elsewhere'], states: ['prod/*'] };
    const jwt = await world.service.ask(query, { token: await world.service.token(claims) });
    expect(jwt.data).toMatchObject({
      stateArchiveCaller: {
        subject: 'alice@test',
        scopes: ['state.export'],
        statePatterns: ['prod/*'],
        expiresAt: expect.stringMatching(/^20\d\d-.*\.000000Z$/),
      },
    });
    expect((await world.service.ask(query, { token: null })).denials).toEqual([
      'stateArchiveCaller: UNAUTHENTICATED',
    ]);
  });

  test('one that may only bring in to another environment is told nothing of what is there', async () => {
    const token = await createApiToken(world.service.database, world.home);
    const { tenantSlug, environmentSlug } = world.neighbour;
    const { database } = world.service;
    await grantRole(database, token, ['state.import'], ['environment', `${tenantSlug}/${environmentSlug}`]);
    const { lineage } = await postHistory(database, world.neighbour, 'prod/kept', [
      { resources: { a: '1' } },
    ]);
    const answer = await askWith(
      world,
      token,
      `mutation ($scope: StateScopeInput, $document: String) {
        importStateSnapshot(input: { name: "prod/kept", scope: $scope, document: $document }) {
          stateArchive { name } version { serial changes { added } resourceCount tags { name } } userErrors { code }
        }
      }`,
      { scope: scopeOf(world.neighbour), document: documentOf(lineage, { resources: { b: '2' } }) },
    );
    expect(answer.errors).toEqual([]);
    expect(answer.data).toEqual({
      importStateSnapshot: { stateArchive: null, version: null, userErrors: [] },
    });
  });

  test('it finds nothing in another environment, of its workspace or of another, as in one that does not exist', async () => {
    const token = await createApiToken(world.service.database, world.home);
    const absent = scopeOf({ ...world.home, environment: 'env_absent' });
    const answer = async (scope: object) =>
      withoutRequestId((await askWith(world, token, LOOK, { scope })).text);
    const nothing = await answer(absent);
    expect(JSON.parse(nothing)).toEqual({ data: { stateArchive: null } });
    for (const environment of [world.neighbour, world.abroad]) {
      expect(await answer(scopeOf(environment))).toBe(nothing);
    }
  });

  const GRANTS: readonly (readonly [
    name: string,
    reference: (world: World) => readonly [kind: 'global' | 'tenant' | 'environment', reference: string],
    reaches: readonly ('home' | 'neighbour' | 'abroad')[],
  ])[] = [
    ['globally', () => ['global', ''], ['home', 'neighbour', 'abroad']],
    ['for a tenant', ({ home }) => ['tenant', home.tenantSlug], ['home', 'neighbour']],
    ['for another tenant', ({ abroad }) => ['tenant', abroad.tenantSlug], ['abroad']],
    [
      'for an environment',
      ({ neighbour }) => ['environment', `${neighbour.tenantSlug}/${neighbour.environmentSlug}`],
      ['neighbour'],
    ],
  ];

  test.each(GRANTS)(
    'a role granted %s lets it take out and bring in there and nowhere else',
    async (_name, reference, reaches) => {
      const { database } = world.service;
      const token = await createApiToken(database, world.home);
      await grantRole(database, token, ['state.read', 'state.export', 'state.import'], reference(world));
      for (const name of ['home', 'neighbour', 'abroad'] as const) {
        const isOwn = name === 'home';
        const found = await outcomes(world, token, scopeOf(world[name]));
        expect([name, found]).toEqual([
          name,
          reaches.includes(name)
            ? { read: 'done', export: 'SUCCEEDED', import: 'done' }
            : { read: isOwn ? 'done' : 'null', export: 'STATE_NOT_FOUND', import: NOT_IMPORTED },
        ]);
      }
    },
  );

  test('a role that grants the export alone grants neither import nor raw states nor reading elsewhere', async () => {
    const { database } = world.service;
    const token = await createApiToken(database, world.home);
    const { tenantSlug, environmentSlug } = world.abroad;
    await grantRole(database, token, ['state.export'], ['environment', `${tenantSlug}/${environmentSlug}`]);
    expect(await outcomes(world, token, scopeOf(world.abroad))).toEqual({
      read: 'null',
      export: 'SUCCEEDED',
      import: NOT_IMPORTED,
    });
    expect(await outcomes(world, token)).toEqual({
      read: 'done',
      export: 'STATE_NOT_FOUND',
      import: NOT_IMPORTED,
    });
    expect((await askWith(world, token, RAW)).denials).toEqual(['stateArchive.version.rawState: FORBIDDEN']);
    const list = await askWith(
      world,
      token,
      'query ($scope: StateScopeInput) { stateArchives(scope: $scope) { nodes { name } } }',
      {
        scope: scopeOf(world.abroad),
      },
    );
    expect(list.denials).toEqual(['stateArchives: FORBIDDEN']);
  });

  test('a link to an archive is given out only where the export was granted', async () => {
    const { database } = world.service;
    const exporter = await createApiToken(database, world.home);
    const { tenantSlug, environmentSlug } = world.home;
    await grantRole(
      database,
      exporter,
      ['state.export'],
      ['environment', `${tenantSlug}/${environmentSlug}`],
    );
    const exported = await askWith<{ exportStateArchive: { operation: { id: string } } }>(
      world,
      exporter,
      EXPORT,
    );
    const { id } = exported.data.exportStateArchive.operation;
    const operation = `query ($id: ID!, $scope: StateScopeInput) {
      stateArchiveOperation(id: $id, scope: $scope) { id archive { downloadUrl } }
    }`;
    // It may export, but somewhere else: the directives let it pass, the row does not.
    const reader = await createApiToken(database, world.home);
    await grantRole(database, reader, ['state.export'], ['tenant', world.abroad.tenantSlug]);
    const read = await askWith(world, reader, operation, { id });
    expect([read.data, read.denials]).toEqual([
      { stateArchiveOperation: { id, archive: { downloadUrl: null } } },
      ['stateArchiveOperation.archive.downloadUrl: FORBIDDEN'],
    ]);
    const stranger = await createApiToken(database, world.abroad);
    for (const scope of [null, scopeOf(world.home)]) {
      expect((await askWith(world, stranger, operation, { id, scope })).data).toEqual({
        stateArchiveOperation: null,
      });
    }
  });

  test('a grant that was revoked grants nothing at the next request', async () => {
    const { database } = world.service;
    const token = await createApiToken(database, world.home);
    await grantRole(database, token, ['state.export'], ['global', '']);
    expect((await outcomes(world, token)).export).toBe('SUCCEEDED');
    await database.pool.query('update rbac_principal_roles set revoked_at = now() where subject_id = $1', [
      token.id,
    ]);
    expect((await outcomes(world, token)).export).toBe(NOT_EXPORTED);
  });

  test('a personal access token is not accepted', async () => {
    const account = await createAccount(world.service.database);
    await addMember(world.service.database, account, world.home, 'owner');
    await grantEnvironment(world.service.database, account, world.home);
    const { status, denials } = await askWith(world, account, LOOK);
    expect([status, denials]).toEqual([401, [': UNAUTHENTICATED']]);
  });

  test.each([
    ['revoked', 'update api_tokens set revoked_at = now() where id = $1'],
    ['suspended', `update api_tokens set lifecycle_status = 'suspended' where id = $1`],
    [
      'of a suspended environment',
      `update environments set lifecycle_status = 'suspended' where id = (select environment_id from api_tokens where id = $1)`,
    ],
    [
      'of a suspended tenant',
      `update tenants set lifecycle_status = 'suspended' where id = (select tenant_id from api_tokens where id = $1)`,
    ],
  ])('a token that is %s is refused at once, in the same words', async (_name, statement) => {
    const { database } = world.service;
    const environment = await createEnvironment(database);
    const token = await createApiToken(database, environment);
    await grantRole(database, token, ['state.export', 'state.import'], ['global', '']);
    expect((await askWith(world, token, LOOK)).status).toBe(200);
    await database.pool.query(statement, [token.id]);
    const unknown = await askWith(world, { secret: `kl_${'A'.repeat(43)}` }, LOOK);
    expect([unknown.status, unknown.denials]).toEqual([401, [': UNAUTHENTICATED']]);
    for (const query of [LOOK, EXPORT, '{ __typename }']) {
      const { status, text } = await askWith(world, token, query);
      expect([status, withoutRequestId(text)]).toEqual([401, withoutRequestId(unknown.text)]);
    }
    const uploaded = await world.service.ask(IMPORT, {
      token: token.secret,
      variables: { name: 'posted/late' },
      file: { bytes: new TextEncoder().encode('no archive') },
    });
    expect([uploaded.status, withoutRequestId(uploaded.text)]).toEqual([401, withoutRequestId(unknown.text)]);
  });

  test('Basic credentials are a token with its workspace for a user, by id or slug, or with no user', async () => {
    const { database } = world.service;
    const token = await createApiToken(database, world.home);
    const statusOf = async (user: string, secret: string) => {
      const basic = Buffer.from(`${user}:${secret}`).toString('base64');
      const { status, data } = await world.service.ask<{ stateArchive: object }>(LOOK, {
        token: null,
        headers: { authorization: `Basic ${basic}` },
      });
      return status === 200 ? data : status;
    };
    const found = { stateArchive: expect.objectContaining(scopeOf(world.home)) };
    for (const user of [world.home.workspace, world.home.tenantSlug, '']) {
      expect([user, await statusOf(user, token.secret)]).toEqual([user, found]);
    }
    for (const user of [world.abroad.workspace, world.home.environment, 'admin']) {
      expect([user, await statusOf(user, token.secret)]).toEqual([user, 401]);
    }
    expect(await statusOf(world.home.workspace, `${token.secret}x`)).toBe(401);
  });

  test('the use of a token is noted, and that of a refused one is not', async () => {
    const { database } = world.service;
    const token = await createApiToken(database, world.home);
    const lastUse = async () => {
      const { rows } = await database.pool.query<{ ago: number | null }>(
        'select extract(epoch from now() - last_used_at)::float8 as ago from api_tokens where id = $1',
        [token.id],
      );
      return rows[0]?.ago ?? null;
    };
    expect(await lastUse()).toBeNull();
    await askWith(world, token, LOOK);
    expect(await lastUse()).toBeLessThan(60);
    await database.pool.query(
      `update api_tokens set last_used_at = now() - interval '1 hour', lifecycle_status = 'suspended' where id = $1`,
      [token.id],
    );
    await askWith(world, token, LOOK);
    expect(await lastUse()).toBeGreaterThan(3000);
    await database.pool.query(`update api_tokens set lifecycle_status = 'active' where id = $1`, [token.id]);
    await askWith(world, token, LOOK);
    expect(await lastUse()).toBeLessThan(60);
  });

  test('no token ever reaches the log, an answer or an event', async () => {
    const { database, log } = world.service;
    const token = await createApiToken(database, world.home);
    await grantRole(database, token, ['state.export', 'state.import'], ['global', '']);
    const texts: string[] = [];
    for (const query of [LOOK, EXPORT, RAW, '{ nonsense', '{ nonsense }']) {
      texts.push((await askWith(world, token, query)).text);
    }
    await outcomes(world, token);
    await database.pool.query('update api_tokens set revoked_at = now() where id = $1', [token.id]);
    texts.push((await askWith(world, token, LOOK)).text);
    for (const table of ['events', 'state_archive.operation']) {
      const { rows } = await database.pool.query<{ row: string }>(`select row::text from ${table} as row`);
      texts.push(...rows.map(({ row }) => row));
    }
    // The request after it has been logged, and so has every one before.
    await askWith(world, token, LOOK);
    texts.push(...log);
    expect(log.join('')).toContain('credential refused');
    expect(texts.filter((text) => text.includes(token.secret))).toEqual([]);
  });
});

describe('with policies', () => {
  test('for tokens, an API token may export and import in its own environment, and only there', async () => {
    const world = await createWorld({ ALLOW_TOKEN_EXPORT: 'true', ALLOW_TOKEN_IMPORT: 'true' });
    try {
      const { database } = world.service;
      const token = await createApiToken(database, world.home, { name: 'nightly' });
      expect(await outcomes(world, token)).toEqual({ read: 'done', export: 'SUCCEEDED', import: 'done' });
      for (const other of [world.neighbour, world.abroad]) {
        expect(await outcomes(world, token, scopeOf(other))).toEqual({
          read: 'null',
          export: 'STATE_NOT_FOUND',
          import: NOT_IMPORTED,
        });
      }
      const exported = await askWith<Exported>(world, token, EXPORT);
      const { operation } = exported.data.exportStateArchive;
      expect(operation?.actor).toBe(`${world.home.tenantSlug}/${world.home.environmentSlug}/nightly`);
      const bytes = new Uint8Array(await (await fetch(operation?.archive?.downloadUrl ?? '')).arrayBuffer());
      const restored = await world.service.ask(IMPORT, {
        token: token.secret,
        variables: { name: 'restored/network' },
        file: { bytes },
      });
      expect(restored.data).toEqual({
        importStateArchive: { operation: { status: 'SUCCEEDED' }, userErrors: [] },
      });
      const { rows } = await database.pool.query<{ principal: string; actor: string }>(
        `select distinct payload ->> 'principal' as principal, actor from events
         where kind in ('state_export', 'state_import')`,
      );
      expect(rows).toEqual([{ principal: `kilolock:api-token:${token.id}`, actor: operation?.actor }]);
      const raw = await askWith(world, token, RAW);
      expect(raw.denials).toEqual(['stateArchive.version.rawState: FORBIDDEN']);
    } finally {
      await world.service.stop();
    }
  });

  test('for owners, a personal access token exports and imports in each environment granted to its account', async () => {
    const world = await createWorld({ ALLOW_OWNER_EXPORT: 'true', ALLOW_OWNER_IMPORT: 'true' });
    try {
      const { database } = world.service;
      const owner = await createAccount(database);
      await addMember(database, owner, world.home, 'owner');
      await grantEnvironment(database, owner, world.home);
      expect(await outcomes(world, owner)).toEqual({ read: 'done', export: 'SUCCEEDED', import: 'done' });
      expect((await askWith<Exported>(world, owner, EXPORT)).data.exportStateArchive.operation?.actor).toBe(
        owner.email,
      );

      // With a second environment there is none of its own: it has to say which.
      await grantEnvironment(database, owner, world.neighbour);
      expect(await outcomes(world, owner)).toEqual({
        read: 'null',
        export: 'STATE_NOT_FOUND',
        import: NOT_IMPORTED,
      });
      for (const granted of [world.home, world.neighbour]) {
        expect(await outcomes(world, owner, scopeOf(granted))).toEqual({
          read: 'done',
          export: 'SUCCEEDED',
          import: 'done',
        });
      }
      expect((await outcomes(world, owner, scopeOf(world.abroad))).export).toBe('STATE_NOT_FOUND');

      const member = await createAccount(database);
      await addMember(database, member, world.home, 'member');
      await grantEnvironment(database, member, world.home);
      expect((await askWith(world, member, LOOK)).status).toBe(401);

      await database.pool.query('update tenant_memberships set revoked_at = now() where account_id = $1', [
        owner.accountId,
      ]);
      expect((await askWith(world, owner, LOOK, { scope: scopeOf(world.home) })).status).toBe(401);
    } finally {
      await world.service.stop();
    }
  });

  test('for owners’ exports alone, nothing is brought in', async () => {
    const world = await createWorld({ ALLOW_OWNER_EXPORT: 'true' });
    try {
      const owner = await createAccount(world.service.database);
      await addMember(world.service.database, owner, world.home, 'tenant_admin');
      await grantEnvironment(world.service.database, owner, world.home);
      expect(await outcomes(world, owner)).toEqual({
        read: 'done',
        export: 'SUCCEEDED',
        import: NOT_IMPORTED,
      });
      const token = await createApiToken(world.service.database, world.home);
      expect(await outcomes(world, token)).toEqual({
        read: 'done',
        export: NOT_EXPORTED,
        import: NOT_IMPORTED,
      });
    } finally {
      await world.service.stop();
    }
  });
});
