import { GraphQLError } from 'graphql';
import { HistoryInconsistentError } from '../../history/history.ts';
import type { StateRecord } from '../../history/states.ts';
import {
  listOperations,
  type OperationPosition,
  type OperationRecord,
} from '../../operations/operation-records.ts';
import { connectionOf, keyOfCursor, pageLimit } from '../connection.ts';
import type { GraphqlContext } from '../context.ts';
import { parseInt64 } from '../int64.ts';
import type {
  StateArchiveResolvers,
  StateArchiveStatusResolvers,
  StateArchiveTagResolvers,
  StateResolvers,
} from '../schema-types.ts';

const OPERATION_POSITION =
  /^((?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{6}Z) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const LIFECYCLE = { active: 'ACTIVE', suspended: 'SUSPENDED', archived: 'ARCHIVED' } as const;

export const StateArchive: StateArchiveResolvers = {
  async __resolveReference(reference, context) {
    return resolveState(reference, context);
  },

  name: ({ label }) => label,
  lifecycleStatus: ({ lifecycleStatus }) => LIFECYCLE[lifecycleStatus],
  status: (state) => state,

  async manifest(state, _arguments, { loaders }) {
    const preview = await loaders.preview.load(state.id).catch(tellInconsistency);
    return preview === null ? null : { state, preview };
  },

  async versions(state, page, { loaders }) {
    const limit = pageLimit(page, 100);
    const before = keyOfCursor(page, parseInt64);
    const [versions, totalCount] = await Promise.all([
      loaders.versionPage.load({ stateId: state.id, before, limit }),
      loaders.versionCount.load(state.id),
    ]);
    return { ...connectionOf(versions, page, ({ serial }) => String(serial)), totalCount };
  },

  version: (state, { serial }, { loaders }) => loaders.versionBySerial.load({ stateId: state.id, serial }),
  tags: async (state, _arguments, { loaders }) => [...(await loaders.tags.load(state.id))],

  async operations(state, page, context) {
    const limit = pageLimit(page, 100);
    const after = keyOfCursor(page, readPosition);
    const caller = await context.caller();
    const operations =
      caller === null
        ? []
        : await listOperations(context.services.database.db, caller, state.id, { after, limit });
    return connectionOf(operations, page, positionOf);
  },
};

function positionOf({ createdAt, id }: OperationRecord): string {
  return `${createdAt} ${id}`;
}

function readPosition(text: string): OperationPosition | null {
  const [, second = '', fraction = '', id = ''] = OPERATION_POSITION.exec(text) ?? [];
  const time = new Date(`${second}Z`);
  // A day that no month has is carried over by Date, and refused by PostgreSQL.
  const isTime = !Number.isNaN(time.getTime()) && time.toISOString().startsWith(second);
  return isTime ? { createdAt: second + fraction, id } : null;
}

/** A reference names the state by its id, or by workspace, environment and label. */
async function resolveState(
  reference: Readonly<Record<string, unknown>>,
  { caller, loaders }: GraphqlContext,
): Promise<StateRecord | null> {
  if (typeof reference.id === 'string') return loaders.stateById.load(reference.id);
  const { workspace, environment, name } = reference;
  const own = (await caller())?.namespace;
  if (typeof name !== 'string' || workspace !== own?.workspace || environment !== own?.environment) {
    return null;
  }
  return loaders.stateByLabel.load(name);
}

function tellInconsistency(error: unknown): never {
  if (!(error instanceof HistoryInconsistentError)) throw error;
  throw new GraphQLError(error.message, { extensions: { code: 'HISTORY_INCONSISTENT' } });
}

export const State: StateResolvers = {
  // The state belongs to another subgraph: what it asks for is only whether there is an archive view of it.
  __resolveReference: async (reference) => ({ id: String(reference.id) }),
  archive: ({ id }, _arguments, { loaders }) => loaders.stateById.load(id),
};

export const StateArchiveStatus: StateArchiveStatusResolvers = {
  exportable: ({ currentVersionId }) => currentVersionId !== null,
  lockedBy: ({ id }, _arguments, { loaders }) => loaders.lockHolder.load(id),
  versionCount: ({ id }, _arguments, { loaders }) => loaders.versionCount.load(id),
  lastExport: ({ id }, _arguments, { loaders }) => loaders.lastExport.load(id),
  lastImport: ({ id }, _arguments, { loaders }) => loaders.lastImport.load(id),
};

export const StateArchiveTag: StateArchiveTagResolvers = {
  name: ({ tag }) => tag,
};
