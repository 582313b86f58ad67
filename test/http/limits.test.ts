import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import {
  type GraphQLNamedType,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  getOperationAST,
  getVariableValues,
  isCompositeType,
  isListType,
  isObjectType,
  Kind,
  parse,
  validate,
  visit,
} from 'graphql';
import { createSchema } from '../../src/graphql/schema.ts';
import { ENTITIES_ANSWERED, MAX_DOCUMENT_TOKENS, QUERY_LIMITS } from '../../src/http/limits.ts';
import { measureOperation } from '../../src/http/operation-size.ts';

const schema = createSchema({ gatewayProofRequired: false });

function size(text: string, variables: Record<string, unknown> = {}) {
  const document = parse(text);
  expect(validate(schema, document).map(({ message }) => message)).toEqual([]);
  const operation = getOperationAST(document);
  if (!operation) throw new Error('There is no operation, or more than one.');
  const { coerced } = getVariableValues(schema, operation.variableDefinitions ?? [], variables);
  // The README's queries are measured without their file.
  return measureOperation(schema, document, operation, coerced ?? {}, ENTITIES_ANSWERED.caller);
}

describe('the cost of', () => {
  test.each<[name: string, query: string, cost: number, variables?: Record<string, unknown>]>([
    ['an object is 1, and its scalars are free', '{ stateArchive(name: "a") { id name } }', 1],
    [
      'a field with @cost is its weight',
      '{ stateArchive(name: "a") { manifest { historyDigest } } }',
      1 + 10,
    ],
    [
      'a page is its items and itself',
      '{ stateArchives(first: 7) { nodes { id } pageInfo { endCursor } } }',
      1 + 7 + 1,
    ],
    [
      'a page by edges is its edges and their nodes',
      '{ stateArchives(first: 7) { edges { node { id } } } }',
      1 + 7 * 2,
    ],
    ['a page that is not told how long is the default', '{ stateArchives { nodes { id } } }', 1 + 20],
    [
      'a page in a page is their product',
      '{ stateArchives(first: 5) { nodes { versions(first: 3) { nodes { sha256 } } } } }',
      1 + 5 * (1 + 1 + 3 * (1 + 1)),
    ],
    [
      'a list without an argument is as long as assumed',
      '{ stateArchive(name: "a") { tags { name } } }',
      1 + 10,
    ],
    [
      'a variable counts as its value',
      'query ($n: Int) { stateArchives(first: $n) { nodes { id } } }',
      1 + 50,
      { n: 50 },
    ],
    [
      'a variable that is not given counts as its default',
      'query ($n: Int = 9) { stateArchives(first: $n) { nodes { id } } }',
      1 + 9,
    ],
    [
      "a variable without either counts as the argument's default",
      'query ($n: Int) { stateArchives(first: $n) { nodes { id } } }',
      1 + 20,
    ],
    ['aliases is that of each', '{ a: stateArchive(name: "a") { id } b: stateArchive(name: "b") { id } }', 2],
    [
      'a fragment is that of what is in it, wherever it stands',
      `query { stateArchives(first: 2) { nodes { ...Facts } } }
       fragment Facts on StateArchive { ... { manifest { rawBytes } } tags { name } }`,
      1 + 2 * (1 + 10 + 10),
    ],
    [
      'references is that of each, by the dearest type',
      `{ _entities(representations: [{ __typename: "State" }, { __typename: "StateArchive" }]) {
        ... on StateArchive { manifest { rawBytes } } ... on State { archive { id } } } }`,
      2 * (1 + 10),
    ],
    [
      'references in a variable is that of each',
      'query ($r: [_Any!]!) { _entities(representations: $r) { ... on StateArchive { manifest { rawBytes } } } }',
      3 * (1 + 10),
      { r: [{}, {}, {}] },
    ],
    [
      'a mutation has a base, as in the router',
      'mutation { exportStateArchive(input: { name: "a" }) { operation { id } userErrors { code } } }',
      10 + 1900 + 1 + 1,
    ],
    [
      'a version with its raw state is dear',
      '{ stateArchive(name: "a") { version(serial: "1") { rawState } } }',
      1 + 1 + 250,
    ],
    ['introspection is that of its fields', '{ __schema { types { name fields { name } } } }', 5 * 20],
    ['the name of a type is nothing', '{ __typename stateArchive(name: "a") { __typename } }', 1],
    [
      'an object is one more for every fifty fields, fragments and directives',
      `{ stateArchive(name: "a") { ... { id @include(if: true) } ${'id '.repeat(47)} } }`,
      1 + 1,
    ],
  ])('%s', (_name, query, expected, ...[variables]) => {
    expect(size(query, variables).cost).toBe(expected);
  });

  test('a page whose length is not positive is that of one item: it is refused for itself', () => {
    const query = 'query ($n: Int) { stateArchives(first: $n) { nodes { id } } }';
    for (const n of [0, -1]) expect(size(query, { n }).cost).toBe(2);
  });
});

