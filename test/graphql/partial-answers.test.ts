import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { GraphQLNonNull } from 'graphql';
import { createSchema } from '../../src/graphql/schema.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { postHistory } from './support/states.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  await postHistory(service.database, null, 'prod/network', [{}, {}]);
});
afterAll(() => service.stop());

describe('a field that fails takes nothing with it', () => {
  test('at the root, where one gateway request asks several subgraphs', async () => {
    const schema = createSchema({ gatewayProofRequired: false });
    const nonNull = [schema.getQueryType(), schema.getMutationType()]
      .flatMap((type) => Object.values(type?.getFields() ?? {}))
      .filter(({ type }) => type instanceof GraphQLNonNull)
      .map(({ name }) => name);
    // The federation specification's own fields.
    expect(nonNull).toEqual(['_entities', '_service']);

    const { data, denials } = await service.ask(
      '{ stateArchives(first: 0) { nodes { id } } stateArchive(name: "prod/network") { name } }',
    );
    expect(data).toEqual({ stateArchives: null, stateArchive: { name: 'prod/network' } });
    expect(denials).toEqual(['stateArchives: BAD_USER_INPUT']);
  });

  test('in a state', async () => {
    const { data, denials } = await service.ask(
      `{ stateArchive(name: "prod/network") {
        name versions(first: 0) { totalCount } operations(after: "x") { nodes { id } } status { versionCount }
      } }`,
    );
    expect(data).toEqual({
      stateArchive: { name: 'prod/network', versions: null, operations: null, status: { versionCount: 2 } },
    });
    expect([...denials].sort()).toEqual([
      'stateArchive.operations: BAD_USER_INPUT',
      'stateArchive.versions: BAD_USER_INPUT',
    ]);
  });

  test('in a list, where a row holds a time that no RFC 3339 can say', async () => {
    await postHistory(service.database, null, 'prod/timeless', [{}]);
    await service.database.pool.query(
      `update states set created_at = 'infinity' where name = 'prod/timeless'`,
    );
    const { data, denials } = await service.ask(
      '{ stateArchives(filter: { namePrefix: "prod/" }) { nodes { name createdAt updatedAt } } }',
    );
    expect(data).toEqual({
      stateArchives: {
        nodes: [
          { name: 'prod/network', createdAt: expect.any(String), updatedAt: expect.any(String) },
          { name: 'prod/timeless', createdAt: null, updatedAt: expect.any(String) },
        ],
      },
    });
    expect(denials).toEqual(['stateArchives.nodes.1.createdAt: HISTORY_INCONSISTENT']);
  });
});
