import {
  type ConstDirectiveNode,
  type DocumentNode,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type ObjectTypeDefinitionNode,
  parse,
  valueFromASTUntyped,
} from 'graphql';

/** One step of a way through the schema: a field, or the reference resolver of an entity. */
export interface Step {
  /** `Type.field`, or `Type` for a reference. */
  readonly coordinate: string;
  /** What the SDL demands at this step: for each directive, all scopes of any one of its sets. */
  readonly demands: readonly (readonly (readonly string[])[])[];
}

/** A way to reach a field, and the query that takes it. */
export interface AccessPath {
  readonly name: string;
  readonly document: DocumentNode;
  /** The last one is the field. */
  readonly steps: readonly Step[];
}

type Start =
  | { readonly kind: 'root'; readonly type: GraphQLObjectType; readonly operation: 'query' | 'mutation' }
  | { readonly kind: 'entity'; readonly type: GraphQLObjectType; readonly key: readonly string[] };

/** What the queries name, for them to find something. Without it they name samples, and pass by every field. */
export interface Named {
  /** GraphQL text by `Type.field(argument)`, such as `$name`, and the representation by `Type by key, key`. */
  readonly texts: Readonly<Record<string, string>>;
  /** The type of each variable in those texts, by its name without the `$`. */
  readonly variables: Readonly<Record<string, string>>;
  /** The fields, `Type.field`, that lead nowhere, to be gone round. */
  readonly deadEnds: ReadonlySet<string>;
}

const NOTHING_NAMED: Named = { texts: {}, variables: {}, deadEnds: new Set() };

/**
 * Every way to reach a field: the shortest from a root and from each entity by each of its keys, and the first of these
 * under aliases and through fragments. Read from the SDL, not from what enforces it.
 *
 * @param besides other fields of the type, to be asked for in the same object.
 */
export function accessPaths(
  schema: GraphQLSchema,
  sdl: DocumentNode,
  typeName: string,
  fieldName: string,
  named = NOTHING_NAMED,
  besides: readonly string[] = [],
): AccessPath[] {
  const definitions = new Map(
    sdl.definitions.flatMap((node) =>
      node.kind === Kind.OBJECT_TYPE_DEFINITION ? [[node.name.value, node]] : [],
    ),
  );
  const target = objectType(schema, typeName);
  const paths: AccessPath[] = [];
  for (const start of starts(schema, definitions)) {
    const trail = shortestTrail(start.type, target, named);
    if (trail === null) continue;
    const fields = [...trail, `${typeName}.${fieldName}`];
    const steps = [
      ...(start.kind === 'entity' ? [referenceStep(definitions, start.type.name)] : []),
      ...fields.map((coordinate) => fieldStep(schema, definitions, coordinate)),
    ];
    const path = (name: string, style: Style): AccessPath => ({
      name,
      steps,
      document: parse(queryText(schema, start, fields, style, named, besides)),
    });
    const isFirst = paths.length === 0;
    if (start.kind === 'entity')
      paths.push(path(`\`${start.type.name}\` by ${start.key.join(', ')}`, 'plain'));
    else if (isFirst) paths.push(path('root', 'plain'));
    if (isFirst) paths.push(path('alias', 'alias'), path('fragment', 'fragment'));
  }
  return paths;
}

/** Whether somebody with these scopes meets what a step demands. */
export function meets({ demands }: Step, scopes: ReadonlySet<string>): boolean {
  return demands.every((sets) => sets.some((set) => set.every((scope) => scopes.has(scope))));
}

type Definitions = ReadonlyMap<string, ObjectTypeDefinitionNode>;
type Style = 'plain' | 'alias' | 'fragment';

function starts(schema: GraphQLSchema, definitions: Definitions): Start[] {
  const entities = [...definitions.values()].flatMap((node) =>
    directives(node, 'key').map(
      (directive): Start => ({
        kind: 'entity',
        type: objectType(schema, node.name.value),
        key: String(argument(directive, 'fields')).split(' '),
      }),
    ),
  );
  return [
    { kind: 'root', type: objectType(schema, 'Query'), operation: 'query' },
    { kind: 'root', type: objectType(schema, 'Mutation'), operation: 'mutation' },
    ...entities,
  ];
}

/** The fields that lead from one type to another; none when they are the same. */
function shortestTrail(from: GraphQLObjectType, to: GraphQLObjectType, { deadEnds }: Named): string[] | null {
  const trails = new Map<GraphQLObjectType, string[]>([[from, []]]);
  for (const [type, trail] of trails) {
    if (type === to) return trail;
    for (const field of Object.values(type.getFields())) {
      const next = getNamedType(field.type);
      if (deadEnds.has(`${type.name}.${field.name}`)) continue;
      if (isObjectType(next) && !trails.has(next)) trails.set(next, [...trail, `${type.name}.${field.name}`]);
    }
  }
  return null;
}

