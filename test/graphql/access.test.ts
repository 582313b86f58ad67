import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../support/service.ts';
import { createEnvironment, documentOf, postHistory, scopeOf } from './support/states.ts';

const HOME = { workspace: 'ws_home', environment: 'env_home' };
const NEIGHBOUR = { workspace: 'ws_home', environment: 'env_home2' };
const ABROAD = { workspace: 'ws_abroad', environment: 'env_abroad' };
const ABSENT = { workspace: 'ws_absent', environment: 'env_home' };

let service: TestService;
let stateId: string;
let operationId: string;

beforeAll(async () => {
  service = await startTestService();
  for (const { workspace, environment } of [HOME, NEIGHBOUR, ABROAD]) {
    await createEnvironment(service.database, workspace, environment);
  }
  ({ stateId } = await postHistory(service.database, HOME, 'prod/network', [
    { outputs: { secret: 'hunter2' } },
  ]));
  const { data } = await service.ask<{ exportStateArchive: { operation: { id: string } } }>(
    'mutation { exportStateArchive(input: { name: "prod/network" }) { operation { id } } }',
    { token: await service.token(HOME) },
  );
  operationId = data.exportStateArchive.operation.id;
});

afterAll(() => service.stop());

/** Every way in: the root fields, and references; each by its path in the answer. */
const WAYS_IN: readonly (readonly [path: string, query: () => string])[] = [
  ['stateArchive', () => '{ stateArchive(name: "prod/network") { id } }'],
  ['stateArchives', () => '{ stateArchives { nodes { id } } }'],
  ['stateArchiveOperation', () => `{ stateArchiveOperation(id: "${operationId}") { id } }`],
  [
    'exportStateArchive',
    () => 'mutation { exportStateArchive(input: { name: "prod/network" }) { userErrors { code } } }',
  ],
  [
    'importStateSnapshot',
    () =>
      'mutation { importStateSnapshot(input: { name: "prod/other", document: "{}" }) { userErrors { code } } }',
  ],
  [
    'cancelStateArchiveOperation',
    () => `mutation { cancelStateArchiveOperation(input: { id: "${operationId}" }) { userErrors { code } } }`,
  ],
  [
    'setStateArchiveLegalHold',
    () =>
      `mutation { setStateArchiveLegalHold(input: { id: "${operationId}", legalHold: false }) { __typename } }`,
  ],
  ['_entities.0', () => entity('StateArchive', `id: "${stateId}"`)],
  [
    '_entities.0',
    () => entity('StateArchive', `workspaceId: "ws_home", environmentId: "env_home", name: "prod/network"`),
  ],
  ['_entities.0', () => entity('StateArchiveOperation', `id: "${operationId}"`)],
  ['_entities.0.archive', () => entity('State', `id: "${stateId}"`, 'archive { __typename }')],
];

function entity(type: string, key: string, fields = '__typename'): string {
  return `{ _entities(representations: [{ __typename: "${type}", ${key} }]) { ... on ${type} { ${fields} } } }`;
}

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  'state.read': [
    'stateArchive',
    'stateArchives',
    'stateArchiveOperation',
    '_entities.0',
    '_entities.0.archive',
  ],
  'state.export': ['stateArchiveOperation', 'exportStateArchive', 'cancelStateArchiveOperation'],
  'state.import': ['stateArchiveOperation', 'importStateSnapshot', 'cancelStateArchiveOperation'],
  'state.retain': ['setStateArchiveLegalHold'],
  'state.raw.read': [],
};

