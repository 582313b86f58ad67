import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { insertHistory } from '../support/fixtures.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { postHistory, tagVersion } from './support/states.ts';

const MICROSECOND_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const SHA256 = /^[0-9a-f]{64}$/;

let service: TestService;
let network: { stateId: string; lineage: string };

beforeAll(async () => {
  service = await startTestService();
  network = await postHistory(service.database, null, 'prod/network', [
    { resources: { vpc: '10.0.0.0/8', gateway: 'on' }, outputs: { vpc_id: 'vpc-1', Admin: 'hunter2' } },
    { resources: { vpc: '10.0.0.0/8', gateway: 'off', subnet: '10.1.0.0/16' } },
    { resources: { gateway: 'off' } },
  ]);
  await tagVersion(service.database, network.stateId, 1n, 'before-subnet', 'as it was');
  await tagVersion(service.database, network.stateId, 1n, 'Baseline', '');
  await tagVersion(service.database, network.stateId, 3n, 'release');
});

afterAll(() => service.stop());

interface Page<Node> {
  readonly nodes: readonly Node[];
  readonly edges: readonly { readonly cursor: string; readonly node: Node }[];
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
}

const PAGE_INFO = 'pageInfo { hasNextPage hasPreviousPage startCursor endCursor }';

function cursorOf(text: string): string {
  return Buffer.from(text).toString('base64url');
}

/** The field `selection` of the state `prod/network`. */
async function ofNetwork(selection: string, variables: Record<string, unknown> = {}, definitions = '') {
  const answer = await service.ask<{ stateArchive: Record<string, unknown> | null }>(
    `query ${definitions} { stateArchive(name: "prod/network") { ${selection} } }`,
    { variables },
  );
  return { ...answer, state: answer.data?.stateArchive ?? {} };
}

