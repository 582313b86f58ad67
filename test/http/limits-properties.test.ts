import { readFileSync } from 'node:fs';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type DocumentNode,
  execute,
  type GraphQLField,
  type GraphQLSchema,
  getDirectiveValues,
  getNamedType,
  getNullableType,
  getOperationAST,
  getVariableValues,
  isAbstractType,
  isLeafType,
  isListType,
  isObjectType,
  parse,
  validate,
} from 'graphql';
import { measureOperation } from '../../src/http/operation-size.ts';
import { choices } from '../support/choices.ts';
import { buildRequest, type RequestStyle } from '../support/graphql-requests.ts';

/** What has run. */
interface Tally {
  cost: number;
  fields: number;
  depth: number;
}

const { schema, tally } = measuringSchema();

/**
 * The schema with resolvers that answer as much as they may, every list as long as it was asked for, and count what
 * they are called for, by the weights of the SDL.
 */
function measuringSchema(): { schema: GraphQLSchema; tally: Tally } {
  const typeDefs = parse(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'));
  const measured = buildSubgraphSchema([{ typeDefs, resolvers: {} }]);
  const counted: Tally = { cost: 0, fields: 0, depth: 0 };
  for (const type of Object.values(measured.getTypeMap())) {
    if (isAbstractType(type)) type.resolveType = (value) => value.typename;
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) measureField(measured, field, counted);
  }
  return { schema: measured, tally: counted };
}

function measureField(measured: GraphQLSchema, field: GraphQLField<unknown, unknown>, counted: Tally): void {
  const named = getNamedType(field.type);
  const isLeaf = isLeafType(named);
  const weight = Number(directiveOf(measured, field, 'cost')?.weight ?? (isLeaf ? 0 : 1));
  const listSize = directiveOf(measured, field, 'listSize');
  field.resolve = (parent, args, _context, info) => {
    const size = sizeOf(args);
    const isList = isListType(getNullableType(field.type));
    const length = isList && !isLeaf ? (sizeFrom(parent, field.name) ?? size ?? 1) : 1;
    counted.cost += weight * length;
    counted.fields += 1;
    let depth = 0;
    for (let { path }: { path: typeof info.path | undefined } = info; path; path = path.prev) {
      if (typeof path.key === 'string') depth += 1;
    }
    counted.depth = Math.max(counted.depth, depth);
    if (isLeaf) return isList ? [] : leafValue(named.name);
    const sizes = (listSize?.sizedFields as string[] | undefined)?.map((name) => [name, size] as const);
    const item = { sizes: new Map(sizes), typename: typenameFor(measured, field, counted) };
    return isList ? Array.from({ length }, () => item) : item;
  };

  function sizeOf(args: Readonly<Record<string, unknown>>): number | undefined {
    if (field.name === '_entities') return (args.representations as unknown[]).length;
    const [slicing] = (listSize?.slicingArguments as string[] | undefined) ?? [];
    if (slicing === undefined) return listSize?.assumedSize as number | undefined;
    const asked = args[slicing] ?? field.args.find(({ name }) => name === slicing)?.defaultValue;
    // A page of no items, or fewer, is refused.
    return typeof asked === 'number' && asked > 0 ? asked : 0;
  }
}

function sizeFrom(parent: unknown, name: string): number | undefined {
  return (parent as { sizes?: ReadonlyMap<string, number> } | undefined)?.sizes?.get(name);
}

function typenameFor(measured: GraphQLSchema, field: GraphQLField<unknown, unknown>, { fields }: Tally) {
  const named = getNamedType(field.type);
  if (!isAbstractType(named)) return named.name;
  const possible = measured.getPossibleTypes(named);
  return possible[fields % possible.length]?.name;
}

function leafValue(name: string): unknown {
  if (name === 'Int') return 1;
  if (name === 'Boolean') return true;
  const type = schema.getType(name);
  return type && 'getValues' in type ? type.getValues()[0]?.value : 'a';
}

function directiveOf(measured: GraphQLSchema, { astNode }: GraphQLField<unknown, unknown>, name: string) {
  const directive = measured.getDirective(name);
  return directive && astNode ? getDirectiveValues(directive, astNode) : undefined;
}

/** The cost that is counted for a request and what then runs; null when graphql-js does not let it run. */
async function measure(document: DocumentNode, variables: Readonly<Record<string, unknown>>) {
  const operation = getOperationAST(document);
  if (!operation || validate(schema, document).length > 0) return null;
  const { coerced } = getVariableValues(schema, operation.variableDefinitions ?? [], variables);
  if (coerced === undefined) return null;
  const size = measureOperation(schema, document, operation, coerced, Number.POSITIVE_INFINITY);
  if (size.cost > 20_000) return null;
  Object.assign(tally, { cost: operation.operation === 'mutation' ? 10 : 0, fields: 0, depth: 0 });
  await execute({ schema, document, variableValues: variables });
  return { size, ran: { ...tally } };
}

const RUNS = 250;

function check(
  style: RequestStyle,
  law: (measured: NonNullable<Awaited<ReturnType<typeof measure>>>) => void,
) {
  let ran = 0;
  const requests = choices(120).map((numbers) => buildRequest(schema, numbers, style));
  const property = fc.asyncProperty(requests, async ({ query, variables }) => {
    const measured = await measure(parse(query), variables);
    if (measured === null) return;
    ran += 1;
    law(measured);
  });
  return fc.assert(property, { numRuns: RUNS }).then(() => expect(ran).toBeGreaterThan(RUNS / 3));
}

describe('whatever variables, defaults, aliases, fragments and directives a request has,', () => {
  test('its cost and its depth are never counted as less than what runs', async () => {
    await check({ plain: false, fitting: true }, ({ size, ran }) => {
      expect(size.cost).toBeGreaterThanOrEqual(ran.cost);
      expect(size.depth).toBeGreaterThanOrEqual(ran.depth);
    });
  });

  test('its cost is exactly what runs, when all that is written runs once and every list is full', async () => {
    const scalars = { Int: [1, 2, 5, 3] };
    await check({ plain: true, fitting: true, scalars }, ({ size, ran }) => expect(size.cost).toBe(ran.cost));
  });
});
