import { type GraphQLObjectType, type GraphQLSchema, isUnionType } from 'graphql';

/** The types with a `@key`, which `Query._entities` resolves. */
export function entityTypes(schema: GraphQLSchema): readonly GraphQLObjectType[] {
  const union = schema.getType('_Entity');
  return isUnionType(union) ? union.getTypes() : [];
}