describe('the archive view of a state', () => {
  test('says which state it is', async () => {
    const { state, errors } = await ofNetwork(
      'id name workspaceId environmentId lineage lifecycleStatus createdAt updatedAt',
    );
    expect(errors).toEqual([]);
    expect(state).toEqual({
      id: network.stateId,
      name: 'prod/network',
      workspaceId: 'ws_000000000000',
      environmentId: 'env_000000000000',
      lineage: network.lineage,
      lifecycleStatus: 'ACTIVE',
      createdAt: expect.stringMatching(MICROSECOND_TIME),
      updatedAt: expect.stringMatching(MICROSECOND_TIME),
    });
  });

  test('previews what an export would say of itself', async () => {
    const { state } = await ofNetwork(`manifest {
      archiveFormat name lineage currentSerial currentVersionId firstSerial lastSerial versionCount tagCount eventCount
      resourceSpanCount rawBytes historyDigest sources terraformVersions firstCreatedAt lastCreatedAt
    }
    version(serial: "3") { id }
    versions { nodes { sizeBytes } }`);
    const { nodes } = state.versions as Page<{ sizeBytes: string }>;
    expect(state.manifest).toEqual({
      archiveFormat: 'kilolock-state-archive/v1',
      name: 'prod/network',
      lineage: network.lineage,
      currentSerial: '3',
      currentVersionId: (state.version as { id: string }).id,
      firstSerial: '1',
      lastSerial: '3',
      versionCount: 3,
      tagCount: 3,
      eventCount: 3,
      // vpc; gateway on, then off; subnet.
      resourceSpanCount: 4,
      rawBytes: String(nodes.reduce((sum, { sizeBytes }) => sum + BigInt(sizeBytes), 0n)),
      historyDigest: expect.stringMatching(SHA256),
      sources: ['apply'],
      terraformVersions: ['1.11.4'],
      firstCreatedAt: expect.stringMatching(MICROSECOND_TIME),
      lastCreatedAt: expect.stringMatching(MICROSECOND_TIME),
    });
  });

  test('lists every tag by name, with null and "" apart', async () => {
    const { state } = await ofNetwork('tags { name serial description actor createdAt updatedAt }');
    const times = {
      createdAt: expect.stringMatching(MICROSECOND_TIME),
      updatedAt: expect.stringMatching(MICROSECOND_TIME),
    };
    expect(state.tags).toEqual([
      { name: 'Baseline', serial: '1', description: '', actor: 'bob@cli', ...times },
      { name: 'before-subnet', serial: '1', description: 'as it was', actor: 'bob@cli', ...times },
      { name: 'release', serial: '3', description: null, actor: 'bob@cli', ...times },
    ]);
  });

  test('says of a state that only a lock made that there is nothing to export', async () => {
    const { rows } = await service.database.pool.query(
      `insert into states (name) values ('prod/shell') returning id`,
    );
    await service.database.pool.query(
      `insert into state_locks (state_id, lock_id, who, acquired_at) values ($1, 'younger', 'carol', now()), ($1, 'older', 'dave', now() - interval '1 hour')`,
      [rows[0].id],
    );
    const { data } = await service.ask(
      `{ stateArchive(name: "prod/shell") {
        lineage manifest { historyDigest } versions { totalCount nodes { id } }
        status { exportable lockedBy versionCount lastExport { id } lastImport { id } }
      } }`,
    );
    expect(data).toEqual({
      stateArchive: {
        lineage: null,
        manifest: null,
        versions: { totalCount: 0, nodes: [] },
        status: { exportable: false, lockedBy: 'dave', versionCount: 0, lastExport: null, lastImport: null },
      },
    });
  });

  test('shows a contradiction in one state of a list there, and every other state whole', async () => {
    const broken = await postHistory(service.database, null, 'broken/tag', [{}]);
    const other = await postHistory(service.database, null, 'broken/not', [{}]);
    await service.database.pool.query(
      `insert into state_version_tags (state_id, state_version_id, tag)
       select $1, id, 'astray' from state_versions where state_id = $2`,
      [broken.stateId, other.stateId],
    );
    const { data, denials, errors } = await service.ask(
      '{ stateArchives(filter: { namePrefix: "broken/" }) { nodes { name manifest { versionCount } } } }',
    );
    expect(data).toEqual({
      stateArchives: {
        nodes: [
          { name: 'broken/not', manifest: { versionCount: 1 } },
          { name: 'broken/tag', manifest: null },
        ],
      },
    });
    expect(denials).toEqual(['stateArchives.nodes.1.manifest: HISTORY_INCONSISTENT']);
    expect(errors[0]?.message).toContain('"astray"');
  });
});

