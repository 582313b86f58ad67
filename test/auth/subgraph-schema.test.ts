import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type DocumentNode, type GraphQLSchema, graphql, parse } from 'graphql';
import { enforceAuthorization } from '../../src/auth/directives.ts';
import {
  entityTypes,
  fieldRequirements,
  type Requirement,
  typeRequirement,
} from '../../src/auth/field-requirements.ts';
import { type Principal, SCOPES } from '../../src/auth/principal.ts';
import { PUBLIC_COORDINATES } from '../../src/auth/public-coordinates.ts';

const PROJECT = resolve(import.meta.dirname, '../..');

let typeDefs: DocumentNode;

beforeAll(async () => {
  typeDefs = parse(await readFile(resolve(PROJECT, 'schema.graphql'), 'utf8'));
});

/** The subgraph's schema over resolvers that only say they ran. */
function subgraph() {
  const calls: string[] = [];
  const version = { id: 'version-1', serial: '7', sizeBytes: '12', rawState: '{"secret":"hunter2"}' };
  const operation = { id: 'op-1', archive: { sha256: 'ab', downloadUrl: 'https://example.com/secret-link' } };
  const stateArchive = { id: 'state-1', name: 'prod/network', version };
  const field =
    <Value>(name: string, value: Value) =>
    () => {
      calls.push(name);
      return value;
    };
  const payload = { operation: null, userErrors: [] };
  const schema = buildSubgraphSchema([
    {
      typeDefs,
      resolvers: {
        Query: {
          stateArchive: field('stateArchive', stateArchive),
          stateArchives: field('stateArchives', { nodes: [stateArchive] }),
          stateArchiveOperation: field('stateArchiveOperation', operation),
        },
        Mutation: {
          exportStateArchive: field('exportStateArchive', payload),
          importStateArchive: field('importStateArchive', payload),
          importStateSnapshot: field('importStateSnapshot', payload),
          cancelStateArchiveOperation: field('cancelStateArchiveOperation', payload),
          setStateArchiveLegalHold: field('setStateArchiveLegalHold', payload),
        },
        StateArchive: { __resolveReference: field('StateArchive', stateArchive) },
        State: { __resolveReference: field('State', { id: 'state-1', archive: stateArchive }) },
        StateArchiveOperation: { __resolveReference: field('StateArchiveOperation', operation) },
      },
    },
  ]);
  enforceAuthorization(schema, { publicCoordinates: PUBLIC_COORDINATES });

  async function ask(
    scopes: readonly string[] | null,
    source: string,
    variableValues: Record<string, unknown> = {},
  ) {
    calls.length = 0;
    const contextValue = { principal: scopes === null ? null : caller(scopes) };
    const { data, errors = [] } = await graphql({ schema, source, variableValues, contextValue });
    return {
      data: JSON.stringify(data ?? null),
      denials: errors.map((error) => `${error.path?.join('.')}: ${error.extensions.code}`),
      calls: [...calls],
    };
  }
  return { schema, ask };
}

function caller(scopes: readonly string[]): Principal {
  return {
    subject: 'user-1',
    actor: 'user-1',
    scopes: new Set(scopes),
    workspace: null,
    environment: null,
    statePatterns: null,
  };
}

const OPERATIONS = [
  'query { stateArchive(name: "a") { id } }',
  'query { stateArchives { nodes { id } } }',
  'query { stateArchiveOperation(id: "a") { id } }',
  'mutation { exportStateArchive(input: { name: "a" }) { userErrors { code } } }',
  'mutation ($file: Upload!) { importStateArchive(input: { file: $file }) { userErrors { code } } }',
  'mutation { importStateSnapshot(input: { name: "a", document: "{}" }) { userErrors { code } } }',
  'mutation { cancelStateArchiveOperation(input: { id: "a" }) { userErrors { code } } }',
  'mutation { setStateArchiveLegalHold(input: { id: "a", legalHold: true }) { __typename } }',
];