describe('every way in', () => {
  test('is closed to a caller without a token', async () => {
    for (const [path, query] of WAYS_IN) {
      const { denials, text } = await service.ask(query(), { token: null });
      expect(denials).toEqual([`${path}: UNAUTHENTICATED`]);
      expect(text).not.toContain(stateId);
    }
  });

  test('is closed to a token that is forged, and the query is not looked at', async () => {
    const [head, claims, signature] = (await service.token(HOME)).split('.');
    const forged = [head, claims, signature?.split('').reverse().join('')].join('.');
    for (const [, query] of WAYS_IN) {
      const { status, denials, data } = await service.ask(query(), { token: forged });
      expect([status, denials, data]).toEqual([401, [': UNAUTHENTICATED'], undefined]);
    }
  });

  test.each(Object.entries(ALLOWED))('is open to %s for what it is for alone', async (scope, allowed) => {
    const token = await service.token({ ...HOME, scopes: [scope] });
    for (const [path, query] of WAYS_IN) {
      const { denials } = await service.ask(query(), { token });
      const isOperation = /StateArchiveOperation"|stateArchiveOperation/.test(query());
      const isAllowed =
        allowed.includes(path) || (isOperation && !['state.raw.read', 'state.retain'].includes(scope));
      expect([query(), denials]).toEqual([query(), isAllowed ? [] : [`${path}: FORBIDDEN`]]);
    }
  });

  test.each([
    ['another environment of the workspace', NEIGHBOUR],
    ['another workspace', ABROAD],
    ['a workspace and an environment that do not belong together', { ...ABROAD, environment: 'env_home' }],
    ['a workspace that does not exist', ABSENT],
    ['no workspace, as a self-hosted one has', {}],
  ])('leads a token of %s to nothing', async (_name, claims) => {
    const token = await service.token(claims);
    const { data, errors } = await service.ask(
      `{
        stateArchive(name: "prod/network") { id }
        full: stateArchive(name: "ws_home/env_home/prod/network") { workspaceId }
        up: stateArchive(name: "../env_home/prod/network") { id }
        stateArchives { nodes { workspaceId } }
        stateArchiveOperation(id: "${operationId}") { id }
        _entities(representations: [
          { __typename: "StateArchive", id: "${stateId}" }
          { __typename: "StateArchive", workspaceId: "ws_home", environmentId: "env_home", name: "prod/network" }
          { __typename: "StateArchiveOperation", id: "${operationId}" }
          { __typename: "State", id: "${stateId}" }
        ]) { ... on StateArchive { id } ... on StateArchiveOperation { id } ... on State { archive { id } } }
      }`,
      { token },
    );
    expect(errors).toEqual([]);
    expect(data).toEqual({
      stateArchive: null,
      full: null,
      up: null,
      stateArchives: { nodes: [] },
      stateArchiveOperation: null,
      _entities: [null, null, null, { archive: null }],
    });
  });
});

describe('a scope argument', () => {
  test.each([
    ['another environment of the workspace', NEIGHBOUR],
    ['another workspace', ABROAD],
    ['a workspace that does not exist', ABSENT],
  ])('that names %s is answered as if there were nothing there', async (_name, named) => {
    await postHistory(service.database, ABROAD, `scoped/${_name}`, [{}]);
    const { data, denials, text } = await service.ask(
      `query ($scope: StateScopeInput) {
        stateArchive(name: "prod/network", scope: $scope) { id }
        stateArchives(scope: $scope) { nodes { id } }
      }`,
      { variables: { scope: scopeOf(named) }, token: await service.token(HOME) },
    );
    expect(denials).toEqual([]);
    expect(data).toEqual({ stateArchive: null, stateArchives: { nodes: [] } });
    expect(text).not.toContain(named.workspace === HOME.workspace ? 'env_home2' : named.workspace);
  });

  test('gives the same refusal of an export and of an import, whether its environment exists or not', async () => {
    const token = await service.token(HOME);
    const refusalOf = async (scope: object) => {
      const exporting = await service.ask(
        `mutation ($scope: StateScopeInput) {
          exportStateArchive(input: { name: "prod/network", scope: $scope }) {
            operation { id } userErrors { code message path }
          }
        }`,
        { variables: { scope }, token },
      );
      const importing = await service.ask(
        `mutation ($scope: StateScopeInput, $document: String) {
          importStateSnapshot(input: { name: "prod/network", scope: $scope, document: $document }) {
            userErrors { code }
          }
        }`,
        { variables: { scope, document: documentOf(crypto.randomUUID(), {}) }, token },
      );
      return { exporting: [exporting.data, exporting.errors], importing: [importing.data, importing.errors] };
    };
    const absent = await refusalOf(scopeOf(ABSENT));
    expect(absent.exporting).toEqual([
      {
        exportStateArchive: {
          operation: null,
          userErrors: [{ code: 'STATE_NOT_FOUND', message: expect.any(String), path: ['input', 'name'] }],
        },
      },
      [],
    ]);
    expect(absent.importing).toMatchObject([
      { importStateSnapshot: null },
      [{ extensions: { code: 'FORBIDDEN' } }],
    ]);
    expect(await refusalOf(scopeOf(NEIGHBOUR))).toEqual(absent);
    expect(await refusalOf(scopeOf(ABROAD))).toEqual(absent);
  });
});

