import type { ApolloServerPlugin } from '@apollo/server';
import {
  type GraphQLError as CoercionError,
  coerceInputValue,
  GraphQLError,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInputType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
  type VariableDefinitionNode,
} from 'graphql';

const MAX_PROBLEMS = 5;

/**
 * Checks variables before graphql-js does, because its messages quote the values it objects to, and a value may be a
 * state full of secrets. These name the variable, the place in it and what is expected there.
 */
export function variableCheckPlugin(): ApolloServerPlugin {
  return {
    async requestDidStart() {
      return {
        async didResolveOperation({ schema, operation, request }) {
          if (operation === undefined) return;
          const problems = variableProblems(schema, operation, request.variables ?? {});
          if (problems.length === 0) return;
          throw new GraphQLError(problems.join(' '), {
            extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } },
          });
        },
      };
    },
  };
}

/** What is wrong with an operation's variables, in words without values; at most five sentences. */
export function variableProblems(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): readonly string[] {
  return (operation.variableDefinitions ?? [])
    .flatMap((definition) => problemsOf(schema, definition, variables))
    .slice(0, MAX_PROBLEMS);
}

function problemsOf(
  schema: GraphQLSchema,
  definition: VariableDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): readonly string[] {
  const name = definition.variable.name.value;
  const type = typeFromAST(schema, definition.type);
  // Types that are not input types are left to graphql-js, which names the type alone.
  if (type === undefined || !isInputType(type)) return [];
  if (!Object.hasOwn(variables, name) || variables[name] === undefined) {
    if (!isNonNullType(type) || definition.defaultValue) return [];
    return [`Variable "$${name}" of required type "${type}" was not provided.`];
  }
  const problems: string[] = [];
  const enough = new Error('enough problems');
  try {
    coerceInputValue(variables[name], type, (path, _value, error) => {
      if (problems.length === MAX_PROBLEMS) throw enough;
      problems.push(
        `Variable "$${name}" is invalid at "${[name, ...path].join('.')}": ${expectation(type, path, error)}`,
      );
    });
  } catch (error) {
    if (error !== enough) throw error;
  }
  return problems;
}

/** Messages of coerceInputValue about the shape of an input; the others quote values. */
const SHAPE_MESSAGES = [
  /^Expected non-nullable type "[^"]+" not to be null/,
  /^Expected type "\w+" to be an object/,
  /^Field "\w+" of required type "[^"]+" was not provided/,
  /^Field "\w{1,64}" is not defined by type "\w+"/,
];

function expectation(
  root: GraphQLInputType,
  path: readonly (string | number)[],
  error: CoercionError,
): string {
  if (SHAPE_MESSAGES.some((shape) => shape.test(error.message))) return error.message;
  const type = typeAt(root, path);
  if (isEnumType(type)) {
    return `expected one of ${type
      .getValues()
      .map((value) => value.name)
      .join(', ')}.`;
  }
  return `expected a value of type "${type}".`;
}

function typeAt(root: GraphQLInputType, path: readonly (string | number)[]): ReturnType<typeof getNamedType> {
  let type = getNamedType(root);
  for (const key of path) {
    if (typeof key === 'number' || !isInputObjectType(type)) continue;
    const field = type.getFields()[key];
    if (field) type = getNamedType(field.type);
  }
  return type;
}
