import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../support/service.ts';
import { postHistory, tagVersion } from './support/states.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});

afterAll(() => service.stop());

/** A state with so many versions, and a tag on each. */
async function seed(label: string, versions: number): Promise<void> {
  const history = Array.from({ length: versions }, (_, index) => ({
    resources: { a: String(index), [`r${index}`]: 'x' },
    outputs: { serial: String(index) },
  }));
  const { stateId } = await postHistory(service.database, null, label, history);
  for (let serial = 1; serial <= versions; serial += 1) {
    await tagVersion(service.database, stateId, BigInt(serial), `tag-${serial}`);
  }
}

/** How many statements a query takes once everything that is made on first sight has been made. */
async function statements(query: string, variables: Record<string, unknown>): Promise<number> {
  const token = await service.token();
  const run = async () => expect((await service.ask(query, { variables, token })).errors).toEqual([]);
  await run();
  return (await service.statementsOf(run)).length;
}

describe('the statements of', () => {
  test('a preview do not grow with versions and tags: one finds the environment, the state and its history', async () => {
    await seed('preview/small', 2);
    await seed('preview/large', 40);
    const query = `query ($name: String!) {
      stateArchive(name: $name) { manifest { historyDigest versionCount tagCount rawBytes eventCount } }
    }`;
    expect(await statements(query, { name: 'preview/small' })).toBe(1);
    expect(await statements(query, { name: 'preview/large' })).toBe(1);
  });

  test('a preview asked for in fragments are one, and of several states no more than those of two', async () => {
    for (const label of ['a', 'b', 'c', 'd']) await seed(`several/${label}`, 2);
    const fragments = `
      fragment Outer on StateArchive { ... { ...Inner } }
      fragment Inner on StateArchive { name manifest { historyDigest } }`;
    const of = (labels: readonly string[]) =>
      `{ ${labels.map((label) => `${label}: stateArchive(name: "several/${label}") { ...Outer }`).join(' ')} } ${fragments}`;
    expect(await statements(of(['a']), {})).toBe(1);
    expect(await statements(of(['a', 'b', 'c', 'd']), {})).toBe(await statements(of(['a', 'b']), {}));
  });

  test('a page of versions do not grow with it, whatever is asked of each', async () => {
    await seed('page/versions', 40);
    const query = `query ($first: Int) { stateArchive(name: "page/versions") { versions(first: $first) {
      totalCount
      nodes { serial sha256 sizeBytes resourceCount changes { added changed removed } outputNames tags { name } }
    } } }`;
    const few = await statements(query, { first: 2 });
    expect(await statements(query, { first: 40 })).toBe(few);
  });

  test('a list of states do not grow with it, whatever is asked of each', async () => {
    for (let index = 0; index < 20; index += 1) await seed(`list/${index}`, 6);
    await service.ask('mutation { exportStateArchive(input: { name: "list/1" }) { operation { id } } }');
    const query = `query ($first: Int) { stateArchives(first: $first, filter: { namePrefix: "list/" }) { nodes {
      manifest { historyDigest rawBytes }
      status { exportable lockedBy versionCount lastExport { id status archive { sha256 } } lastImport { id } }
      tags { name serial }
      version(serial: "3") { serial }
      versions(first: 5) {
        totalCount
        nodes { resourceCount changes { added changed removed } outputNames sha256 tags { name } }
      }
    } } }`;
    const few = await statements(query, { first: 2 });
    expect(few).toBeLessThanOrEqual(14);
    expect(await statements(query, { first: 20 })).toBe(few);
  });

  test.each([
    ['no token', null],
    ['a token without the scope', 'state.raw.read'],
  ])('a caller with %s are none', async (_name, scope) => {
    const token = scope === null ? null : await service.token({ scopes: [scope] });
    const queries = [
      '{ stateArchive(name: "a") { id } stateArchives { nodes { id } } stateArchiveOperation(id: "a") { id } }',
      `{ _entities(representations: [
        { __typename: "StateArchive", id: "00000000-0000-4000-8000-000000000000" }
        { __typename: "State", id: "00000000-0000-4000-8000-000000000000" }
      ]) { __typename } }`,
      'mutation { exportStateArchive(input: { name: "a" }) { userErrors { code } } }',
      'mutation { importStateSnapshot(input: { name: "a", document: "{}" }) { userErrors { code } } }',
    ];
    for (const query of queries) {
      const sent = await service.statementsOf(async () => {
        expect((await service.ask(query, { token })).denials).not.toEqual([]);
      });
      expect(sent).toEqual([]);
    }
  });
});
