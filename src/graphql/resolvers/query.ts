import { ownEnvironment, SCOPES } from '../../auth/principal.ts';
import { present } from '../../base/invariant.ts';
import { isStorableText } from '../../base/text.ts';
import { utcTimeOf } from '../../base/time.ts';
import { listStates } from '../../history/states.ts';
import { searchOperations } from '../../operations/operation-records.ts';
import { type PagedList, pageOf } from '../connection.ts';
import { requirePermission } from '../context.ts';
import { readBy, readOne, type StateArchiveParent } from '../parents.ts';
import type { QueryResolvers } from '../schema-types.ts';
import { isFieldSelected } from '../selection.ts';
import { OPERATIONS } from './state-archive-operation.ts';

/** The states of an environment, by their labels. */
const STATES: PagedList<StateArchiveParent, string> = {
  maximum: 100,
  keyOf: ({ label }) => label,
  readKey: (text) => (text !== '' && isStorableText(text) ? text : null),
};

export const Query: QueryResolvers = {
  async stateArchive(_root, { name, scope }, { reader: open }, info) {
    const wanted = { label: name, withPreview: isFieldSelected(info, 'manifest') };
    return readOne(await open(scope, wanted), ({ stateByLabel }) => stateByLabel.load(name));
  },

  stateArchives: (_root, { scope, filter, ...page }, { reader: open }) =>
    pageOf(STATES, page, async (position) => {
      const reader = await open(scope);
      if (reader === null) return [];
      requirePermission(reader, 'state.read');
      const { caller } = reader;
      const wanted = { labelPrefix: filter?.namePrefix ?? '', ...position };
      return (await listStates(caller.database.for('read'), caller, wanted)).map(readBy(reader));
    }),

  async stateArchiveOperation(_root, { id, scope }, { reader: open }) {
    return readOne(await open(scope), ({ operationById }) => operationById.load(id));
  },

  stateArchiveOperations: (_root, { scope, filter, ...page }, { reader: open }) =>
    pageOf(OPERATIONS, page, async (position) => {
      const reader = await open(scope);
      if (reader === null) return [];
      const { caller } = reader;
      const wanted = {
        kind: filter?.kind ?? null,
        statuses: filter?.status ?? null,
        labelPrefix: filter?.namePrefix ?? '',
        actor: filter?.actor ?? null,
        since: filter?.since ?? null,
      };
      const found = await searchOperations(caller.database.for('read'), caller, wanted, position);
      return found.map(readBy(reader));
    }),

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
