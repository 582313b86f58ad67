import {
  type ConstDirectiveNode,
  type ConstValueNode,
  type GraphQLSchema,
  isSpecifiedScalarType,
  Kind,
  visit,
} from 'graphql';

const FEDERATION = 'https://specs.apollo.dev/federation/';
const ENFORCED = ['authenticated', 'requiresScopes'];
const NOT_ENFORCED = ['policy'];

/**
 * What is wrong with how a schema names the authorisation directives. The router goes by what a directive is in the
 * federation specification, enforcement here by its name: the two agree only while each is imported under its own.
 *
 * @returns one line for each problem; none when the names can be trusted.
 */
export function directiveNamingProblems(schema: GraphQLSchema): string[] {
  const imports = federationImports(schema);
  if (imports === null) {
    return [`schema: no @link to ${FEDERATION}, so that the router would know none of the directives`];
  }
  const used = usedDirectives(schema);
  return [
    ...ENFORCED.flatMap((name) => {
      const alias = imports.get(`@${name}`);
      if (alias !== undefined && alias !== `@${name}`) {
        return [`schema: @${name} is imported as ${alias}; import it under its own name`];
      }
      return used.has(name) && alias === undefined ? [`schema: @${name} is used and not imported`] : [];
    }),
    ...NOT_ENFORCED.flatMap((name) =>
      used.has(name) || imports.has(`@${name}`) ? [`schema: @${name} is not enforced by this service`] : [],
    ),
    ...[...used]
      .filter((name) => [...ENFORCED, ...NOT_ENFORCED].some((canonical) => name.endsWith(`__${canonical}`)))
      .map((name) => `schema: @${name} is used; import the directive and use its own name`),
    ...[...imports]
      .filter(([name, alias]) => ENFORCED.includes(alias.slice(1)) && name !== alias)
      .map(
        ([name, alias]) => `schema: ${name} is imported as ${alias}, the name of an authorisation directive`,
      ),
  ];
}

/** The name that a directive of the federation specification has in a schema, without its `@`. */
export function federationDirectiveName(schema: GraphQLSchema, name: string): string {
  return federationImports(schema)?.get(`@${name}`)?.slice(1) ?? `federation__${name}`;
}

/** From the canonical name of each imported element to its name in the schema; null without a federation link. */
function federationImports(schema: GraphQLSchema): Map<string, string> | null {
  const links = [schema.astNode, ...schema.extensionASTNodes]
    .flatMap((node) => node?.directives ?? [])
    .filter((directive) => directive.name.value === 'link')
    .filter((directive) => textOf(argumentOf(directive, 'url'))?.startsWith(FEDERATION));
  if (links.length === 0) return null;

  const imports = new Map<string, string>();
  for (const list of links.map((directive) => argumentOf(directive, 'import'))) {
    for (const entry of list?.kind === Kind.LIST ? list.values : []) {
      const fields = new Map(
        entry.kind === Kind.OBJECT
          ? entry.fields.map((field) => [field.name.value, textOf(field.value)])
          : [],
      );
      const name = textOf(entry) ?? fields.get('name');
      if (name !== undefined) imports.set(name, fields.get('as') ?? name);
    }
  }
  return imports;
}

function usedDirectives(schema: GraphQLSchema): Set<string> {
  const used = new Set<string>();
  for (const type of Object.values(schema.getTypeMap())) {
    if (isSpecifiedScalarType(type)) continue;
    for (const node of [type.astNode, ...type.extensionASTNodes]) {
      if (node) visit(node, { Directive: (directive) => void used.add(directive.name.value) });
    }
  }
  return used;
}

function argumentOf(directive: ConstDirectiveNode, name: string): ConstValueNode | undefined {
  return directive.arguments?.find((argument) => argument.name.value === name)?.value;
}

function textOf(value: ConstValueNode | undefined): string | undefined {
  return value?.kind === Kind.STRING ? value.value : undefined;
}
