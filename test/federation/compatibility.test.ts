import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { fileURLToPath } from 'node:url';
import { composeServices } from '@apollo/composition';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type DocumentNode, parse, stripIgnoredCharacters, visit } from 'graphql';
import { createSubgraph } from '../../src/graphql/schema.ts';
import { GATEWAY_SECRET, startTestServer, type TestServer } from '../http/support/test-server.ts';
import { addressOf } from './support/examples.ts';
import { type Gateway, startGateway } from './support/gateway.ts';
import { serve } from './support/platform.ts';

const OLD = {
  sku: 'apollo-federation-v1',
  package: '@apollo/federation-v1',
  reason: 'Migrate to Federation V2',
};
const PRODUCTS = [
  { id: 'apollo-federation', sku: 'federation', package: '@apollo/federation', variation: { id: 'OSS' } },
  { id: 'apollo-studio', sku: 'studio', package: '', variation: { id: 'platform' } },
];
const STUDIES = [{ study: { caseNumber: '1234', description: 'Federation Study' } }];
const EMAIL = 'support@apollographql.com';

type Fields = Readonly<Record<string, unknown>>;

const isOld = (reference: Fields) => reference.sku === OLD.sku && reference.package === OLD.package;
const author = () => ({ email: EMAIL, name: 'Jane Smith', totalProductsCreated: 1337 });

/** What the suite demands that the products answer. */
const resolvers = {
  Query: {
    product: (_root: unknown, { id }: Fields) => PRODUCTS.find((product) => product.id === id),
    deprecatedProduct: (_root: unknown, reference: Fields) => (isOld(reference) ? OLD : null),
  },
  Product: {
    dimensions: () => ({ size: 'small', weight: 1, unit: 'kg' }),
    createdBy: author,
    research: () => STUDIES,
    __resolveReference: ({ id, sku, package: name, variation }: Fields) =>
      PRODUCTS.find((product) =>
        id !== undefined
          ? product.id === id
          : product.sku === sku &&
            (name !== undefined
              ? product.package === name
              : product.variation.id === (variation as { id: string }).id),
      ),
  },
  DeprecatedProduct: {
    createdBy: author,
    __resolveReference: (reference: Fields) => (isOld(reference) ? OLD : null),
  },
  ProductResearch: {
    __resolveReference: ({ study }: Fields) =>
      STUDIES.find((each) => each.study.caseNumber === (study as { caseNumber: string }).caseNumber),
  },
  User: {
    averageProductsCreatedPerYear: ({ totalProductsCreated, yearsOfEmployment }: Fields) =>
      Math.round(Number(totalProductsCreated) / Number(yearsOfEmployment)),
    __resolveReference: (reference: Fields) => ({ ...author(), ...reference }),
  },
  Inventory: {
    deprecatedProducts: () => [OLD],
    __resolveReference: (reference: Fields) => reference,
  },
};

const read = (name: string) =>
  parse(readFileSync(new URL(`./products/${name}.graphql`, import.meta.url), 'utf8'));

let server: TestServer;
let others: Server[];
let keys: Server;
let gateway: Gateway;
let sdl: string;

