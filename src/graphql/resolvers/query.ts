import { ownEnvironment, SCOPES } from '../../auth/principal.ts';
import { present } from '../../base/invariant.ts';
import { isStorableText } from '../../base/text.ts';
import { utcTimeOf } from '../../base/time.ts';
import { listStates } from '../../history/states.ts';
import { searchOperations } from '../../operations/operation-records.ts';
import { connectionOf, keyOfCursor, pageLimit } from '../connection.ts';
import { positionOf, readPosition } from '../operation-position.ts';
import { readBy, readOne } from '../parents.ts';
import { requirePermission } from '../reader.ts';
import type { QueryResolvers } from '../schema-types.ts';
import { isFieldSelected } from '../selection.ts';

export const Query: QueryResolvers = {
  async stateArchive(_root, { name, scope }, { reader: open }, info) {
    const wanted = { label: name, withPreview: isFieldSelected(info, 'manifest') };
    return readOne(await open(scope, wanted), ({ stateByLabel }) => stateByLabel.load(name));
  },

  async stateArchives(_root, { scope, filter, ...page }, { reader: open }) {
    const limit = pageLimit(page, 100);
    const after = keyOfCursor(page, readLabel);
    const reader = await open(scope);
    if (reader === null) return connectionOf([], page, String);
    requirePermission(reader, 'state.read');
    const { caller } = reader;
    const labelPrefix = filter?.namePrefix ?? '';
    const states = await listStates(caller.database.for('read'), caller, { labelPrefix, after, limit });
    return connectionOf(states.map(readBy(reader)), page, ({ record }) => record.label);
  },

  async stateArchiveOperation(_root, { id, scope }, { reader: open }) {
    return readOne(await open(scope), ({ operationById }) => operationById.load(id));
  },

  async stateArchiveOperations(_root, { scope, filter, ...page }, { reader: open }) {
    const limit = pageLimit(page, 100);
    const after = keyOfCursor(page, readPosition);
    const reader = await open(scope);
    if (reader === null) return connectionOf([], page, String);
    const { caller } = reader;
    const wanted = {
      kind: filter?.kind ?? null,
      statuses: filter?.status ?? null,
      labelPrefix: filter?.namePrefix ?? '',
      actor: filter?.actor ?? null,
      since: filter?.since ?? null,
    };
    const operations = await searchOperations(caller.database.for('read'), caller, wanted, { after, limit });
    return connectionOf(operations.map(readBy(reader)), page, positionOf);
  },

  stateArchiveCaller(_root, _arguments, { principal }) {
    const { subject, actor, scopes, statePatterns, expiresAt, ...own } = present(
      principal,
      'the schema demands a credential',
    );
    const { workspace, environment } = ownEnvironment(own);
    return {
      subject,
      actor,
      scopes: SCOPES.filter((scope) => scopes.has(scope)).sort(),
      // A credential without an environment of its own has empty ones.
      workspaceId: workspace || null,
      environmentId: environment || null,
      statePatterns,
      expiresAt: expiresAt === undefined ? null : utcTimeOf(new Date(expiresAt * 1000)),
    };
  },
};

/** The key of a state's place in the list is its label. */
function readLabel(text: string): string | null {
  return text !== '' && isStorableText(text) ? text : null;
}