describe('the size of an operation', () => {
  test('is that of its fragments each time they are spread', () => {
    expect(
      size(
        `{ a: stateArchive(name: "a") { ...F } b: stateArchive(name: "b") { ...F } }
        fragment F on StateArchive { i: id status @include(if: true) { ... { versionCount } } }`,
      ),
    ).toEqual({ depth: 3, representations: 0, cost: 4 });
  });

  test('is told at once of fragments that double forty times over', () => {
    const fragments = Array.from(
      { length: 40 },
      (_, index) => `fragment F${index} on StateArchive { ...F${index + 1} ... { ...F${index + 1} } }`,
    );
    const { cost } = size(
      `{ stateArchive(name: "a") { ...F0 } } ${fragments.join(' ')} fragment F40 on StateArchive { id }`,
    );
    expect(cost).toBeGreaterThan(2 ** 40 / 50);
  });
});

describe('schema.graphql', () => {
  test('says of every list of objects how long it is, itself or from the page above', () => {
    const unsized: string[] = [];
    for (const type of Object.values(schema.getTypeMap())) {
      if (!isObjectType(type) || type.name.startsWith('_')) continue;
      const sized = new Set(fieldsReturning(type).flatMap(({ astNode }) => sizedFieldsOf(astNode)));
      for (const field of Object.values(type.getFields())) {
        if (!isListType(getNullableType(field.type)) || !isCompositeType(getNamedType(field.type))) continue;
        const own = field.astNode?.directives?.some(({ name }) => name.value === 'listSize');
        if (!own && !sized.has(field.name) && field.name !== '_entities')
          unsized.push(`${type.name}.${field.name}`);
      }
    }
    expect(unsized).toEqual([]);
  });

  test('puts @cost on fields alone, where it is counted', () => {
    const places = new Set<string>();
    visit(parse(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8')), {
      Directive(node, _key, _parent, _path, ancestors) {
        if (node.name.value !== 'cost') return;
        const owner = ancestors.at(-1);
        const last = Array.isArray(owner) ? ancestors.at(-2) : owner;
        if (last !== undefined && 'kind' in last) places.add(last.kind);
      },
    });
    expect([...places]).toEqual([Kind.FIELD_DEFINITION]);
  });

  function fieldsReturning(type: GraphQLNamedType) {
    return Object.values(schema.getTypeMap())
      .filter(isObjectType)
      .flatMap((each) => Object.values(each.getFields()))
      .filter((field) => getNamedType(field.type) === type);
  }

  function sizedFieldsOf(
    node: { readonly directives?: readonly unknown[] | undefined } | null | undefined,
  ): string[] {
    const text = JSON.stringify(node?.directives ?? []);
    return text.includes('"sizedFields"')
      ? ['edges', 'nodes'].filter((name) => text.includes(`"value":"${name}"`))
      : [];
  }
});

test('the introspection of a playground costs less than a half of what is accepted', () => {
  expect(size(getIntrospectionQuery()).cost).toBeLessThan(QUERY_LIMITS.cost / 2);
});

test('every query of the README uses less than a half of each limit', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const queries = [...readme.matchAll(/"query": ?("(?:[^"\\]|\\.)*")/g)].map(([, text = '']) =>
    JSON.parse(text),
  );
  expect(queries.length).toBeGreaterThanOrEqual(3);
  for (const query of queries) {
    parse(query, { maxTokens: MAX_DOCUMENT_TOKENS / 2 });
    const { depth, cost } = size(query);
    const shares = [depth / QUERY_LIMITS.depth, cost / QUERY_LIMITS.cost];
    expect(Math.max(...shares)).toBeLessThanOrEqual(0.5);
  }
});
