import {
  type DocumentNode,
  type FieldNode,
  type FragmentSpreadNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getArgumentValues,
  getDirectiveValues,
  getNamedType,
  getNullableType,
  type InlineFragmentNode,
  isAbstractType,
  isLeafType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

/** What a mutation costs before its fields, as the router counts it. */
const MUTATION_COST = 10;
/** So many selections of one object cost as much as another object. */
const SELECTIONS_PER_POINT = 50;
/** What a field of introspection costs: below `__schema` it may be answered for every name of the schema. */
const INTROSPECTION_COST = 20;

/** What `@listSize` says of a field. */
interface ListSize {
  readonly assumedSize?: number | null;
  readonly slicingArguments?: readonly string[] | null;
  readonly sizedFields?: readonly string[] | null;
}

type Field = GraphQLField<unknown, unknown>;

/** How large an operation is at most. What is written twice, or spread twice, counts twice. */
export interface OperationSize {
  /** How deep fields nest; introspection is one level, and graphql-js bounds what is below it. */
  readonly depth: number;
  /** How many references `_entities` is asked for, in the document and in variables. */
  readonly representations: number;
  /**
   * By the federation directives `@cost` and `@listSize` (Apollo Federation 2.9, demand control): an object costs 1 and a
   * scalar 0 unless `@cost` says otherwise; a list costs as many of its items as its slicing argument asks for, or as
   * `@listSize` assumes; of fragments on different types the dearest counts. Beyond that every fifty selections of an
   * object cost 1, since scalars are free and can be asked for again and again, and so does introspection.
   */
  readonly cost: number;
}

/** The size of what is selected of one object. */
interface SelectionsSize extends OperationSize {
  /** Fields, fragments and directives, without those of objects below. */
  readonly selections: number;
}

/** What a field says of the lists in its object: how long `nodes` and `edges` of a page are. */
interface Page {
  readonly lists: readonly string[];
  readonly length: number;
}

const NOTHING: SelectionsSize = { depth: 0, representations: 0, cost: 0, selections: 0 };

/**
 * Measures a valid operation in one walk, before it runs. What is selected is looked at once for each type and length it
 * may have, so that fragments that spread each other twice over cost nothing to count.
 *
 * @param variables as the operation runs with them: coerced, defaults included (`getVariableValues` of graphql-js).
 * @param entitiesAnswered how many references of `_entities` are answered; those beyond cost nothing.
 */
export function measureOperation(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Readonly<Record<string, unknown>>,
  entitiesAnswered: number,
): OperationSize {
  const fragments = new Map(
    document.definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
  const measured = new Map<SelectionSetNode, Map<string, SelectionsSize>>();
  const root = schema.getRootType(operation.operation) ?? null;
  const { depth, representations, cost } = sizeOfObject(operation.selectionSet, root, null);
  return { depth, representations, cost: cost + (operation.operation === 'mutation' ? MUTATION_COST : 0) };

  /** @param type null below introspection, where every field costs the same. */
  function sizeOfObject(set: SelectionSetNode, type: GraphQLObjectType | null, page: Page | null) {
    const size = sizeOfSelections(set, type, page);
    return { ...size, cost: size.cost + Math.floor(size.selections / SELECTIONS_PER_POINT) };
  }

  function sizeOfSelections(
    set: SelectionSetNode,
    type: GraphQLObjectType | null,
    page: Page | null,
  ): SelectionsSize {
    const sizes = measured.get(set) ?? new Map<string, SelectionsSize>();
    measured.set(set, sizes);
    const key = `${type} ${page?.length} ${page?.lists}`;
    let sum = sizes.get(key) ?? NOTHING;
    if (sizes.has(key)) return sum;
    for (const selection of set.selections) {
      const size =
        selection.kind === Kind.FIELD
          ? sizeOfField(selection, type, page)
          : sizeOfFragment(selection, type, page);
      sum = {
        depth: Math.max(sum.depth, size.depth),
        representations: sum.representations + size.representations,
        cost: sum.cost + size.cost,
        selections: sum.selections + size.selections + 1 + (selection.directives?.length ?? 0),
      };
    }
    sizes.set(key, sum);
    return sum;
  }

  function sizeOfFragment(
    selection: FragmentSpreadNode | InlineFragmentNode,
    type: GraphQLObjectType | null,
    page: Page | null,
  ): SelectionsSize {
    const fragment =
      selection.kind === Kind.FRAGMENT_SPREAD ? fragments.get(selection.name.value) : selection;
    if (fragment === undefined) throw new Error('A document passed validation with a fragment missing.');
    const condition = fragment.typeCondition && schema.getType(fragment.typeCondition.name.value);
    const applies =
      type === null ||
      condition === undefined ||
      condition === type ||
      (isAbstractType(condition) && schema.isSubType(condition, type));
    return applies ? sizeOfSelections(fragment.selectionSet, type, page) : NOTHING;
  }

  function sizeOfField(node: FieldNode, type: GraphQLObjectType | null, page: Page | null): SelectionsSize {
    const field = type?.getFields()[node.name.value];
    if (field === undefined) {
      const below = node.selectionSet ? sizeOfObject(node.selectionSet, null, null) : NOTHING;
      const isTypename = type !== null && node.name.value === '__typename';
      return { ...NOTHING, depth: 1, cost: isTypename ? 0 : INTROSPECTION_COST + below.cost };
    }
    const { weight } = directiveOf<{ weight: number }>(schema, field, 'cost') ?? {
      weight: isLeafType(getNamedType(field.type)) ? 0 : 1,
    };
    const listSize = directiveOf<ListSize>(schema, field, 'listSize');
    const given = argumentsOf(node, field);
    if (given === null) return { ...NOTHING, depth: 1, cost: weight };
    const length = lengthOf(field, given, listSize);
    const below = sizeBelow(node, getNamedType(field.type), { lists: listSize?.sizedFields ?? [], length });
    let items = 1;
    if (field.name === '_entities') items = Math.min(length, entitiesAnswered);
    else if (page?.lists.includes(field.name)) items = page.length;
    else if (isListType(getNullableType(field.type))) items = length;
    return {
      ...NOTHING,
      depth: 1 + below.depth,
      representations: field.name === '_entities' ? length : 0,
      cost: items * (weight + below.cost),
    };
  }

  function sizeBelow({ selectionSet }: FieldNode, type: GraphQLNamedType, page: Page): OperationSize {
    if (selectionSet === undefined) return NOTHING;
    const types = isAbstractType(type) ? schema.getPossibleTypes(type) : [type].filter(isObjectType);
    const sizes = types.map((each) => sizeOfObject(selectionSet, each, page));
    return {
      depth: Math.max(0, ...sizes.map(({ depth }) => depth)),
      representations: 0,
      cost: Math.max(0, ...sizes.map(({ cost }) => cost)),
    };
  }

  /** The arguments by the executor's own rules; null when it will answer an error without running the field. */
  function argumentsOf(node: FieldNode, field: Field): Readonly<Record<string, unknown>> | null {
    try {
      return getArgumentValues(field, node, variables);
    } catch (error) {
      if (error instanceof GraphQLError) return null;
      throw error;
    }
  }
}

/** The values of a directive of a field, which are as the schema defines the directive; undefined where the field has none. */
function directiveOf<Values>(schema: GraphQLSchema, { astNode }: Field, name: string): Values | undefined {
  const definition = schema.getDirective(name);
  return definition && astNode ? (getDirectiveValues(definition, astNode) as Values | undefined) : undefined;
}

/** How many references are given, or items asked for: by a slicing argument, its default included, or else as assumed. */
function lengthOf(
  { args }: Field,
  given: Readonly<Record<string, unknown>>,
  listSize: ListSize | undefined,
): number {
  if (Array.isArray(given.representations)) return given.representations.length;
  const lengths = (listSize?.slicingArguments ?? [])
    .map((name) => given[name] ?? args.find((argument) => argument.name === name)?.defaultValue)
    .filter((length): length is number => typeof length === 'number' && length > 0);
  return lengths.length > 0 ? Math.max(...lengths) : (listSize?.assumedSize ?? 1);
}
