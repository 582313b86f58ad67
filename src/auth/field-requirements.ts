import {
  type ConstDirectiveNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isIntrospectionType,
  isObjectType,
  isUnionType,
  valueFromASTUntyped,
} from 'graphql';
import { z } from 'zod';

/**
 * What a caller must have to reach something: all scopes of any one of these sets. An empty set, as of `@authenticated`, is met
 * by every verified credential, whatever its scopes; null demands nothing of anyone.
 */
export type Requirement = readonly (readonly string[])[] | null;

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
  return new Map(
    objectTypes(schema).flatMap((type) =>
      Object.values(type.getFields()).map((field) => [
        `${type.name}.${field.name}`,
        fieldRequirement(type, field),
      ]),
    ),
  );
}

/** What a type demands: the directives on it and on its extensions. */
export function typeRequirement(type: GraphQLNamedType): Requirement {
  return allOf(
    [type.astNode, ...type.extensionASTNodes].map((node) =>
      directivesRequirement(type.name, node?.directives),
    ),
  );
}

/** The object types that a query can reach by name, introspection aside. */
export function objectTypes(schema: GraphQLSchema): GraphQLObjectType[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type))
    .filter((type) => !isIntrospectionType(type));
}

/** The types with a `@key`, which `Query._entities` resolves. */
export function entityTypes(schema: GraphQLSchema): readonly GraphQLObjectType[] {
  const union = schema.getType('_Entity');
  return isUnionType(union) ? union.getTypes() : [];
}

function fieldRequirement(type: GraphQLObjectType, field: GraphQLField<unknown, unknown>): Requirement {
  const own = directivesRequirement(`${type.name}.${field.name}`, field.astNode?.directives);
  return allOf([own, typeRequirement(type), typeRequirement(getNamedType(field.type))]);
}

function directivesRequirement(
  coordinate: string,
  directives: readonly ConstDirectiveNode[] = [],
): Requirement {
  return allOf(
    directives.map((directive) => {
      if (directive.name.value === 'authenticated') return [[]];
      return directive.name.value === 'requiresScopes' ? scopeSetsOf(coordinate, directive) : null;
    }),
  );
}

// An empty choice could never be met, and an empty set would demand no scope: neither can have been meant.
const scopeSets = z.array(z.array(z.string().min(1)).min(1)).min(1);

function scopeSetsOf(coordinate: string, directive: ConstDirectiveNode): Requirement {
  const argument = directive.arguments?.find(({ name }) => name.value === 'scopes');
  const scopes = scopeSets.safeParse(argument && valueFromASTUntyped(argument.value));
  if (scopes.success) return scopes.data;
  throw new SchemaError([
    `${coordinate}: @requiresScopes needs a list of lists of scopes, none of them empty`,
  ]);
}

/** Demands everything that each of these demands, in the shortest form. */
function allOf(requirements: readonly Requirement[]): Requirement {
  return requirements.reduce((left, right) => {
    if (left === null || right === null) return left ?? right;
    return withoutSupersets(left.flatMap((one) => right.map((other) => [...new Set([...one, ...other])])));
  }, null);
}

/** A set that holds all of another adds nothing to a choice between the two. */
function withoutSupersets(sets: readonly (readonly string[])[]): Requirement {
  return sets.filter((set, position) => {
    return !sets.some((other, otherPosition) => {
      if (otherPosition === position || !other.every((scope) => set.includes(scope))) return false;
      return other.length < set.length || otherPosition < position;
    });
  });
}