/** The project's own server with the suite's schema, and a gateway in front of it and of the suite's other subgraphs. */
beforeAll(async () => {
  const typeDefs = read('products');
  const schema = createSubgraph(typeDefs, resolvers, {
    publicCoordinates: [...typesOf(typeDefs), 'Query', '_Service'],
    gatewayProofRequired: false,
  });
  server = await startTestServer({ schema });
  const users = buildSubgraphSchema([
    {
      typeDefs: read('users'),
      resolvers: {
        User: {
          __resolveReference: ({ email }: Fields) => ({
            email,
            name: 'Apollo Studio Support',
            totalProductsCreated: 10,
            yearsOfEmployment: 10,
          }),
        },
      },
    },
  ]);
  const inventory = buildSubgraphSchema([
    {
      typeDefs: read('inventory'),
      resolvers: {
        Query: { inventory: (_root: unknown, { id }: Fields) => ({ __typename: 'OpenSourceInventory', id }) },
        Inventory: { __resolveType: () => 'OpenSourceInventory' },
        OpenSourceInventory: { __resolveReference: (reference: object) => reference },
      },
    },
  ]);
  others = await Promise.all([users, inventory].map((each) => serve(each, [])));
  sdl = (await ask('{ _service { sdl } }')).data._service.sdl;
  const [usersAt = '', inventoryAt = ''] = others.map(addressOf);
  const { errors, supergraphSdl = '' } = composeServices([
    { name: 'state-archive', url: `${server.url}/graphql`, typeDefs: parse(sdl) },
    { name: 'users', url: usersAt, typeDefs: read('users') },
    { name: 'inventory', url: inventoryAt, typeDefs: read('inventory') },
  ]);
  expect(errors).toBeUndefined();
  keys = createServer((_request, response) => response.end('{"keys":[]}'));
  await once(keys.listen(0, '127.0.0.1'), 'listening');
  gateway = await startGateway('hive.mjs', supergraphSdl, { GATEWAY_SECRET, AUTH_JWKS_URL: addressOf(keys) });
});
afterAll(async () => {
  await gateway.stop();
  for (const each of [...others, keys]) {
    each.closeAllConnections();
    each.close();
  }
  await server.stop();
});

function typesOf(document: DocumentNode): string[] {
  const names: string[] = [];
  visit(document, {
    enter: (node) => {
      if (/^ObjectType(Definition|Extension)$/.test(node.kind) && 'name' in node && node.name)
        names.push(node.name.value);
    },
  });
  return names;
}

async function ask(
  query: string,
  variables: object = {},
  headers: Fields = {},
  url = `${server.url}/graphql`,
  // biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
): Promise<any> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers } as Record<string, string>,
    body: JSON.stringify({ query, variables }),
  });
  return response.json();
}

const throughGateway = (query: string) => ask(query, {}, {}, gateway.url);

async function entity(type: string, fields: string, reference: Fields): Promise<unknown> {
  const { data, errors } = await ask(
    `query ($representations: [_Any!]!) { _entities(representations: $representations) { ... on ${type} { ${fields} } } }`,
    { representations: [{ __typename: type, ...reference }] },
  );
  expect(errors).toBeUndefined();
  return data._entities[0];
}

const schemaText = () => stripIgnoredCharacters(sdl);

