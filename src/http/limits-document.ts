import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLSchema,
  getArgumentValues,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

/** The fragments of a document, by name. */
export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/**
 * The values of an operation's variables as it runs with them: coerced to their types, defaults included
 * (`getVariableValues` of graphql-js). What a request sends as variables is something else.
 */
export type Variables = Readonly<Record<string, unknown>>;

/** How large an operation is, every fragment counted as often as it is spread. */
export interface OperationSize {
  /** How deep fields nest; those of introspection count as one level. */
  readonly depth: number;
  readonly selections: number;
  readonly aliases: number;
  readonly directives: number;
  readonly rootFields: number;
}

export function fragmentsOf(document: DocumentNode): Fragments {
  return new Map(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
}

/**
 * Measures a valid operation, in which fragments do not spread themselves. Each fragment is looked at once, so that
 * fragments that spread each other twice over cost nothing to count.
 */
export function measureOperation(operation: OperationDefinitionNode, fragments: Fragments): OperationSize {
  const known = new Map<string, OperationSize>();
  const size = measure(operation.selectionSet);
  return { ...size, directives: size.directives + (operation.directives?.length ?? 0) };

  function measure({ selections }: SelectionSetNode): OperationSize {
    let sum: OperationSize = { depth: 0, selections: 0, aliases: 0, directives: 0, rootFields: 0 };
    for (const selection of selections) {
      const below = belowOf(selection);
      const isField = selection.kind === Kind.FIELD;
      const isNested = isField && !selection.name.value.startsWith('__');
      sum = {
        depth: Math.max(sum.depth, isField ? 1 + (isNested ? below.depth : 0) : below.depth),
        selections: sum.selections + below.selections + 1,
        aliases: sum.aliases + below.aliases + (isField && selection.alias ? 1 : 0),
        directives: sum.directives + below.directives + (selection.directives?.length ?? 0),
        rootFields: sum.rootFields + (isField ? 1 : below.rootFields),
      };
    }
    return sum;
  }

  function belowOf(selection: SelectionSetNode['selections'][number]): OperationSize {
    if (selection.kind !== Kind.FRAGMENT_SPREAD) {
      return measure(selection.selectionSet ?? { kind: Kind.SELECTION_SET, selections: [] });
    }
    const name = selection.name.value;
    const size = known.get(name) ?? measure(fragmentOf(name, fragments).selectionSet);
    known.set(name, size);
    return size;
  }
}

/** The fragment of a name that a valid document spreads. */
export function fragmentOf(name: string, fragments: Fragments): FragmentDefinitionNode {
  const fragment = fragments.get(name);
  if (fragment === undefined) throw new Error('A document passed validation with a fragment missing.');
  return fragment;
}

/** How many references an operation asks `_entities` for in all, whether they stand in it or in its variables. */
export function countAllRepresentations(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  fragments: Fragments,
  variables: Variables,
): number {
  const entities = schema.getRootType(operation.operation)?.getFields()._entities;
  if (entities === undefined) return 0;
  let count = 0;
  for (const node of rootFieldsOf(operation.selectionSet, fragments)) {
    if (node.name.value !== '_entities') continue;
    count += countRepresentations(argumentsOf(node, entities, variables) ?? {});
  }
  return count;
}

/** How many references the arguments of one `_entities` ask for. */
export function countRepresentations({ representations }: Readonly<Record<string, unknown>>): number {
  return Array.isArray(representations) ? representations.length : 0;
}

/**
 * The arguments that a field's resolver will be given, by the executor's own rules.
 *
 * @returns null when they cannot be had: the executor then answers an error without running the field.
 */
export function argumentsOf(
  node: FieldNode,
  field: GraphQLField<unknown, unknown>,
  variables: Variables,
): Readonly<Record<string, unknown>> | null {
  try {
    return getArgumentValues(field, node, variables);
  } catch (error) {
    if (error instanceof GraphQLError) return null;
    throw error;
  }
}

function* rootFieldsOf({ selections }: SelectionSetNode, fragments: Fragments): Generator<FieldNode> {
  for (const selection of selections) {
    if (selection.kind === Kind.FIELD) yield selection;
    else if (selection.kind === Kind.INLINE_FRAGMENT) yield* rootFieldsOf(selection.selectionSet, fragments);
    else yield* rootFieldsOf(fragmentOf(selection.name.value, fragments).selectionSet, fragments);
  }
}
