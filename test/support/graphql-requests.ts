import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  type OperationTypeNode,
} from 'graphql';
import type { Choices } from './choices.ts';

/** A GraphQL request as its client writes it. */
export interface GraphqlRequest {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** What {@link buildRequest} may use. */
export interface RequestStyle {
  /**
   * Everything that is written runs exactly once: no directives, no fragment spread twice, no field without an alias of
   * its own, no null in place of a value, no `_entities`.
   */
  readonly plain: boolean;
  /** Values of scalars, by the scalar's name, in place of the usual ones. */
  readonly scalars?: Readonly<Record<string, readonly unknown[]>>;
  /** Mostly fits the schema; else about every tenth value is of another type. */
  readonly fitting: boolean;
}

/** Names that a plain object has members of, and others that are easily mistaken. */
const ODD_NAMES = [
  'a',
  'toString',
  'constructor',
  '__proto__',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
  'isPrototypeOf',
  'length',
  'then',
  'null',
  'on',
  'first',
  '_',
  '__typename',
];

const SCALARS: Readonly<Record<string, readonly unknown[]>> = {
  Int: [1, 2, 0, 5, 3],
  Float: [0.5],
  Boolean: [true, false],
  String: ['a', '', 'prod/network', '\u0000', '"\\', '\u202e🚀'],
  ID: ['a', '00000000-0000-4000-8000-000000000000', ''],
  BigInt: ['1', '9007199254740993'],
  Sha256: ['0'.repeat(64)],
  DateTime: ['2026-03-02T10:00:00.000118Z'],
  Upload: [null],
  _Any: [
    { __typename: 'StateArchive', id: '00000000-0000-4000-8000-000000000000' },
    { __typename: 'State', id: 'a' },
  ],
};

const WRONG = [null, '\ud800', -1, 1e300, 'x', true, [], {}, [[[]]], { __proto__: null, a: [{}] }];

/** A document of one operation with its variables, built by `choices` for a schema; most of them are valid. */
export function buildRequest(schema: GraphQLSchema, choices: Choices, style: RequestStyle): GraphqlRequest {
  const variables: Record<string, unknown> = Object.create(null);
  const definitions = new Map<string, string>();
  const fragments: { readonly name: string; readonly text: string; readonly on: string }[] = [];
  const scalars = { ...SCALARS, ...style.scalars };
  let aliases = 0;

  const operation = choices.once(4) ? 'mutation' : 'query';
  const root = schema.getRootType(operation as OperationTypeNode) ?? schema.getQueryType();
  const body = root ? selectionSet(root, 0) : '{ __typename }';
  const header = definitions.size === 0 ? '' : `(${[...definitions.values()].join(', ')})`;
  const query = [`${operation} ${header} ${body}`, ...fragments.map(({ text }) => text)].join('\n');
  return { query, variables };

  function selectionSet(type: GraphQLNamedType, depth: number): string {
    const selections = [selection(type, depth), ...choices.some(3, () => selection(type, depth))];
    return `{ ${selections.join(' ')} }`;
  }

  function selection(type: GraphQLNamedType, depth: number): string {
    const kind = choices.below(8);
    if (kind === 7 && depth < 6) return `...${onType(type)} ${directive()}${inner(type, depth)}`;
    if (kind === 6 && depth < 6) return spread(type, depth);
    if (!isObjectType(type)) return `... on ${choices.of(possible(type))} ${inner(type, depth)}`;
    const fields = Object.values(type.getFields()).filter(
      (each) => !(style.plain && each.name === '_entities') && each.name !== '_service',
    );
    const leaves = fields.filter((each) => !isCompositeType(getNamedType(each.type)));
    const branches = fields.filter((each) => isCompositeType(getNamedType(each.type)));
    const deep = depth < 6 && branches.length > 0 && (leaves.length === 0 || !choices.once(2));
    return deep || leaves.length > 0 ? field(choices.of(deep ? branches : leaves), depth) : '__typename';
  }

  function inner(type: GraphQLNamedType, depth: number): string {
    const chosen = isObjectType(type) ? type : schema.getType(choices.of(possible(type)));
    return chosen ? selectionSet(chosen, depth + 1) : '{ __typename }';
  }

  function onType(type: GraphQLNamedType): string {
    return isObjectType(type) && choices.once(2) ? ` on ${type.name}` : '';
  }

  function possible(type: GraphQLNamedType): string[] {
    return isAbstractType(type) ? schema.getPossibleTypes(type).map(({ name }) => name) : [type.name];
  }

  function spread(type: GraphQLNamedType, depth: number): string {
    const on = isObjectType(type) ? type.name : choices.of(possible(type));
    const known = fragments.filter((fragment) => fragment.on === on);
    if (!style.plain && known.length > 0 && choices.once(2)) return `...${choices.of(known).name}`;
    const chosen = schema.getType(on);
    const text = chosen ? selectionSet(chosen, depth + 1) : '{ __typename }';
    const name = `F${fragments.length}`;
    fragments.push({ name, on, text: `fragment ${name} on ${on} ${text}` });
    return `...${name} ${directive()}`;
  }

  function field(definition: GraphQLField<unknown, unknown>, depth: number): string {
    aliases += 1;
    const alias = !style.plain && choices.once(3) ? '' : `${choices.once(5) ? '__proto__' : 'x'}${aliases}: `;
    const given = definition.args.map(argument).filter((text) => text !== '');
    const parentheses = given.length === 0 ? '' : `(${given.join(', ')})`;
    const type = getNamedType(definition.type);
    const below = isCompositeType(type) ? selectionSet(type, depth + 1) : '';
    return `${alias}${definition.name}${parentheses} ${directive()}${below}`;
  }

  function argument(definition: GraphQLArgument): string {
    if (!isRequiredArgument(definition) && choices.below(3) === 0) return '';
    if (!choices.once(2))
      return `${definition.name}: ${literal(valueFor(definition.type, 0), definition.type)}`;
    return `${definition.name}: ${variable(definition.type)}`;
  }

  function variable(type: GraphQLInputType): string {
    const name = `${choices.of(ODD_NAMES)}${choices.of(['', '', '1'])}`;
    if (definitions.has(name)) {
      return definitions.get(name)?.startsWith(`$${name}: ${type}`)
        ? `$${name}`
        : variableOf(`v${definitions.size}`, type);
    }
    return variableOf(name, type);
  }

  function variableOf(name: string, type: GraphQLInputType): string {
    const hasDefault = choices.once(2);
    definitions.set(name, `$${name}: ${type}${hasDefault ? ` = ${literal(valueFor(type, 0), type)}` : ''}`);
    const isGiven = hasDefault ? choices.once(2) : isNonNullType(type) || !choices.once(3);
    if (isGiven) variables[name] = valueFor(type, 0);
    return `$${name}`;
  }

  function directive(): string {
    if (style.plain || !choices.once(6)) return '';
    const condition = choices.once(2)
      ? variableOf(`b${definitions.size}`, booleanType())
      : choices.of(['true', 'false']);
    return `@${choices.of(['include', 'skip'])}(if: ${condition}) `;
  }

  function booleanType(): GraphQLInputType {
    const argument = schema.getDirective('include')?.args[0];
    if (argument === undefined) throw new Error('The schema has no @include.');
    return argument.type;
  }

  /** A value of a type as JSON; `undefined` is never one. */
  function valueFor(type: GraphQLInputType, depth: number): unknown {
    if (!style.fitting && choices.once(10)) return choices.of(WRONG);
    if (isNonNullType(type)) return valueFor(type.ofType, depth);
    if (!style.plain && choices.once(8)) return null;
    if (isListType(type)) return choices.some(4, () => valueFor(type.ofType, depth + 1));
    if (isEnumType(type)) return choices.of(type.getValues()).name;
    if (isInputObjectType(type)) {
      const fields = Object.values(type.getFields()).filter(
        (each) => isRequiredInputField(each) || (depth < 3 && choices.once(3)),
      );
      return Object.fromEntries(fields.map((each) => [each.name, valueFor(each.type, depth + 1)]));
    }
    return choices.of(scalars[type.name] ?? ['a']);
  }

  /** The same value as a literal of the document. */
  function literal(value: unknown, type: GraphQLInputType): string {
    if (isNonNullType(type)) return literal(value, type.ofType);
    if (Array.isArray(value)) {
      const item = isListType(type) ? type.ofType : type;
      return `[${value.map((each) => literal(each, item)).join(', ')}]`;
    }
    if (typeof value === 'string')
      return isEnumType(type) && /^\w+$/.test(value) ? value : JSON.stringify(value);
    if (typeof value === 'object' && value !== null) {
      const fields: Record<string, { readonly type: GraphQLInputType }> = isInputObjectType(type)
        ? type.getFields()
        : {};
      const text = Object.entries(value).map(
        ([name, each]) => `${name}: ${literal(each, fields[name]?.type ?? type)}`,
      );
      return `{ ${text.join(', ')} }`;
    }
    return String(value);
  }
}
