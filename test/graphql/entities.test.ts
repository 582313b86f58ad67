import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../support/service.ts';
import { createEnvironment, postHistory, scopeOf } from './support/states.ts';

/** What a gateway asks of this subgraph: objects it knows by key alone. */
const ENTITIES = `query ($representations: [_Any!]!) {
  _entities(representations: $representations) {
    ... on State { id archive { id name status { versionCount } } }
    ... on StateArchive { name manifest { currentSerial } }
    ... on StateArchiveOperation { kind status }
  }
}`;

const HOME = { workspace: 'ws_000000000000', environment: 'env_000000000000' };
const ABROAD = { workspace: 'ws_abroad', environment: 'env_abroad' };
const NOWHERE = '00000000-0000-4000-8000-000000000000';

let service: TestService;
let own: string;
let foreign: string;
let operation: string;
let foreignOperation: string;

beforeAll(async () => {
  service = await startTestService();
  await createEnvironment(service.database, ABROAD.workspace, ABROAD.environment);
  own = (await postHistory(service.database, null, 'prod/network', [{}, {}])).stateId;
  foreign = (await postHistory(service.database, ABROAD, 'prod/network', [{}])).stateId;
  operation = await exportAs({});
  foreignOperation = await exportAs(ABROAD);
});

afterAll(() => service.stop());

async function exportAs(claims: Parameters<TestService['token']>[0]): Promise<string> {
  const { data } = await service.ask<{ exportStateArchive: { operation: { id: string } } }>(
    'mutation { exportStateArchive(input: { name: "prod/network" }) { operation { id } } }',
    { token: await service.token(claims) },
  );
  return data.exportStateArchive.operation.id;
}

async function resolve(
  representations: readonly unknown[],
  claims: Parameters<TestService['token']>[0] = {},
) {
  const answer = await service.ask<{ _entities: unknown[] }>(ENTITIES, {
    variables: { representations },
    token: await service.token(claims),
  });
  return { ...answer, entities: answer.data._entities };
}

