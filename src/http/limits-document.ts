import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql';

/** The fragments of a document, by name. */
export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/** The values a request gives its variables, as they came. */
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
export function countRepresentations(
  operation: OperationDefinitionNode,
  fragments: Fragments,
  variables: Variables,
): number {
  let count = 0;
  for (const field of rootFieldsOf(operation.selectionSet, fragments)) {
    if (field.name.value === '_entities')
      count += lengthOfList(argumentOf(field, 'representations'), variables);
  }
  return count;
}

/** The length of the list that an argument is given as; 0 when it is given none. */
export function lengthOfList(value: ValueNode | undefined, variables: Variables): number {
  if (value === undefined || value.kind === Kind.NULL) return 0;
  if (value.kind === Kind.LIST) return value.values.length;
  if (value.kind !== Kind.VARIABLE) return 1;
  const given = variables[value.name.value];
  if (Array.isArray(given)) return given.length;
  // A single value stands for a list of it (GraphQL specification, input coercion of lists).
  return given === undefined || given === null ? 0 : 1;
}

/** The value of a field's argument as the document writes it. */
export function argumentOf(field: FieldNode, name: string): ValueNode | undefined {
  return field.arguments?.find((argument) => argument.name.value === name)?.value;
}

function* rootFieldsOf({ selections }: SelectionSetNode, fragments: Fragments): Generator<FieldNode> {
  for (const selection of selections) {
    if (selection.kind === Kind.FIELD) yield selection;
    else if (selection.kind === Kind.INLINE_FRAGMENT) yield* rootFieldsOf(selection.selectionSet, fragments);
    else yield* rootFieldsOf(fragmentOf(selection.name.value, fragments).selectionSet, fragments);
  }
}
