import {
  type ConstDirectiveNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isIntrospectionType,
  isObjectType,
  valueFromASTUntyped,
} from 'graphql';
import { z } from 'zod';
import { AUTHENTICATED, allOf, type Requirement } from './requirement.ts';

/** A schema that cannot be served: its authorisation has gaps, or there are resolvers that nothing calls. The message names each. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
  /** One line for each problem, beginning with the schema coordinate it is at. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`The schema cannot be served:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

/**
 * What each field of each object type demands, by coordinate (`Type.field`), in the schema's order. It is the
 * conjunction of the directives on the field, on its type, and on the type it returns: what may not be seen is not
 * resolved either.
 *
 * @throws SchemaError when a directive cannot be understood.
 */
export function fieldRequirements(schema: GraphQLSchema): Map<string, Requirement> {
  const requirements = new Map<string, Requirement>();
  for (const type of objectTypes(schema)) {
    for (const field of Object.values(type.getFields())) {
      requirements.set(`${type.name}.${field.name}`, fieldRequirement(type, field));
    }
  }
  return requirements;
}

/** What a type demands: the directives on it and on its extensions. */
export function typeRequirement(type: GraphQLNamedType): Requirement {
  return allOf([type.astNode, ...type.extensionASTNodes].map((node) => nodeRequirement(type.name, node)));
}

/** The object types that a query can reach by name, introspection aside. */
export function objectTypes(schema: GraphQLSchema): GraphQLObjectType[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type))
    .filter((type) => !isIntrospectionType(type));
}

function fieldRequirement(type: GraphQLObjectType, field: GraphQLField<unknown, unknown>): Requirement {
  const own = nodeRequirement(`${type.name}.${field.name}`, field.astNode);
  return allOf([own, typeRequirement(type), typeRequirement(getNamedType(field.type))]);
}

interface DirectiveCarrier {
  readonly directives?: readonly ConstDirectiveNode[] | undefined;
}

function nodeRequirement(coordinate: string, node: DirectiveCarrier | null | undefined): Requirement {
  const requirements = (node?.directives ?? []).flatMap((directive) => {
    if (directive.name.value === 'authenticated') return [AUTHENTICATED];
    if (directive.name.value === 'requiresScopes') return [scopesRequirement(coordinate, directive)];
    return [];
  });
  return allOf(requirements);
}

// An empty choice could never be met, and an empty set would demand no scope: neither can have been meant.
const scopeSets = z.array(z.array(z.string().min(1)).min(1)).min(1);

function scopesRequirement(coordinate: string, directive: ConstDirectiveNode): Requirement {
  const argument = directive.arguments?.find(({ name }) => name.value === 'scopes');
  const scopes = scopeSets.safeParse(argument && valueFromASTUntyped(argument.value));
  if (!scopes.success) {
    throw new SchemaError([
      `${coordinate}: @requiresScopes needs a list of lists of scopes, none of them empty`,
    ]);
  }
  return { authenticated: true, scopes: scopes.data };
}
