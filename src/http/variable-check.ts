import {
  coerceInputValue,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isInputType,
  isListType,
  isRequiredInputField,
  type OperationDefinitionNode,
  typeFromAST,
  type VariableDefinitionNode,
} from 'graphql';

const MAX_PROBLEMS = 5;

/**
 * What is wrong with an operation's variables, in at most five sentences. They name the variable, the place in it and what is
 * expected there, and no value as graphql-js does: it may be a state full of secrets.
 */
export function variableProblems(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): readonly string[] {
  const problems = (operation.variableDefinitions ?? []).flatMap((definition) =>
    problemsOf(schema, definition, variables),
  );
  return [...new Set(problems)].slice(0, MAX_PROBLEMS);
}

function problemsOf(
  schema: GraphQLSchema,
  { variable, type: typeNode, defaultValue }: VariableDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
): readonly string[] {
  const name = variable.name.value;
  const type = typeFromAST(schema, typeNode);
  if (!isInputType(type)) throw new Error('A document passed validation with a variable of no input type.');
  const isGiven = Object.hasOwn(variables, name);
  if (!isGiven && defaultValue) return [];
  const problems: string[] = [];
  const enough = new Error('enough problems');
  try {
    coerceInputValue(isGiven ? variables[name] : null, type, (path, value) => {
      if (problems.length === MAX_PROBLEMS) throw enough;
      problems.push(
        `Variable "$${name}" is invalid at "${[name, ...path].join('.')}": ${expectation(typeAt(type, path), value)}.`,
      );
    });
  } catch (error) {
    if (error !== enough) throw error;
  }
  return problems;
}

function typeAt(root: GraphQLInputType, path: readonly (string | number)[]): GraphQLInputType {
  let type = root;
  for (const key of path) {
    const named = getNamedType(type);
    const list = getNullableType(type);
    if (typeof key === 'number') type = isListType(list) ? list.ofType : type;
    else if (isInputObjectType(named)) type = named.getFields()[key]?.type ?? type;
  }
  return type;
}

function expectation(type: GraphQLInputType, value: unknown): string {
  const named = getNamedType(type);
  if (isInputObjectType(named) && typeof value === 'object' && value !== null) {
    return `"${named}" ${fieldProblems(named, value).join(' and ')}`;
  }
  if (!isEnumType(named)) return `expected a value of type "${type}"`;
  const names = named.getValues().map(({ name }) => name);
  return `expected one of ${names.join(', ')}`;
}

function fieldProblems(type: GraphQLInputObjectType, value: object): readonly string[] {
  const fields = type.getFields();
  const given = new Set(Object.keys(value));
  const missing = Object.values(fields).filter(
    (field) => isRequiredInputField(field) && !given.has(field.name),
  );
  const unknown = [...given].filter((name) => !Object.hasOwn(fields, name)).slice(0, MAX_PROBLEMS);
  return [
    ...missing.map(({ name }) => `needs the field "${name}"`),
    // What is no name of a field may be a part of a value.
    ...unknown.map((name) => (/^\w{1,64}$/.test(name) ? `has no field "${name}"` : 'has no such field')),
  ];
}