describe('versions', () => {
  test('come newest first, each with what it holds and what it changed', async () => {
    const { state } = await ofNetwork(`versions {
      totalCount ${PAGE_INFO}
      nodes {
        serial isCurrent terraformVersion source createdAt createdBy resourceCount outputNames
        changes { added changed removed } tags { name }
      }
    }`);
    const { nodes, ...page } = state.versions as Page<unknown>;
    const written = {
      terraformVersion: '1.11.4',
      source: 'apply',
      createdBy: 'ci@runner',
      createdAt: expect.stringMatching(MICROSECOND_TIME),
    };
    expect(nodes).toEqual([
      {
        ...written,
        serial: '3',
        isCurrent: true,
        resourceCount: 1,
        outputNames: [],
        changes: { added: 0, changed: 0, removed: 2 },
        tags: [{ name: 'release' }],
      },
      {
        ...written,
        serial: '2',
        isCurrent: false,
        resourceCount: 3,
        outputNames: [],
        changes: { added: 1, changed: 1, removed: 0 },
        tags: [],
      },
      {
        ...written,
        serial: '1',
        isCurrent: false,
        resourceCount: 2,
        outputNames: ['Admin', 'vpc_id'],
        changes: { added: 2, changed: 0, removed: 0 },
        tags: [{ name: 'Baseline' }, { name: 'before-subnet' }],
      },
    ]);
    expect(page).toMatchObject({
      totalCount: 3,
      pageInfo: { hasNextPage: false, hasPreviousPage: false },
    });
  });

  test('are given page by page, none twice and none left out', async () => {
    const serials: string[] = [];
    let after: string | null = null;
    const pages: Page<{ serial: string }>['pageInfo'][] = [];
    do {
      const { state } = await ofNetwork(
        `versions(first: 2, after: $after) { totalCount ${PAGE_INFO} edges { cursor node { serial } } nodes { serial } }`,
        { after },
        '($after: String)',
      );
      const page = state.versions as Page<{ serial: string }>;
      serials.push(...page.nodes.map(({ serial }) => serial));
      expect(page.edges.map(({ node }) => node)).toEqual(page.nodes);
      expect([page.edges.at(0)?.cursor, page.edges.at(-1)?.cursor]).toEqual([
        page.pageInfo.startCursor,
        page.pageInfo.endCursor,
      ]);
      pages.push(page.pageInfo);
      after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
    } while (after !== null);
    expect(serials).toEqual(['3', '2', '1']);
    expect(pages.map(({ hasPreviousPage }) => hasPreviousPage)).toEqual([false, true]);
  });

  test('after the last one there is an empty page', async () => {
    const { state } = await ofNetwork(
      `versions(after: "${cursorOf('1')}") { totalCount ${PAGE_INFO} nodes { serial } }`,
    );
    expect(state.versions).toEqual({
      totalCount: 3,
      nodes: [],
      pageInfo: { hasNextPage: false, hasPreviousPage: true, startCursor: null, endCursor: null },
    });
  });

  test('are found by serial, or not at all', async () => {
    const { state } = await ofNetwork(
      'one: version(serial: "1") { serial } none: version(serial: "4") { serial } low: version(serial: "-9223372036854775808") { serial }',
    );
    expect(state).toEqual({ one: { serial: '1' }, none: null, low: null });
  });

  test('are found by tag, or not at all', async () => {
    const { state } = await ofNetwork(
      'release: version(tag: "release") { serial } none: version(tag: "Release") { serial } nul: version(tag: "\\u0000") { serial }',
    );
    expect(state).toEqual({ release: { serial: '3' }, none: null, nul: null });
  });

  test.each(['', '(serial: "1", tag: "release")', '(serial: null)'])(
    'are asked for by one of the two: version%s',
    async (given) => {
      const { denials } = await service.ask(
        `{ stateArchive(name: "prod/network") { version${given} { id } } }`,
      );
      expect(denials).toEqual(['stateArchive.version: BAD_USER_INPUT']);
    },
  );

  test('with serials above 2^53 keep every digit, apart from their neighbours', async () => {
    const version = (serial: string) => ({
      serial,
      source: 'http_backend',
      created_at: '2026-03-02T10:00:00.000118Z',
      created_by: serial === '9007199254740992' ? null : '',
      terraform_version: serial === '9007199254740992' ? '' : null,
      raw_state: `{"version": 4, "serial": ${serial}}`,
    });
    await insertHistory(service.database, {
      state: { name: 'big/serials', lineage: null },
      current_serial: '9007199254740993',
      versions: [version('9007199254740992'), version('9007199254740993'), version('9223372036854775806')],
      tags: [{ tag: 'odd', serial: '9007199254740993', description: null, actor: 'erin' }],
    });
    const { data, errors } = await service.ask(
      `query ($serial: BigInt!) { stateArchive(name: "big/serials") {
        lineage
        manifest { currentSerial firstSerial lastSerial lineage firstCreatedAt terraformVersions }
        version(serial: $serial) { serial isCurrent createdAt createdBy terraformVersion tags { name serial } }
        versions(first: 2) { nodes { serial isCurrent createdBy } pageInfo { endCursor } }
        last: versions(first: 2, after: "${cursorOf('9007199254740993')}") {
          nodes { serial createdBy terraformVersion }
        }
      } }`,
      { variables: { serial: '9007199254740993' } },
    );
    expect(errors).toEqual([]);
    expect(data).toEqual({
      stateArchive: {
        lineage: null,
        manifest: {
          currentSerial: '9007199254740993',
          firstSerial: '9007199254740992',
          lastSerial: '9223372036854775806',
          lineage: null,
          firstCreatedAt: '2026-03-02T10:00:00.000118Z',
          terraformVersions: [''],
        },
        version: {
          serial: '9007199254740993',
          isCurrent: true,
          createdAt: '2026-03-02T10:00:00.000118Z',
          createdBy: '',
          terraformVersion: null,
          tags: [{ name: 'odd', serial: '9007199254740993' }],
        },
        versions: {
          nodes: [
            { serial: '9223372036854775806', isCurrent: false, createdBy: '' },
            { serial: '9007199254740993', isCurrent: true, createdBy: '' },
          ],
          pageInfo: { endCursor: cursorOf('9007199254740993') },
        },
        last: { nodes: [{ serial: '9007199254740992', createdBy: null, terraformVersion: '' }] },
      },
    });
  });

  test('give their raw state, to whom it is given, as the bytes that size and digest speak of', async () => {
    const { state, errors } = await ofNetwork('version(serial: "1") { rawState sizeBytes sha256 }');
    expect(errors).toEqual([]);
    const { rawState, sizeBytes, sha256 } = state.version as Record<string, string>;
    expect(rawState).toContain('hunter2');
    expect(sizeBytes).toBe(String(Buffer.byteLength(rawState ?? '')));
    expect(sha256).toBe(
      createHash('sha256')
        .update(rawState ?? '')
        .digest('hex'),
    );
  });

  test('keep their raw state from a caller without state.raw.read, and nothing else', async () => {
    const token = await service.token({ scopes: ['state.read', 'state.export', 'state.import'] });
    const { data, denials, text } = await service.ask(
      '{ stateArchive(name: "prod/network") { name versions { nodes { serial rawState outputNames } } } }',
      { token },
    );
    expect(data).toEqual({
      stateArchive: {
        name: 'prod/network',
        versions: {
          nodes: [
            { serial: '3', rawState: null, outputNames: [] },
            { serial: '2', rawState: null, outputNames: [] },
            { serial: '1', rawState: null, outputNames: ['Admin', 'vpc_id'] },
          ],
        },
      },
    });
    expect(denials).toEqual(
      [0, 1, 2].map((index) => `stateArchive.versions.nodes.${index}.rawState: FORBIDDEN`),
    );
    expect(text).not.toContain('hunter2');
  });
});