/** The fifteen assertions, under the names that Apollo's table of compatible subgraphs has for them. */
const ASSERTIONS: Readonly<Record<string, () => Promise<void>>> = {
  async _service() {
    expect(typesOf(parse(sdl))).toEqual(expect.arrayContaining(typesOf(read('products'))));
  },
  async '@key (single)'() {
    expect(schemaText()).toMatch(/type User(@extends)?@key\(fields:"email"/);
    expect(await entity('User', 'email name', { email: EMAIL })).toEqual({
      email: EMAIL,
      name: 'Jane Smith',
    });
  },
  async '@key (multi)'() {
    expect(schemaText()).toMatch(/type DeprecatedProduct@key\(fields:"sku package"/);
    const { sku, package: name } = OLD;
    expect(await entity('DeprecatedProduct', 'sku package reason', { sku, package: name })).toEqual(OLD);
  },
  async '@key (composite)'() {
    expect(schemaText()).toMatch(/type ProductResearch@key\(fields:"study { caseNumber }"/);
    expect(
      await entity('ProductResearch', 'study { caseNumber description }', { study: { caseNumber: '1234' } }),
    ).toEqual(STUDIES[0]);
  },
  async 'repeatable @key'() {
    for (const fields of ['id', 'sku package', 'sku variation { id }'])
      expect(schemaText()).toMatch(new RegExp(`type Product@[^{]*.*@key\\(fields:"${fields}"`));
    for (const [reference, id] of [
      [{ id: 'apollo-federation' }, 'apollo-federation'],
      [{ sku: 'federation', package: '@apollo/federation' }, 'apollo-federation'],
      [{ sku: 'studio', variation: { id: 'platform' } }, 'apollo-studio'],
    ] as const)
      expect(await entity('Product', 'id', reference)).toEqual({ id });
  },
  async '@requires'() {
    expect(schemaText()).toContain('@requires(fields:"totalProductsCreated yearsOfEmployment")');
    const { data, errors } = await throughGateway(
      '{ product(id: "apollo-federation") { createdBy { averageProductsCreatedPerYear email } } }',
    );
    expect(errors).toBeUndefined();
    expect(data.product.createdBy).toEqual({
      averageProductsCreatedPerYear: expect.any(Number),
      email: EMAIL,
    });
  },
  async '@provides'() {
    expect(schemaText()).toContain('createdBy:User@provides(fields:"totalProductsCreated")');
    const { data } = await ask(
      '{ product(id: "apollo-federation") { createdBy { email totalProductsCreated } } }',
    );
    expect(data.product.createdBy).toEqual({ email: EMAIL, totalProductsCreated: 1337 });
  },
  async 'federated tracing'() {
    const trace = { 'apollo-federation-include-trace': 'ftv1' };
    const proven = await ask('{ __typename }', {}, { ...trace, 'x-gateway-secret': GATEWAY_SECRET });
    expect(proven).toEqual({ data: { __typename: 'Query' }, extensions: { ftv1: expect.any(String) } });
  },
  async '@link'() {
    const links = [...schemaText().matchAll(/@link\(url:"([^"]+)"/g)].map(([, url]) => url);
    expect(links.filter((url) => url?.startsWith('https://specs.apollo.dev/federation/'))).toEqual([
      'https://specs.apollo.dev/federation/v2.3',
    ]);
  },
  async '@shareable'() {
    expect(schemaText()).toContain('type ProductDimension@shareable');
    const { data } = await throughGateway(
      '{ product(id: "apollo-federation") { dimensions { size weight } } }',
    );
    expect(data.product.dimensions).toEqual({ size: 'small', weight: 1 });
  },
  async '@tag'() {
    expect(schemaText()).toContain('@tag(name:"internal")');
    expect(schemaText()).not.toContain('@federation__tag');
  },
  async '@override'() {
    expect(schemaText()).toContain('@override(from:"users")');
    const { data } = await throughGateway('{ product(id: "apollo-federation") { createdBy { name } } }');
    expect(data.product.createdBy).toEqual({ name: 'Jane Smith' });
  },
  async '@inaccessible'() {
    expect(schemaText()).toContain('unit:String@inaccessible');
    const query = '{ product(id: "apollo-federation") { dimensions { unit } } }';
    expect((await ask(query)).data.product.dimensions).toEqual({ unit: 'kg' });
    expect((await throughGateway(query)).data?.product ?? null).toBeNull();
  },
  async '@composeDirective'() {
    expect(schemaText()).toContain('@composeDirective(name:"@custom")');
    expect(schemaText()).toContain('directive@custom on OBJECT');
    expect(schemaText()).toMatch(/type Product@custom|type Product[^{]*@custom/);
  },
  async '@interfaceObject'() {
    expect(schemaText()).toMatch(/type Inventory[^{]*@interfaceObject/);
    expect(schemaText()).toMatch(/type Inventory[^{]*@key\(fields:"id"/);
    const { data, errors } = await throughGateway(
      '{ inventory(id: "apollo-oss") { deprecatedProducts { sku reason } } }',
    );
    expect(errors).toBeUndefined();
    expect(data.inventory.deprecatedProducts).toEqual([{ sku: OLD.sku, reason: OLD.reason }]);
  },
};

describe('as Apollo’s subgraph compatibility suite asks', () => {
  test.each(Object.entries(ASSERTIONS))('%s', (_name, assertion) => assertion());

  test('the README shows them all', () => {
    const readme = readFileSync(fileURLToPath(new URL('../../README.md', import.meta.url)), 'utf8');
    for (const name of Object.keys(ASSERTIONS))
      expect(readme).toMatch(new RegExp(`\\| \`${name.replace(/[()]/g, '\\$&')}\`[^|]*\\| ✓`));
    expect(Object.keys(ASSERTIONS)).toHaveLength(15);
  });
});

test('nobody but the gateway gets a trace', async () => {
  for (const headers of [{}, { 'x-gateway-secret': 'another' }]) {
    const answer = await ask('{ __typename }', {}, { 'apollo-federation-include-trace': 'ftv1', ...headers });
    expect(answer).toEqual({ data: { __typename: 'Query' } });
  }
});
