import { type GraphQLResolveInfo, Kind, type SelectionSetNode } from 'graphql';

/**
 * Whether a field is asked of what a resolver is about to return, in fragments or not. `@skip` and `@include` are passed over: that
 * more is read than asked for is no harm.
 */
export function isFieldSelected(
  { fieldNodes, fragments }: Pick<GraphQLResolveInfo, 'fieldNodes' | 'fragments'>,
  name: string,
): boolean {
  const seen = new Set<SelectionSetNode>();
  const isIn = (set: SelectionSetNode | undefined): boolean => {
    // Fragments that spread each other twice over are looked at once.
    if (set === undefined || seen.has(set)) return false;
    seen.add(set);
    return set.selections.some((selection) => {
      if (selection.kind === Kind.FIELD) return selection.name.value === name;
      return isIn(
        selection.kind === Kind.FRAGMENT_SPREAD
          ? fragments[selection.name.value]?.selectionSet
          : selection.selectionSet,
      );
    });
  };
  return fieldNodes.some(({ selectionSet }) => isIn(selectionSet));
}
