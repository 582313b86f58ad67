import {
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
  isInterfaceType,
  isUnionType,
} from 'graphql';
import { federationDirectiveName } from './federation-link.ts';

/** The types that `Query._entities` resolves: those with a `@key`, and those of an interface with one. */
export function entityTypes(schema: GraphQLSchema): (GraphQLObjectType | GraphQLInterfaceType)[] {
  const union = schema.getType('_Entity');
  const key = federationDirectiveName(schema, 'key');
  const interfaces = Object.values(schema.getTypeMap())
    .filter((type) => isInterfaceType(type))
    .filter((type) =>
      [type.astNode, ...type.extensionASTNodes].some((node) =>
        node?.directives?.some((directive) => directive.name.value === key),
      ),
    );
  return [...(isUnionType(union) ? union.getTypes() : []), ...interfaces];
}
