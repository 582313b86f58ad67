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
function fragmentsIntoRings({ definitions }: DocumentNode): readonly FragmentDefinitionNode[] {
  let left = definitions
    .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
    .map((fragment) => ({ fragment, spreads: spreadsIn(fragment) }));
  for (let before = -1; before !== left.length; ) {
    before = left.length;
    const names = new Set(left.map(({ fragment }) => fragment.name.value));
    left = left.filter(({ spreads }) => spreads.some((name) => names.has(name)));
  }
  return left.map(({ fragment }) => fragment);
}

function spreadsIn(fragment: FragmentDefinitionNode): readonly string[] {
  const names: string[] = [];
  visit(fragment, { FragmentSpread: ({ name }) => void names.push(name.value) });
  return names;
}
