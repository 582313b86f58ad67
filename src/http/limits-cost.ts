import {
  type FieldNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getDirectiveValues,
  getNamedType,
  getNullableType,
  isAbstractType,
  isLeafType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { z } from 'zod';
import { federationDirectiveName } from '../auth/federation-link.ts';
import {
  argumentsOf,
  countRepresentations,
  type Fragments,
  fragmentOf,
  type Variables,
} from './limits-document.ts';

/** What a mutation costs before its fields, as the router counts it. */
const MUTATION_COST = 10;

const costValues = z.object({ weight: z.number() });
const listSizeValues = z.object({
  assumedSize: z.number().nullish(),
  slicingArguments: z.array(z.string()).nullish(),
  sizedFields: z.array(z.string()).nullish(),
});
type ListSize = z.infer<typeof listSizeValues>;

/**
 * What a valid operation costs at most, before it runs, by the federation directives `@cost` and `@listSize` (Apollo
 * Federation 2.9, demand control): an object costs 1 and a scalar 0 unless `@cost` says otherwise; a list costs as many
 * of its items as its slicing argument asks for, or as `@listSize` assumes. What is written twice is counted twice; of
 * fragments on different types the dearest counts.
 *
 * @param entitiesAnswered how many references of `_entities` are answered; those beyond cost nothing.
 */
export function costOfOperation(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  fragments: Fragments,
  variables: Variables,
  entitiesAnswered: number,
): number {
  const directives = {
    cost: schema.getDirective(federationDirectiveName(schema, 'cost')),
    listSize: schema.getDirective(federationDirectiveName(schema, 'listSize')),
  };
  const root = schema.getRootType(operation.operation);
  const base = operation.operation === 'mutation' ? MUTATION_COST : 0;
  return root ? base + costOfSelections(operation.selectionSet, root, new Map()) : base;

  /** @param sizes of the fields whose length the field above says: `nodes` and `edges` of a page. */
  function costOfSelections(
    { selections }: SelectionSetNode,
    type: GraphQLObjectType,
    sizes: ReadonlyMap<string, number>,
  ): number {
    let cost = 0;
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        const field = type.getFields()[selection.name.value];
        // What is not among them is introspection.
        if (field) cost += costOfField(selection, field, sizes.get(field.name));
        continue;
      }
      const { typeCondition, selectionSet } =
        selection.kind === Kind.INLINE_FRAGMENT ? selection : fragmentOf(selection.name.value, fragments);
      if (appliesTo(typeCondition?.name.value, type)) cost += costOfSelections(selectionSet, type, sizes);
    }
    return cost;
  }

  function costOfField(
    node: FieldNode,
    field: GraphQLField<unknown, unknown>,
    sizeFromAbove: number | undefined,
  ): number {
    const weight = weightOf(field) ?? (isLeafType(getNamedType(field.type)) ? 0 : 1);
    const given = argumentsOf(node, field, variables);
    if (given === null) return weight;
    const listSize = listSizeOf(field);
    const asked = listSize === null ? undefined : askedSize(given, field, listSize);
    const sizedFields = listSize?.sizedFields ?? [];
    const below = costOfTypes(node, field, new Map(sizedFields.map((name) => [name, asked ?? 1])));
    const each = weight + below;
    if (!isListType(getNullableType(field.type))) return each;
    if (field.name === '_entities') return each * Math.min(countRepresentations(given), entitiesAnswered);
    return each * (sizeFromAbove ?? asked ?? 1);
  }

  function costOfTypes(
    { selectionSet }: FieldNode,
    field: GraphQLField<unknown, unknown>,
    sizes: ReadonlyMap<string, number>,
  ): number {
    const type = getNamedType(field.type);
    if (selectionSet === undefined) return 0;
    if (isObjectType(type)) return costOfSelections(selectionSet, type, sizes);
    if (!isAbstractType(type)) return 0;
    const costs = schema
      .getPossibleTypes(type)
      .map((possible) => costOfSelections(selectionSet, possible, sizes));
    return Math.max(0, ...costs);
  }

  function appliesTo(condition: string | undefined, type: GraphQLObjectType): boolean {
    if (condition === undefined || condition === type.name) return true;
    const named = schema.getType(condition);
    return isAbstractType(named) && schema.isSubType(named, type);
  }

  function weightOf({ astNode }: GraphQLField<unknown, unknown>): number | undefined {
    const values = directives.cost && astNode && getDirectiveValues(directives.cost, astNode);
    return values ? costValues.parse(values).weight : undefined;
  }

  function listSizeOf({ astNode }: GraphQLField<unknown, unknown>): ListSize | null {
    const values = directives.listSize && astNode && getDirectiveValues(directives.listSize, astNode);
    return values ? listSizeValues.parse(values) : null;
  }

  /** The length asked for by a slicing argument, its default included, or else the assumed one. */
  function askedSize(
    given: Readonly<Record<string, unknown>>,
    field: GraphQLField<unknown, unknown>,
    { slicingArguments, assumedSize }: ListSize,
  ): number | undefined {
    const sizes = (slicingArguments ?? [])
      .map((name) => given[name] ?? field.args.find((argument) => argument.name === name)?.defaultValue)
      .filter((size): size is number => typeof size === 'number' && size > 0);
    return sizes.length > 0 ? Math.max(...sizes) : (assumedSize ?? undefined);
  }
}
