import { buildSubgraphSchema } from '@apollo/subgraph';
import { describe, expect, test } from '@jest/globals';
import { GraphQLScalarType, parse } from 'graphql';
import { assertResolversMatchSchema } from '../../src/auth/resolver-map.ts';

const schema = buildSubgraphSchema(
  parse(`
    extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key"])
    type Query { a: A }
    enum E { ONE }
    scalar S
    type A @key(fields: "id") { id: ID! }
    type B { id: ID! }
  `),
);
const resolve = () => null;

describe('a resolver map', () => {
  test('fits when every resolver has its place', () => {
    const resolvers = {
      Query: { a: resolve },
      A: { id: resolve, __resolveReference: resolve },
      S: new GraphQLScalarType({ name: 'S' }),
    };
    expect(() => assertResolversMatchSchema(schema, resolvers)).not.toThrow();
  });

  test('is refused, naming every resolver that nothing calls', () => {
    const resolvers = {
      Querry: { a: resolve },
      Query: { a: resolve, b: resolve, constructor: resolve },
      B: { __resolveReference: resolve },
      E: { ONE: 1 },
    };
    const coordinates = ['Querry', 'Query.b', 'Query.constructor', 'B.__resolveReference', 'E.ONE'];
    expect(() => assertResolversMatchSchema(schema, resolvers)).toThrow(
      expect.objectContaining({
        problems: coordinates.map((each) => `${each}: a resolver without a place in the schema`),
      }),
    );
  });
});