describe('states', () => {
  interface States {
    readonly stateArchives: Page<{ readonly name: string }>;
  }

  beforeAll(async () => {
    for (const label of ['list/B', 'list/a', 'list/é', 'list/a%', 'list/a_b', 'list/axb']) {
      await postHistory(service.database, null, label, [{}]);
    }
  });

  async function names(prefix: string, token?: string): Promise<string[]> {
    const answer = await service.ask<States>(
      `query ($prefix: String) { stateArchives(first: 100, filter: { namePrefix: $prefix }) { nodes { name } } }`,
      { variables: { prefix }, ...(token !== undefined && { token }) },
    );
    expect(answer.errors).toEqual([]);
    return answer.data.stateArchives.nodes.map(({ name }) => name);
  }

  test('are listed by label, bytewise', async () => {
    expect(await names('list/')).toEqual(['list/B', 'list/a', 'list/a%', 'list/a_b', 'list/axb', 'list/é']);
  });

  test.each([
    ['list/a_', ['list/a_b']],
    ['list/a%', ['list/a%']],
    ['LIST/', []],
    ['list/\0', []],
  ])('are narrowed by the prefix %j literally', async (prefix, expected) => {
    expect(await names(prefix)).toEqual(expected);
  });

  test.each([
    [['list/a*'], ['list/a', 'list/a%', 'list/a_b', 'list/axb']],
    [['list/a'], ['list/a']],
    [
      ['list/a_*', 'list/B'],
      ['list/B', 'list/a_b'],
    ],
    [['prod/*'], []],
    [[], []],
  ])('outside the patterns %j of a token are not listed', async (states, expected) => {
    expect(await names('list/', await service.token({ states }))).toEqual(expected);
  });

  test('come page by page, and a page is full of states the caller may see', async () => {
    const token = await service.token({ states: ['list/a*'] });
    const seen: string[][] = [];
    let after: string | null = null;
    do {
      const { data } = await service.ask<States>(
        `query ($after: String) {
          stateArchives(first: 3, after: $after, filter: { namePrefix: "list/" }) { nodes { name } ${PAGE_INFO} }
        }`,
        { variables: { after }, token },
      );
      const { nodes, pageInfo } = data.stateArchives as States['stateArchives'];
      seen.push(nodes.map(({ name }) => name));
      after = pageInfo.hasNextPage ? pageInfo.endCursor : null;
    } while (after !== null);
    expect(seen).toEqual([['list/a', 'list/a%', 'list/a_b'], ['list/axb']]);
  });

  test('of the caller’s own environment are listed when the scope names it', async () => {
    const { data } = await service.ask<States>(
      `{ stateArchives(
        scope: { workspaceId: "ws_000000000000", environmentId: "env_000000000000" }, filter: { namePrefix: "list/B" }
      ) { nodes { name } } }`,
    );
    expect(data.stateArchives.nodes).toEqual([{ name: 'list/B' }]);
  });
});

