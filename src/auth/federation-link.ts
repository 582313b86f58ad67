import { type GraphQLSchema, valueFromASTUntyped, visit } from 'graphql';
import { z } from 'zod';

const FEDERATION = 'https://specs.apollo.dev/federation/';
const ENFORCED = ['authenticated', 'requiresScopes'];

const linkArguments = z.looseObject({ url: z.string(), import: z.array(z.unknown()).default([]) });

/**
 * What is wrong with how a schema names the directives of federation. The router goes by what a directive is in the
 * specification, enforcement here by its name: the two agree only while each is imported under its own.
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
    ...imports
      .filter((each) => typeof each !== 'string')
      .map(
        (each) => `schema: ${JSON.stringify(each)} is imported under another name; import it under its own`,
      ),
    ...ENFORCED.filter((name) => used.has(name) && !imports.includes(`@${name}`)).map(
      (name) => `schema: @${name} is used and not imported`,
    ),
    ...(used.has('policy') || imports.includes('@policy')
      ? ['schema: @policy is not enforced by this service']
      : []),
    ...[...used]
      .filter((name) => name.includes('__'))
      .map((name) => `schema: @${name} is used; import the directive and use its own name`),
  ];
}

/** What a schema imports of federation, as it is written; null without a link to it. */
function federationImports(schema: GraphQLSchema): readonly unknown[] | null {
  const links = [schema.astNode, ...schema.extensionASTNodes]
    .flatMap((node) => node?.directives ?? [])
    .filter(({ name }) => name.value === 'link')
    .map((link) =>
      linkArguments.parse(
        Object.fromEntries(
          link.arguments?.map(({ name, value }) => [name.value, valueFromASTUntyped(value)]) ?? [],
        ),
      ),
    )
    .filter(({ url }) => url.startsWith(FEDERATION));
  return links.length === 0 ? null : links.flatMap((link) => link.import);
}

function usedDirectives(schema: GraphQLSchema): ReadonlySet<string> {
  const used = new Set<string>();
  for (const type of Object.values(schema.getTypeMap())) {
    for (const node of [type.astNode, ...type.extensionASTNodes]) {
      if (node) visit(node, { Directive: ({ name }) => void used.add(name.value) });
    }
  }
  return used;
}