function fieldStep(schema: GraphQLSchema, definitions: Definitions, coordinate: string): Step {
  const [typeName = '', fieldName = ''] = coordinate.split('.');
  const definition = definitions.get(typeName);
  const field = definition?.fields?.find(({ name }) => name.value === fieldName);
  const returned = getNamedType(objectType(schema, typeName).getFields()[fieldName]?.type);
  const carriers = [field, definition, definitions.get(returned?.name ?? '')];
  return { coordinate, demands: carriers.flatMap(scopesDemanded) };
}

function referenceStep(definitions: Definitions, typeName: string): Step {
  return { coordinate: typeName, demands: scopesDemanded(definitions.get(typeName)) };
}

interface Carrier {
  readonly directives?: readonly ConstDirectiveNode[] | undefined;
}

function scopesDemanded(node: Carrier | undefined): string[][][] {
  return [
    // A credential, with whatever scopes.
    ...directives(node, 'authenticated').map(() => [[]]),
    ...directives(node, 'requiresScopes').map((directive) => argument(directive, 'scopes') as string[][]),
  ];
}

function directives(node: Carrier | undefined, name: string): ConstDirectiveNode[] {
  return (node?.directives ?? []).filter((directive) => directive.name.value === name);
}

function argument(directive: ConstDirectiveNode, name: string): unknown {
  const node = directive.arguments?.find((each) => each.name.value === name);
  return node && valueFromASTUntyped(node.value);
}

function queryText(
  schema: GraphQLSchema,
  start: Start,
  fields: readonly string[],
  style: Style,
  named: Named,
  besides: readonly string[],
): string {
  let fragments = '';
  const [typeName = ''] = fields.at(-1)?.split('.') ?? [];
  const siblings = besides
    .map((name) => `${typeName}.${name}`)
    .map((coordinate) => ` ${fieldText(schema, coordinate, named)}${leafSelection(schema, coordinate)}`)
    .join('');
  // From the innermost field outwards.
  const selection = fields.reduceRight(
    (inner, coordinate, index) => {
      const text = `${style === 'alias' ? `a${index}: ` : ''}${fieldText(schema, coordinate, named)}${inner}${index === fields.length - 1 ? siblings : ''}`;
      if (style !== 'fragment') return `{ ${text} }`;
      fragments += ` fragment F${index} on ${coordinate.split('.')[0]} { ... { ${text} } }`;
      return `{ ...F${index} }`;
    },
    leafSelection(schema, fields.at(-1) ?? ''),
  );
  if (start.kind === 'root') return declared(start.operation, selection, fragments, named);
  const sample = [`__typename: "${start.type.name}"`, ...start.key.map((name) => `${name}: "x"`)];
  const representation =
    named.texts[`${start.type.name} by ${start.key.join(', ')}`] ?? `{ ${sample.join(', ')} }`;
  const entities = `{ _entities(representations: [${representation}]) { ... on ${start.type.name} ${selection} } }`;
  return declared('query', entities, fragments, named);
}

/** An operation that declares the variables it uses, in the fragments too. */
function declared(operation: string, selection: string, fragments: string, { variables }: Named): string {
  const used = Object.entries(variables).filter(([name]) =>
    new RegExp(`\\$${name}\\b`).test(selection + fragments),
  );
  const declarations = used.map(([name, type]) => `$${name}: ${type}`).join(', ');
  return `${operation} ${declarations && `(${declarations}) `}${selection}${fragments}`;
}

/** A field that gives an object needs a selection; `__typename` runs no resolver. */
function leafSelection(schema: GraphQLSchema, coordinate: string): string {
  const [typeName = '', fieldName = ''] = coordinate.split('.');
  const type = getNamedType(objectType(schema, typeName).getFields()[fieldName]?.type);
  return isObjectType(type) ? ' { __typename }' : '';
}

function fieldText(schema: GraphQLSchema, coordinate: string, { texts }: Named): string {
  const [typeName = '', fieldName = ''] = coordinate.split('.');
  const given = (objectType(schema, typeName).getFields()[fieldName]?.args ?? []).flatMap((each) => {
    const isRequired = isNonNullType(each.type) && each.defaultValue === undefined;
    const text = texts[`${coordinate}(${each.name})`] ?? (isRequired ? sampleLiteral(each.type) : undefined);
    return text === undefined ? [] : [`${each.name}: ${text}`];
  });
  return given.length === 0 ? fieldName : `${fieldName}(${given.join(', ')})`;
}

function sampleLiteral(type: GraphQLInputType): string {
  if (isNonNullType(type)) return sampleLiteral(type.ofType);
  if (isListType(type)) return '[]';
  if (isEnumType(type)) return type.getValues()[0]?.name ?? '';
  if (isInputObjectType(type)) {
    const required = Object.values(type.getFields())
      .filter((each) => isNonNullType(each.type) && each.defaultValue === undefined)
      .map((each) => `${each.name}: ${sampleLiteral(each.type)}`);
    return `{ ${required.join(', ')} }`;
  }
  return { Int: '1', Float: '1', Boolean: 'true' }[type.name] ?? '"1"';
}

function objectType(schema: GraphQLSchema, name: string): GraphQLObjectType {
  const type = schema.getType(name);
  if (!isObjectType(type)) throw new Error(`${name} is no object type`);
  return type;
}