describe('one batch of references', () => {
  test('is answered position by position: what is there, and null for what is not, or not the caller’s', async () => {
    const { entities, errors } = await resolve([
      { __typename: 'StateArchive', ...scopeOf(HOME), name: 'no/such' },
      { __typename: 'StateArchive', ...scopeOf(HOME), name: 'prod/network' },
      { __typename: 'StateArchiveOperation', id: foreignOperation },
      { __typename: 'StateArchive', id: foreign },
      { __typename: 'State', id: own },
      { __typename: 'StateArchive', id: NOWHERE },
      { __typename: 'StateArchiveOperation', id: operation },
      { __typename: 'StateArchive', ...scopeOf(ABROAD), name: 'prod/network' },
      { __typename: 'StateArchive', id: own },
      { __typename: 'State', id: foreign },
      { __typename: 'StateArchiveOperation', id: NOWHERE },
      { __typename: 'StateArchive', id: own },
    ]);
    expect(errors).toEqual([]);
    const archive = { name: 'prod/network', manifest: { currentSerial: '2' } };
    expect(entities).toEqual([
      null,
      archive,
      null,
      null,
      { id: own, archive: { id: own, name: 'prod/network', status: { versionCount: 2 } } },
      null,
      { kind: 'EXPORT', status: 'SUCCEEDED' },
      null,
      archive,
      { id: foreign, archive: null },
      null,
      archive,
    ]);
  });

  test('belongs to whoever asks: the other environment sees the other half', async () => {
    const { entities, errors } = await resolve(
      [
        { __typename: 'StateArchive', id: own },
        { __typename: 'StateArchive', id: foreign },
        { __typename: 'StateArchive', ...scopeOf(ABROAD), name: 'prod/network' },
        { __typename: 'StateArchive', ...scopeOf(HOME), name: 'prod/network' },
        { __typename: 'StateArchiveOperation', id: operation },
        { __typename: 'StateArchiveOperation', id: foreignOperation },
      ],
      ABROAD,
    );
    expect(errors).toEqual([]);
    const archive = { name: 'prod/network', manifest: { currentSerial: '1' } };
    expect(entities).toEqual([null, archive, archive, null, null, { kind: 'EXPORT', status: 'SUCCEEDED' }]);
  });

  test('denies the types a caller has no scope for, and answers the others', async () => {
    const { entities, denials } = await resolve(
      [
        { __typename: 'StateArchive', id: own },
        { __typename: 'StateArchiveOperation', id: operation },
        { __typename: 'State', id: own },
        { __typename: 'StateArchive', id: NOWHERE },
      ],
      { scopes: ['state.export'] },
    );
    expect(entities).toEqual([
      null,
      { kind: 'EXPORT', status: 'SUCCEEDED' },
      { id: own, archive: null },
      null,
    ]);
    expect([...denials].sort()).toEqual([
      '_entities.0: FORBIDDEN',
      '_entities.2.archive: FORBIDDEN',
      '_entities.3: FORBIDDEN',
    ]);
  });

  test('holds null for a state outside the patterns of the token, as for one that does not exist', async () => {
    const { entities, errors } = await resolve(
      [
        { __typename: 'StateArchive', id: own },
        { __typename: 'StateArchive', ...scopeOf(HOME), name: 'prod/network' },
        { __typename: 'StateArchiveOperation', id: operation },
      ],
      { states: ['dev/*'] },
    );
    expect(errors).toEqual([]);
    expect(entities).toEqual([null, null, null]);
  });

  test('is found by its id in whichever case', async () => {
    const { entities } = await resolve([
      { __typename: 'StateArchive', id: own.toUpperCase() },
      { __typename: 'StateArchive', id: own },
    ]);
    const network = expect.objectContaining({ name: 'prod/network' });
    expect(entities).toEqual([network, network]);
    const query = 'query ($id: ID!) { stateArchiveOperation(id: $id) { id } }';
    const { data } = await service.ask(query, { variables: { id: operation.toUpperCase() } });
    expect(data).toEqual({ stateArchiveOperation: { id: operation } });
  });

  test('is not spoiled by a reference that names nothing a database could hold', async () => {
    const { entities, errors } = await resolve([
      { __typename: 'StateArchive', id: 'not-a-uuid' },
      { __typename: 'StateArchive', id: 7 },
      { __typename: 'StateArchive', ...scopeOf(HOME), name: 'nul\0' },
      { __typename: 'StateArchive', ...scopeOf(HOME), name: ['prod/network'] },
      { __typename: 'StateArchive', ...scopeOf(HOME) },
      { __typename: 'StateArchive', name: 'prod/network' },
      { __typename: 'StateArchive' },
      { __typename: 'StateArchiveOperation', id: "'; drop table states; --" },
      { __typename: 'StateArchiveOperation', id: null },
      { __typename: 'StateArchive', id: own },
    ]);
    expect(errors).toEqual([]);
    expect(entities).toEqual([
      ...Array.from({ length: 9 }, () => null),
      { name: 'prod/network', manifest: { currentSerial: '2' } },
    ]);
  });

  test('costs the same statements for two references as for forty', async () => {
    const ids: string[] = [];
    for (let index = 0; index < 20; index += 1) {
      ids.push((await postHistory(service.database, null, `many/${index}`, [{}])).stateId);
    }
    const references = ids.flatMap((id, index) => [
      { __typename: 'StateArchive', id },
      { __typename: 'StateArchive', ...scopeOf(HOME), name: `many/${index}` },
    ]);
    await resolve(references);
    const few = await service.statementsOf(() => resolve(references.slice(0, 2)));
    const many = await service.statementsOf(() => resolve(references));
    expect(few.length).toBeGreaterThan(0);
    expect(many.length).toBe(few.length);
  });
});
