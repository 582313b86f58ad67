import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { MAX_DOCUMENT_TOKENS } from '../../src/http/limits.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { documentOf, postHistory } from './support/states.ts';

/**
 * A caller's mistake is told by a code of its own, and is nothing that wakes whoever runs the service: whatever is sent
 * here, no answer is INTERNAL and no line is logged at the level of an error.
 */

let service: TestService;
let stateId: string;
let logged = 0;

beforeAll(async () => {
  service = await startTestService({ PLAYGROUND: 'true' });
  ({ stateId } = await postHistory(service.database, null, 'prod/network', [{}]));
});
afterAll(() => service.stop());

afterEach(() => {
  const lines = service.log.slice(logged).map((line) => JSON.parse(line));
  logged = service.log.length;
  expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
});

async function send(body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await service.token()}`,
      'content-type': 'application/json',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  expect(text).not.toContain('"INTERNAL"');
  expect(text).not.toContain('INTERNAL_SERVER_ERROR');
  expect(response.status).toBeLessThan(500);
  return JSON.parse(text) as {
    data?: unknown;
    errors?: { extensions: { code: string }; path?: unknown[] }[];
  };
}

const deep = (open: string, close: string, inner = '1') => `${open.repeat(480)}${inner}${close.repeat(480)}`;
const ring = (size: number, ...steps: readonly number[]) =>
  Array.from({ length: size }, (_, index) => {
    const spreads = [1, ...steps].map((step) => `...f${(index + step) % size}`);
    return `fragment f${index} on Query { ${spreads.join(' ')} }`;
  }).join(' ');

describe('a document', () => {
  test.each<[what: string, query: string]>([
    ['of an operation that the schema has no root for', 'subscription { x }'],
    ['of such an operation with a fragment', 'subscription { ...f } fragment f on Query { __typename }'],
    ['of two operations without a name to choose', 'query a { __typename } query b { __typename }'],
    ['of definitions alone', 'type A { b: Int }'],
    ['of a fragment alone', 'fragment f on Query { __typename }'],
    ['that is empty', ''],
    ['with a NUL', '{ stateArchive(name: "a\\u0000b") { id } }'],
    ['with half a character', '{ stateArchive(name: "\\ud800") { id } }'],
    ['with a list nested deep', `{ stateArchive(name: ${deep('[', ']')}) { id } }`],
    ['with an object nested deep', `{ stateArchive(name: ${deep('{a:', '}')}) { id } }`],
    [
      'with a list nested deep in an entity',
      `{ _entities(representations: [{__typename: "State", id: ${deep('[', ']')}}]) { __typename } }`,
    ],
    [
      'with an object nested deep in an entity',
      `{ _entities(representations: [{__typename: "State", id: ${deep('{a:', '}')}}]) { __typename } }`,
    ],
    [
      'with a type nested deep',
      `query ($a: ${deep('[', ']', 'Int')}) { stateArchives(first: $a) { nodes { id } } }`,
    ],
    ['with fields nested deep', `{ ${'a { '.repeat(600)} b ${'}'.repeat(600)} }`],
    ['with inline fragments nested deep', `{ ${'... { '.repeat(600)} __typename ${'}'.repeat(600)} }`],
    [
      'with a default nested deep',
      `query ($a: [_Any!]! = ${deep('[', ']')}) { _entities(representations: $a) { __typename } }`,
    ],
    ['with fragments in a ring', `{ ...f0 } ${ring(100)}`],
    ['with many fragments in a ring', `{ ...f0 } ${ring(240)}`],
    ['with fragments in a ring of several ways', `{ ...f0 } ${ring(100, 2)}`],
    ['with many fragments in a ring of two ways', `{ ...f0 } ${ring(190, 2)}`],
    ['with many fragments in a ring that nobody spreads', `{ __typename } ${ring(190, 7)}`],
    ['with a fragment that spreads itself', '{ ...f } fragment f on Query { ...f }'],
    [
      'with fragments in a chain',
      `{ ...f0 } ${Array.from({ length: 240 }, (_, index) => `fragment f${index} on Query { ...f${index + 1} }`).join(' ')} fragment f240 on Query { __typename }`,
    ],
    ['with a number that has no end', `{ stateArchives(first: ${'9'.repeat(500)}) { nodes { id } } }`],
    ['with an endless exponent', '{ stateArchives(first: 1e999999) { nodes { id } } }'],
    [
      'with a file as a literal',
      'mutation { importStateArchive(input: { file: "x" }) { userErrors { code } } }',
    ],
    ['with an unknown directive', '{ __typename @nothing(a: 1) }'],
    ['that defers', '{ ... @defer { __typename } }'],
    ['that includes by a variable without value', 'query ($a: Boolean!) { __typename @include(if: $a) }'],
    ['with a null for what has a default', '{ stateArchives(first: null) { nodes { id } } }'],
    [
      'that asks for internals',
      '{ __schema { types { name fields { name } } } __type(name: "Query") { name } }',
    ],
    [
      'of many conflicting fields',
      `{ ${Array.from({ length: 150 }, (_, index) => `a: stateArchive(name: "${index}") { id }`).join(' ')} }`,
    ],
  ])('%s', async (_what, query) => {
    // Beyond that it would reach nothing but the limit.
    expect((query.match(/\.\.\.|\w+|[^\s,]/g) ?? []).length).toBeLessThan(MAX_DOCUMENT_TOKENS);
    await send({ query });
  });
});

describe('variables', () => {
  const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'];
  test.each<[what: string, query: string, variables: unknown]>([
    ['that are a list', '{ __typename }', [1]],
    ['that are a text', '{ __typename }', 'x'],
    ['that are null', '{ __typename }', null],
    [
      'with null for what has a default',
      'query ($a: Int) { stateArchives(first: $a) { nodes { id } } }',
      { a: null },
    ],
    [
      'with null for an input field with a default',
      'mutation ($a: Int) { exportStateArchive(input: { name: "x", waitSeconds: $a }) { userErrors { code } } }',
      { a: null },
    ],
    [
      'with null for a default policy',
      'mutation ($f: Upload!, $a: StateArchiveConflictPolicy) { importStateArchive(input: { file: $f, onConflict: $a }) { userErrors { code } } }',
      { f: null, a: null },
    ],
    [
      'missing for a required list',
      'query ($a: [_Any!]!) { _entities(representations: $a) { __typename } }',
      {},
    ],
    [
      'with a file that is none',
      'mutation ($f: Upload!) { importStateArchive(input: { file: $f }) { userErrors { code } } }',
      { f: { promise: 1 } },
    ],
    [
      'with a file that looks like one',
      'mutation ($f: Upload!) { importStateArchive(input: { file: $f }) { userErrors { code } } }',
      { f: { file: { filename: 'x' } } },
    ],
    [
      'of a scope with NUL',
      'query ($s: StateScopeInput) { stateArchives(scope: $s) { nodes { id } } }',
      { s: { workspaceId: 'a\0', environmentId: 'b' } },
    ],
    [
      'of a scope with half a character',
      'query ($s: StateScopeInput) { stateArchives(scope: $s) { nodes { id } } }',
      { s: { workspaceId: 'a', environmentId: '\ud800' } },
    ],
    [
      'of a scope with NUL in its reason',
      'query ($s: StateScopeInput) { stateArchives(scope: $s) { nodes { id } } }',
      { s: { workspaceId: 'ws_000000000000', environmentId: 'env_000000000000', reason: '\0' } },
    ],
    [
      'of a scope of a megabyte',
      'query ($s: StateScopeInput) { stateArchives(scope: $s) { nodes { id } } }',
      { s: { workspaceId: 'a'.repeat(1_000_000), environmentId: 'b' } },
    ],
    [
      'of a name of a megabyte',
      'query ($n: String!) { stateArchive(name: $n) { id } }',
      { n: 'a'.repeat(1_000_000) },
    ],
    [
      'of an export in a scope with NUL',
      'mutation ($s: StateScopeInput) { exportStateArchive(input: { name: "x", scope: $s }) { userErrors { code } } }',
      { s: { workspaceId: '\0', environmentId: '\0' } },
    ],
    [
      'of a snapshot in a scope with NUL',
      'mutation ($s: StateScopeInput) { importStateSnapshot(input: { name: "x", document: "{}", scope: $s }) { userErrors { code } } }',
      { s: { workspaceId: '\0', environmentId: '\0' } },
    ],
    [
      'of a filter with NUL',
      'query ($f: StateArchiveFilter) { stateArchives(filter: $f) { nodes { id } } }',
      { f: { namePrefix: '\0' } },
    ],
    [
      'of a key with NUL',
      'mutation ($k: String) { exportStateArchive(input: { name: "prod/network", idempotencyKey: $k }) { userErrors { code } } }',
      { k: '\0' },
    ],
    [
      'of a key with half a character',
      'mutation ($k: String) { importStateSnapshot(input: { name: "x", document: "{}", idempotencyKey: $k }) { userErrors { code } } }',
      { k: '\ud800' },
    ],
    ['of an operation id with NUL', 'query ($i: ID!) { stateArchiveOperation(id: $i) { id } }', { i: '\0' }],
    ['of numbers for ids', 'query ($i: ID!) { stateArchiveOperation(id: $i) { id } }', { i: 7 }],
    [
      'that go deep',
      'query ($a: [_Any!]!) { _entities(representations: $a) { __typename } }',
      { a: [{ __typename: 'State', id: JSON.parse(`${'['.repeat(3000)}${']'.repeat(3000)}`) }] },
    ],
    [
      'that go deep in a scalar',
      'query ($n: String!) { stateArchive(name: $n) { id } }',
      { n: JSON.parse(`${'['.repeat(3000)}${']'.repeat(3000)}`) },
    ],
    ...NAMES.map((name): [string, string, unknown] => [
      `named ${name}`,
      `query ($${name}: Int = 1) { stateArchives(first: $${name}) { nodes { id } } }`,
      {},
    ]),
    ...NAMES.map((name): [string, string, unknown] => [
      `with a member ${name}`,
      'query ($s: StateScopeInput) { stateArchives(scope: $s) { nodes { id } } }',
      { s: JSON.parse(`{ "workspaceId": "a", "environmentId": "b", "${name}": {} }`) },
    ]),
  ])('%s', async (_what, query, variables) => {
    await send({ query, variables });
  });
});

test('a snapshot with a value that no index of the database holds is a user error', async () => {
  // Of digits that do not compress: what fits into an index is counted after compression.
  const key = randomBytes(3_000).toString('hex');
  const document = documentOf(crypto.randomUUID(), { resources: { a: '1' } }).replace(
    '"instances":[{',
    `"instances":[{"index_key":"${key}",`,
  );
  const query = `mutation ($document: String) {
    importStateSnapshot(input: { name: "odd/key", document: $document }) { version { id } userErrors { code } }
  }`;
  const { data } = await send({ query, variables: { document } });
  expect(data).toEqual({
    importStateSnapshot: { version: null, userErrors: [{ code: 'UNSUPPORTED_STATE_DOCUMENT' }] },
  });
});

describe('a reference of a gateway', () => {
  test.each<[what: string, reference: unknown]>([
    ['null', null],
    ['a number', 7],
    ['a text', 'StateArchive'],
    ['a list', []],
    ['without a type', {}],
    ['of a type that is null', { __typename: null }],
    ['of a type that is an object', { __typename: {} }],
    ['of an unknown type', { __typename: 'Nothing', id: '1' }],
    ['of a type that is no entity', { __typename: 'StateArchiveTag', name: 'x' }],
    ['of a scalar type', { __typename: 'BigInt' }],
    ['of a root type', { __typename: 'Query' }],
    ['of a type called as a prototype has it', { __typename: '__proto__' }],
    ['of a type called constructor', { __typename: 'constructor' }],
    ['of a type with NUL', { __typename: 'State\0' }],
    ['with no key', { __typename: 'State' }],
    ['with an object for a key', { __typename: 'State', id: {} }],
    ['with a prototype for a key', JSON.parse('{ "__typename": "State", "id": { "__proto__": 1 } }')],
    [
      'with NUL in its scope',
      { __typename: 'StateArchive', workspaceId: '\0', environmentId: '\0', name: '\0' },
    ],
  ])('%s spoils nobody else’s', async (_what, reference) => {
    const query = `query ($a: [_Any!]!) {
      _entities(representations: $a) { ... on StateArchive { name } ... on State { id archive { name } } }
    }`;
    const good = { __typename: 'StateArchive', id: stateId };
    const { data, errors } = await send({ query, variables: { a: [good, reference, good] } });
    // What GraphQL itself refuses is refused whole: [_Any!] holds no null.
    if (reference === null) {
      expect(errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT');
      return;
    }
    const network = { name: 'prod/network' };
    expect(data).toEqual({ _entities: [network, null, network] });
    for (const { path } of errors ?? []) expect(path?.slice(0, 2)).toEqual(['_entities', 1]);
  });
});
