import { type GraphQLNamedType, type GraphQLSchema, isObjectType, isScalarType } from 'graphql';
import { entityTypes, SchemaError } from './field-requirements.ts';

/**
 * Checks that every resolver has its place in the schema. `buildSubgraphSchema` ignores those that have none, so a
 * misspelt one leaves its field to the default resolver in silence.
 *
 * @throws SchemaError naming every resolver of an unknown type or field.
 */
export function assertResolversMatchSchema(
  schema: GraphQLSchema,
  resolvers: Readonly<Record<string, object>>,
): void {
  const entities = new Set(entityTypes(schema).map((type) => type.name));
  const strays = Object.entries(resolvers).flatMap(([typeName, typeResolvers]) => {
    const type = schema.getType(typeName);
    if (type === undefined) return [typeName];
    if (isScalarType(type)) return [];
    return Object.keys(typeResolvers)
      .filter((key) => !hasPlace(type, key, entities.has(typeName)))
      .map((key) => `${typeName}.${key}`);
  });
  if (strays.length > 0) {
    throw new SchemaError(
      strays.map((coordinate) => `${coordinate}: a resolver without a place in the schema`),
    );
  }
}

function hasPlace(type: GraphQLNamedType, key: string, isEntity: boolean): boolean {
  if (key === '__resolveReference') return isEntity;
  return isObjectType(type) && Object.hasOwn(type.getFields(), key);
}
