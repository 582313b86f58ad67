import {
  type ASTVisitor,
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type ValidationContext,
  visit,
} from 'graphql';

/** The most problems of a document that are told; validation ends with the next one. */
export const MAX_VALIDATION_ERRORS = 20;

/**
 * A validation rule: one error for each fragment that leads into a ring of fragments. graphql-js has it too, but compares
 * fragments in pairs before, calling itself for each pair it comes to, so that a large ring exhausts the stack. This one
 * speaks as soon as the document is entered, and of a large ring so often that validation ends there.
 */
export function fragmentRingsRule(context: ValidationContext): ASTVisitor {
  return {
    Document(document) {
      for (const fragment of fragmentsIntoRings(document)) {
        context.reportError(
          new GraphQLError(`The fragment "${fragment.name.value}" leads into a ring of fragments.`, {
            nodes: fragment.name,
          }),
        );
      }
    },
  };
}

/** Takes fragments away that spread none that is left, until there is no such fragment: what remains never ends. */
function fragmentsIntoRings(document: DocumentNode): Iterable<FragmentDefinitionNode> {
  const left = new Map<string, FragmentDefinitionNode>();
  const spreaders = new Map<string, Set<string>>();
  const spreads = new Map<string, Set<string>>();
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.FRAGMENT_DEFINITION) continue;
    const name = definition.name.value;
    left.set(name, definition);
    const found = spreadsIn(definition);
    spreads.set(name, found);
    for (const spread of found) spreaders.set(spread, (spreaders.get(spread) ?? new Set()).add(name));
  }
  const ends = [...left.keys()].filter((name) => ![...(spreads.get(name) ?? [])].some((to) => left.has(to)));
  for (const end of ends) {
    left.delete(end);
    for (const spreader of spreaders.get(end) ?? []) {
      if (left.has(spreader) && ![...(spreads.get(spreader) ?? [])].some((to) => left.has(to)))
        ends.push(spreader);
    }
  }
  return left.values();
}

function spreadsIn(fragment: FragmentDefinitionNode): Set<string> {
  const names = new Set<string>();
  visit(fragment, { FragmentSpread: ({ name }) => void names.add(name.value) });
  return names;
}
