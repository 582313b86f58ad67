import { listStates } from '../../history/states.ts';
import { connectionOf, keyOfCursor, pageLimit } from '../connection.ts';
import { callerIn } from '../context.ts';
import { canBeInLabel } from '../label.ts';
import type { QueryResolvers } from '../schema-types.ts';

export const Query: QueryResolvers = {
  async stateArchive(_root, { name, scope }, context) {
    if ((await callerIn(context, scope)) === null) return null;
    return context.loaders.stateByLabel.load(name);
  },

  async stateArchives(_root, { scope, filter, ...page }, context) {
    const limit = pageLimit(page, 100);
    const after = keyOfCursor(page, readLabel);
    const labelPrefix = filter?.namePrefix ?? '';
    const caller = canBeInLabel(labelPrefix) ? await callerIn(context, scope) : null;
    const states =
      caller === null
        ? []
        : await listStates(context.services.database.db, caller, { labelPrefix, after, limit });
    return connectionOf(states, page, ({ label }) => label);
  },

  stateArchiveOperation(_root, { id }, { loaders }) {
    return loaders.operationById.load(id);
  },
};

/** The key of a state's place in the list is its label. */
function readLabel(text: string): string | null {
  return text !== '' && canBeInLabel(text) ? text : null;
}
