import { readFile, writeFile } from 'node:fs/promises';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { describe, expect, test } from '@jest/globals';
import { findBreakingChanges, type GraphQLSchema, parse, print } from 'graphql';

const SCHEMA = new URL('../../schema.graphql', import.meta.url);
const SNAPSHOT = new URL('./schema-snapshot.graphql', import.meta.url);

/** What clients and gateways that were built on `before` would stumble over. */
function breakingChanges(before: string, after: string): string[] {
  const [was, is] = [schemaOf(before), schemaOf(after)];
  const keys = new Set(keysOf(is));
  return [
    ...findBreakingChanges(was, is).map(({ description }) => description),
    ...keysOf(was)
      .filter((key) => !keys.has(key))
      .map((key) => `${key} was removed.`),
  ];
}

function schemaOf(sdl: string): GraphQLSchema {
  return buildSubgraphSchema([{ typeDefs: parse(sdl) }]);
}

/** graphql-js compares no directives, and a key is what other subgraphs hold on to. */
function keysOf(schema: GraphQLSchema): string[] {
  return Object.values(schema.getTypeMap()).flatMap((type) =>
    (type.astNode?.directives ?? [])
      .filter(({ name }) => name.value === 'key')
      .map((directive) => `${type.name} ${print(directive)}`),
  );
}

describe('schema.graphql', () => {
  test('breaks nobody who was built on the snapshot of it', async () => {
    const [before, after] = await Promise.all([readFile(SNAPSHOT, 'utf8'), readFile(SCHEMA, 'utf8')]);
    expect(breakingChanges(before, after)).toEqual([]);
  });

  test('is its snapshot, so that what was added is kept too (UPDATE_DOCS=1 takes a new one)', async () => {
    const [before, after] = await Promise.all([readFile(SNAPSHOT, 'utf8'), readFile(SCHEMA, 'utf8')]);
    if (process.env.UPDATE_DOCS === '1' && breakingChanges(before, after).length === 0) {
      await writeFile(SNAPSHOT, after);
    } else {
      expect(before).toBe(after);
    }
  });
});

describe('a breaking change is named', () => {
  test.each([
    [
      'a field that is gone',
      / {2}"When the state was created\."\n {2}createdAt: DateTime\n/,
      '',
      'StateArchive.createdAt was removed.',
    ],
    [
      'a field that may be null now',
      'createdAt: DateTime!',
      'createdAt: DateTime',
      'changed type from DateTime! to DateTime',
    ],
    ['an argument that is required now', 'scope: StateScopeInput', 'scope: StateScopeInput!', 'changed type'],
    [
      'a code that is gone',
      / {2}"The state has no version to export\."\n {2}STATE_EMPTY\n/,
      '',
      'STATE_EMPTY was removed',
    ],
    [
      'a key that is gone',
      '@key(fields: "workspaceId environmentId name")',
      '',
      'StateArchive @key(fields: "workspaceId environmentId name") was removed.',
    ],
  ])('%s', async (_what, from, to, expected) => {
    const before = await readFile(SCHEMA, 'utf8');
    const after = before.replace(from, to);
    expect(after).not.toBe(before);
    expect(breakingChanges(before, after).join('\n')).toContain(expected);
  });
});