describe('paging arguments', () => {
  const connections = {
    versions: (page: string) =>
      `{ stateArchive(name: "prod/network") { page: versions(${page}) { nodes { id } } } }`,
    operations: (page: string) =>
      `{ stateArchive(name: "prod/network") { page: operations(${page}) { nodes { id } } } }`,
    stateArchives: (page: string) => `{ page: stateArchives(${page}) { nodes { id } } }`,
  };

  test.each(Object.entries(connections))('of %s bound the page to 1 to 100', async (_name, query) => {
    for (const first of ['0', '-1', '101']) {
      const { denials, errors } = await service.ask(query(`first: ${first}`));
      expect([first, ...denials]).toEqual([first, expect.stringMatching(/page: BAD_USER_INPUT$/)]);
      expect(errors[0]?.message).toBe('first is 1 to 100.');
    }
    for (const first of ['1', '100'])
      expect((await service.ask(query(`first: ${first}`))).errors).toEqual([]);
  });

  const someId = '00000000-0000-4000-8000-000000000000';
  test.each([
    [
      'versions',
      ['', 'hunter2', '3 ', cursorOf(''), cursorOf('x'), cursorOf('9223372036854775808'), cursorOf('1e3')],
    ],
    [
      'operations',
      [
        'hunter2',
        cursorOf('3'),
        cursorOf(`2026-02-30T10:00:00.000118Z ${someId}`),
        cursorOf(`0000-01-01T10:00:00.000118Z ${someId}`),
        cursorOf(`2026-02-03T10:00:00.000118Z ------------------------------------`),
      ],
    ],
    ['stateArchives', ['', 'a', '%%', cursorOf('a\0b'), `${cursorOf('list/a')}=`]],
  ] as const)('of %s refuse a cursor that none of its pages ended with', async (name, cursors) => {
    for (const cursor of cursors) {
      const { denials, errors, text } = await service.ask(
        connections[name](`after: ${JSON.stringify(cursor)}`),
      );
      expect([cursor, ...denials]).toEqual([cursor, expect.stringMatching(/page: BAD_USER_INPUT$/)]);
      expect(errors[0]?.message).toBe('after is not a cursor of this list.');
      expect(text).not.toContain('hunter2');
    }
  });
});