describe('the subgraph', () => {
  test.each<[scopes: string[] | null, permitted: string[]]>([
    [null, []],
    [[], []],
    [['state.raw.read'], []],
    [['state.retain'], ['setStateArchiveLegalHold']],
    [['state.read'], ['stateArchive', 'stateArchives', 'stateArchiveOperation']],
    [['state.export'], ['stateArchiveOperation', 'exportStateArchive', 'cancelStateArchiveOperation']],
    [
      ['state.import'],
      ['stateArchiveOperation', 'importStateArchive', 'importStateSnapshot', 'cancelStateArchiveOperation'],
    ],
    [
      [...SCOPES],
      [
        'stateArchive',
        'stateArchives',
        'stateArchiveOperation',
        'exportStateArchive',
        'importStateArchive',
        'importStateSnapshot',
        'cancelStateArchiveOperation',
        'setStateArchiveLegalHold',
      ],
    ],
  ])('lets a caller with %j run %j and no other resolver', async (scopes, permitted) => {
    const { ask } = subgraph();
    const ran: string[] = [];
    for (const source of OPERATIONS) {
      const { calls, denials } = await ask(scopes, source, { file: 'the upload' });
      if (calls.length === 0) {
        expect(denials).toEqual([expect.stringContaining(scopes === null ? 'UNAUTHENTICATED' : 'FORBIDDEN')]);
      }
      ran.push(...calls);
    }
    expect(ran).toEqual(permitted);
  });

  test('gives its SDL to anyone', async () => {
    const { data, denials } = await subgraph().ask(null, '{ _service { sdl } }');
    expect(denials).toEqual([]);
    expect(data).toContain('@requiresScopes');
  });

  test.each([
    ['from the root', '{ stateArchive(name: "a") { version(serial: "7") { sizeBytes rawState } } }'],
    ['under an alias', '{ stateArchive(name: "a") { version(serial: "7") { sizeBytes: rawState } } }'],
    [
      'from a reference',
      '{ _entities(representations: [{ __typename: "StateArchive", id: "a" }]) { ... on StateArchive { version(serial: "7") { rawState } } } }',
    ],
    [
      'from the reference of a state',
      '{ _entities(representations: [{ __typename: "State", id: "a" }]) { ... on State { archive { version(serial: "7") { rawState } } } } }',
    ],
  ])('keeps raw states from a caller who may not read them, %s', async (_name, source) => {
    const { ask } = subgraph();
    const denied = await ask(['state.read', 'state.export', 'state.import'], source);
    expect(denied.denials).toEqual([expect.stringMatching(/(rawState|sizeBytes): FORBIDDEN$/)]);
    expect(denied.data).not.toContain('hunter2');
    const permitted = await ask(['state.read', 'state.raw.read'], source);
    expect(permitted.data).toContain('hunter2');
  });

  test('gives a download link to those who may export, and to no mere reader', async () => {
    const { ask } = subgraph();
    const source = '{ stateArchiveOperation(id: "a") { archive { sha256 downloadUrl } } }';
    const reader = await ask(['state.read'], source);
    expect(reader.denials).toEqual(['stateArchiveOperation.archive.downloadUrl: FORBIDDEN']);
    expect(reader.data).not.toContain('secret-link');
    expect((await ask(['state.export'], source)).data).toContain('secret-link');
  });

  test('denies references one by one', async () => {
    const { calls, denials } = await subgraph().ask(
      ['state.export'],
      `{ _entities(representations: [
        { __typename: "StateArchive", id: "a" }
        { __typename: "StateArchiveOperation", id: "b" }
        { __typename: "State", id: "c" }
      ]) { __typename ... on State { archive { __typename } } } }`,
    );
    // The reference of a State is another subgraph's, and only given back; what is ours behind it is guarded.
    expect(denials.sort()).toEqual(['_entities.0: FORBIDDEN', '_entities.2.archive: FORBIDDEN']);
    expect(calls).toEqual(['StateArchiveOperation', 'State']);
  });
});

describe('docs/authorization.md', () => {
  test('prints what every field of the schema demands (UPDATE_DOCS=1 rewrites it)', async () => {
    const path = resolve(PROJECT, 'docs/authorization.md');
    const text = await readFile(path, 'utf8');
    const current = text.replace(
      /(<!-- requirements: .*? -->\n).*?(\n<!-- end of requirements -->)/s,
      (_all, start: string, end: string) => `${start}\n${requirementTables(subgraph().schema)}${end}`,
    );
    if (process.env.UPDATE_DOCS === '1') await writeFile(path, current);
    else expect(text).toBe(current);
    expect(current).toContain('| `StateArchiveVersion.rawState` |');
  });
});

function requirementTables(schema: GraphQLSchema): string {
  const rows = (requirements: ReadonlyMap<string, Requirement>) =>
    [...requirements].map(([coordinate, requirement]) => `| \`${coordinate}\` | ${inWords(requirement)} |`);
  return [
    '| Field | Demands |',
    '| --- | --- |',
    ...rows(fieldRequirements(schema)),
    '',
    '| Entity, by reference | Demands |',
    '| --- | --- |',
    ...rows(new Map(entityTypes(schema).map((type) => [type.name, typeRequirement(type)]))),
    '',
  ].join('\n');
}

function inWords(requirement: Requirement): string {
  if (requirement === null) return 'nothing';
  if (requirement.some((set) => set.length === 0)) return 'a credential';
  return requirement.map((set) => set.map((scope) => `\`${scope}\``).join(' and ')).join(', or ');
}
