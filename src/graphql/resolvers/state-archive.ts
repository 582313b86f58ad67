import { ARCHIVE_FORMAT } from '../../archive/format.ts';
import { parseInt64 } from '../../base/int64.ts';
import { badUserInput, type PagedList, pageOf } from '../connection.ts';
import type { GraphqlContext } from '../context.ts';
import { readBy, readOne, type StateArchiveParent, type VersionParent } from '../parents.ts';
import type {
  StateArchiveResolvers,
  StateArchiveStatusResolvers,
  StateArchiveTagResolvers,
  StateResolvers,
} from '../schema-types.ts';
import { OPERATIONS } from './state-archive-operation.ts';

const LIFECYCLE = { active: 'ACTIVE', suspended: 'SUSPENDED', archived: 'ARCHIVED' } as const;

/** The versions of a state, newest serial first. */
const VERSIONS: PagedList<VersionParent, bigint> = {
  maximum: 100,
  keyOf: ({ serial }) => String(serial),
  readKey: parseInt64,
};

export const StateArchive: StateArchiveResolvers = {
  async __resolveReference(reference, context) {
    return resolveState(reference, context);
  },

  name: ({ label }) => label,
  workspaceId: ({ workspace }) => workspace,
  environmentId: ({ environment }) => environment,
  lifecycleStatus: ({ lifecycleStatus }) => LIFECYCLE[lifecycleStatus],
  status: (state) => state,

  async manifest({ id, label, reader }) {
    const preview = await reader.loaders.preview.load(id);
    return preview && { archiveFormat: ARCHIVE_FORMAT, name: label, ...preview };
  },

  async versions({ id, reader }, page) {
    const [versions, totalCount] = await Promise.all([
      pageOf(VERSIONS, page, async (position) => {
        const found = await reader.loaders.versionPage.load({ stateId: id, ...position });
        return found.map(readBy(reader));
      }),
      reader.loaders.versionCount.load(id),
    ]);
    return { ...versions, totalCount };
  },

  async version({ id, reader }, { serial: given = null, tag = null }) {
    if ((given === null) === (tag === null)) throw badUserInput('Give exactly one of serial and tag.');
    const { loaders } = reader;
    const serial = given ?? (await loaders.tags.load(id)).find((each) => each.tag === tag)?.serial ?? null;
    if (serial === null) return null;
    return readOne(reader, ({ versionBySerial }) => versionBySerial.load({ stateId: id, serial }));
  },

  tags: ({ id, reader }) => reader.loaders.tags.load(id),
  operations: ({ id, reader }, page) =>
    pageOf(OPERATIONS, page, async (position) => {
      const found = await reader.loaders.operationPage.load({ stateId: id, ...position });
      return found.map(readBy(reader));
    }),
};

/** A reference names the state by its id, in the caller's own environment, or by workspace, environment and label. */
async function resolveState(
  reference: Readonly<Record<string, unknown>>,
  { reader: open }: GraphqlContext,
): Promise<StateArchiveParent | null> {
  const { id, workspaceId, environmentId, name } = reference;
  if (typeof id === 'string') return readOne(await open(null), ({ stateById }) => stateById.load(id));
  if (typeof workspaceId !== 'string' || typeof environmentId !== 'string' || typeof name !== 'string')
    return null;
  return readOne(await open({ workspaceId, environmentId }), ({ stateByLabel }) => stateByLabel.load(name));
}

export const State: StateResolvers = {
  // The state belongs to another subgraph: what it asks for is only whether there is an archive view of it.
  __resolveReference: async ({ id }) => (typeof id === 'string' ? { id } : null),
  archive: async ({ id }, _arguments, { reader: open }) =>
    readOne(await open(null), ({ stateById }) => stateById.load(id)),
};

export const StateArchiveStatus: StateArchiveStatusResolvers = {
  exportable: ({ currentVersionId }) => currentVersionId !== null,
  lockedBy: ({ id, reader }) => reader.loaders.lockHolder.load(id),
  versionCount: ({ id, reader }) => reader.loaders.versionCount.load(id),
  lastExport: ({ id, reader }) => readOne(reader, ({ lastExport }) => lastExport.load(id)),
  lastImport: ({ id, reader }) => readOne(reader, ({ lastImport }) => lastImport.load(id)),
};

export const StateArchiveTag: StateArchiveTagResolvers = {
  name: ({ tag }) => tag,
};