describe('a state outside the patterns of a token', () => {
  test('is nowhere to be found, and nothing can be exported from or imported to its name', async () => {
    const token = await service.token({ ...HOME, states: ['prod/net', 'dev/*'] });
    const { data, denials } = await service.ask(
      `{
        stateArchive(name: "prod/network") { id }
        stateArchives { nodes { id } }
        stateArchiveOperation(id: "${operationId}") { id }
      }`,
      { token },
    );
    expect([data, denials]).toEqual([
      { stateArchive: null, stateArchives: { nodes: [] }, stateArchiveOperation: null },
      [],
    ]);
    const refused = await service.ask(
      `mutation { exportStateArchive(input: { name: "prod/network" }) { operation { id } userErrors { code } } }`,
      { token },
    );
    expect(refused.data).toEqual({
      exportStateArchive: { operation: null, userErrors: [{ code: 'STATE_NOT_FOUND' }] },
    });
    const imports = await Promise.all(
      ['prod/network', 'prod/absent'].map((name) =>
        service.ask(
          `mutation ($name: String!, $document: String) {
            importStateSnapshot(input: { name: $name, document: $document }) { userErrors { code } }
          }`,
          { variables: { name, document: documentOf(crypto.randomUUID(), {}) }, token },
        ),
      ),
    );
    // The same answer for a name that is taken and one that is free.
    expect(imports[0]?.denials).toEqual(['importStateSnapshot: FORBIDDEN']);
    expect(imports[1]?.errors).toEqual(imports[0]?.errors);
  });
});

describe('a suspended or archived state', () => {
  test.each(['suspended', 'archived'])(
    'that is %s is answered like one that does not exist',
    async (status) => {
      const { stateId: id } = await postHistory(service.database, HOME, `put/${status}`, [{}]);
      await service.database.pool.query('update states set lifecycle_status = $2 where id = $1', [
        id,
        status,
      ]);
      const { data, errors } = await service.ask(
        `mutation ($name: String!) { exportStateArchive(input: { name: $name }) { userErrors { code } } }`,
        { variables: { name: `put/${status}` }, token: await service.token(HOME) },
      );
      expect([data, errors]).toEqual([
        { exportStateArchive: { userErrors: [{ code: 'STATE_NOT_FOUND' }] } },
        [],
      ]);
      const seen = await service.ask(
        `query ($name: String!) { stateArchive(name: $name) { id } stateArchives(filter: { namePrefix: "put/" }) { nodes { id } } }`,
        { variables: { name: `put/${status}` }, token: await service.token(HOME) },
      );
      expect(seen.data).toEqual({ stateArchive: null, stateArchives: { nodes: [] } });
    },
  );
});

test('neither states, nor tokens, nor variables ever reach the log', async () => {
  const token = await service.token(HOME);
  const peek = () =>
    service.ask(
      `query Peek($name: String) {
        stateArchive(name: "prod/network") { version(serial: "1") { rawState } }
        stateArchives(filter: { namePrefix: $name }) { nodes { id } }
      }`,
      { variables: { name: 'hunter3' }, token },
    );
  expect((await peek()).text).toContain('hunter2');
  // A request is logged when its response is closed, which the next one comes after.
  await peek();
  const log = service.log.join('');
  const secrets = ['Peek', 'hunter2', 'hunter3', token.slice(0, 40)].filter((text) => log.includes(text));
  expect(secrets).toEqual(['Peek']);
});
