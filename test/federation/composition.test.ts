import { readFileSync, writeFileSync } from 'node:fs';
import { type CompositionResult, composeServices } from '@apollo/composition';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { buildSchema, type DocumentNode, type GraphQLObjectType, graphql, parse, visit } from 'graphql';
import { createSchema } from '../../src/graphql/schema.ts';
import { composeExample } from './support/examples.ts';

const document = parse(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'));

/** What the service gives a gateway that asks for its SDL. */
let subgraph: DocumentNode;

beforeAll(async () => {
  const { data } = await graphql({
    schema: createSchema({ gatewayProofRequired: false }),
    source: '{ _service { sdl } }',
    contextValue: { principal: null },
  });
  subgraph = parse((data as { _service: { sdl: string } })._service.sdl);
});

const LINK = `extend schema @link(
  url: "https://specs.apollo.dev/federation/v2.9"
  import: ["@key", "@external", "@requires", "@shareable"]
)`;

/** A subgraph whose own entity `State` is, as a platform that lists its states has one. */
const states = `${LINK}
  type Query { states: [State!]! }
  type State @key(fields: "id") { id: ID! name: String! }`;

/** A subgraph that adds a field of its own to the archive view of a state, which it knows by the name people use. */
const costs = `${LINK}
  type StateArchive @key(fields: "workspaceId environmentId name") {
    workspaceId: ID! @external
    environmentId: ID! @external
    name: String! @external
    monthlyCost: Int!
  }`;

/** A subgraph that only points at archive views and operations by id, and pages with the shared \`PageInfo\`. */
const audits = `${LINK}
  type Query { audits: AuditConnection! }
  type AuditConnection { nodes: [Audit!]! pageInfo: PageInfo! }
  type Audit { archive: StateArchive operation: StateArchiveOperation }
  type StateArchive @key(fields: "id", resolvable: false) { id: ID! }
  type StateArchiveOperation @key(fields: "id", resolvable: false) { id: ID! }
  type PageInfo @shareable {
    hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String
  }`;

function compose(others: Readonly<Record<string, string>> = {}): CompositionResult {
  const service = (name: string, typeDefs: DocumentNode) => ({ name, typeDefs, url: `http://${name}.test` });
  return composeServices([
    service('archives', subgraph),
    ...Object.entries(others).map(([name, sdl]) => service(name, parse(sdl))),
  ]);
}

/** The supergraph, and the names of the fields of any of its object types. */
function composed(others?: Readonly<Record<string, string>>): {
  sdl: string;
  types: (name: string) => string[];
} {
  const { errors = [], supergraphSdl = '' } = compose(others);
  expect(errors.map(({ message }) => message)).toEqual([]);
  const types = buildSchema(supergraphSdl, { assumeValidSDL: true }).getTypeMap();
  const fields = (name: string) => Object.keys((types[name] as GraphQLObjectType).getFields());
  return { sdl: supergraphSdl, types: fields };
}

describe('the SDL a gateway is given', () => {
  test('composes by itself, with every operation of the schema', () => {
    const { types } = composed();
    for (const root of ['Query', 'Mutation']) {
      const written = document.definitions.find(
        (node) => node.kind === 'ObjectTypeDefinition' && node.name.value === root,
      );
      const fields = written && 'fields' in written ? (written.fields ?? []) : [];
      expect(types(root)).toEqual(fields.map(({ name }) => name.value));
    }
  });

  test('gives `archive` to a state that another subgraph owns', () => {
    expect(composed({ states }).types('State')).toEqual(['id', 'archive', 'name']);
  });

  test('lets another subgraph extend the archive view by reference, by either key', () => {
    const { types } = composed({ states, costs, audits });
    expect(types('StateArchive')).toContain('monthlyCost');
    expect(types('Audit')).toEqual(['archive', 'operation']);
  });

  test('carries what each type demands into the supergraph, where the router reads it', () => {
    const { sdl } = composed({ states, costs, audits });
    expect(sdl).toMatch(/^type StateArchive\b[^{]*@requiresScopes\(scopes: \[\["state.read"\]\]\)/m);
    expect(sdl).toMatch(/^ {2}rawState: String .*@requiresScopes\(scopes: \[\["state.raw.read"\]\]\)/m);
    expect(sdl).toMatch(/^ {2}exportStateArchive[\s\S]*?@requiresScopes\(scopes: \[\["state.export"\]\]\)/m);
  });

  test('marks what a public contract leaves out', () => {
    const { sdl } = composed();
    for (const field of ['rawState', 'downloadUrl']) {
      expect(sdl).toMatch(new RegExp(`^ {2}${field}: String .*@tag\\(name: "internal"\\)`, 'm'));
    }
  });

  test('uses directives under their canonical names alone', () => {
    const used = new Set<string>();
    visit(subgraph, { Directive: ({ name }) => void used.add(name.value) });
    expect([...used].sort()).toEqual([
      'authenticated',
      'cost',
      'key',
      'link',
      'listSize',
      'requiresScopes',
      'shareable',
      'specifiedBy',
      'tag',
    ]);
    const [link] = subgraph.definitions;
    expect(JSON.stringify(link)).toContain('https://specs.apollo.dev/federation/v2.9');
    // An import under another name is an object, { name, as }.
    expect(JSON.stringify(link)).not.toContain('ObjectValue');
  });
});

describe('schema.graphql', () => {
  test('describes every type, field, argument, input field and enum value', () => {
    const undescribed: string[] = [];
    const path: string[] = [];
    visit(document, {
      enter(node) {
        if (!('name' in node) || !/Definition$/.test(node.kind) || node.name === undefined) return;
        path.push(node.name.value);
        // Root types are nobody's: every subgraph has a part in them.
        const isRoot = path.length === 1 && ['Query', 'Mutation'].includes(node.name.value);
        if ('description' in node && !node.description?.value.trim() && !isRoot)
          undescribed.push(path.join('.'));
      },
      leave(node) {
        if ('name' in node && /Definition$/.test(node.kind)) path.pop();
      },
    });
    expect(undescribed).toEqual([]);
    expect(path).toEqual([]);
  });

  test('says of every scalar where it is specified', () => {
    const scalars = document.definitions.filter((node) => node.kind === 'ScalarTypeDefinition');
    expect(scalars.map(({ name }) => name.value)).toEqual(['BigInt', 'DateTime', 'Sha256', 'Upload']);
    for (const { directives = [] } of scalars) {
      expect(JSON.stringify(directives)).toMatch(/"specifiedBy".*"https:\/\//);
    }
  });
});

describe('the example of a platform', () => {
  const file = new URL('../../examples/gateways/supergraph.graphql', import.meta.url);

  test('composes without an error or a hint, with scopes and without', () => {
    for (const scopes of [true, false]) {
      const { supergraph, hints } = composeExample({ scopes });
      expect(hints.map(({ message }) => message)).toEqual([]);
      expect(supergraph.includes('@requiresScopes')).toBe(scopes);
      expect(supergraph.includes('@authenticated')).toBe(scopes);
    }
  });

  test('has a supergraph for Apollo Router to start with (UPDATE_DOCS=1 rewrites it)', () => {
    const { supergraph } = composeExample();
    if (process.env.UPDATE_DOCS === '1') writeFileSync(file, supergraph);
    expect(readFileSync(file, 'utf8')).toBe(supergraph);
  });
});
