import { ARCHIVE_FORMAT } from '../../archive/format.ts';
import { parseInt64 } from '../../base/int64.ts';
import { badUserInput, connectionOf, keyOfCursor, pageLimit } from '../connection.ts';
import type { GraphqlContext } from '../context.ts';
import { positionOf, readPosition } from '../operation-position.ts';
import { readBy, readOne, type StateArchiveParent } from '../parents.ts';
import type {
  StateArchiveResolvers,
  StateArchiveStatusResolvers,
  StateArchiveTagResolvers,
  StateResolvers,
} from '../schema-types.ts';

const LIFECYCLE = { active: 'ACTIVE', suspended: 'SUSPENDED', archived: 'ARCHIVED' } as const;

export const StateArchive: StateArchiveResolvers = {
  async __resolveReference(reference, context) {
    return resolveState(reference, context);
  },

  id: ({ record }) => record.id,
  name: ({ record }) => record.label,
  workspaceId: ({ record }) => record.workspace,
  environmentId: ({ record }) => record.environment,
  lineage: ({ record }) => record.lineage,
  lifecycleStatus: ({ record }) => LIFECYCLE[record.lifecycleStatus],
  createdAt: ({ record }) => record.createdAt,
  updatedAt: ({ record }) => record.updatedAt,
  status: (state) => state,

  async manifest({ record, reader }) {
    const preview = await reader.loaders.preview.load(record.id);
    return preview === null ? null : { archiveFormat: ARCHIVE_FORMAT, name: record.label, ...preview };
  },

  async versions({ record, reader }, page) {
    const limit = pageLimit(page, 100);
    const before = keyOfCursor(page, parseInt64);
    const [versions, totalCount] = await Promise.all([
      reader.loaders.versionPage.load({ stateId: record.id, before, limit }),
      reader.loaders.versionCount.load(record.id),
    ]);
    const nodes = versions.map(readBy(reader));
    return { ...connectionOf(nodes, page, (version) => String(version.record.serial)), totalCount };
  },

  async version({ record, reader }, { serial: given = null, tag = null }) {
    if ((given === null) === (tag === null)) throw badUserInput('Give exactly one of serial and tag.');
    const { loaders } = reader;
    const serial =
      given ?? (await loaders.tags.load(record.id)).find((each) => each.tag === tag)?.serial ?? null;
    if (serial === null) return null;
    return readOne(reader, ({ versionBySerial }) => versionBySerial.load({ stateId: record.id, serial }));
  },

  tags: ({ record, reader }) => reader.loaders.tags.load(record.id),

  async operations({ record, reader }, page) {
    const limit = pageLimit(page, 100);
    const after = keyOfCursor(page, readPosition);
    const operations = await reader.loaders.operationPage.load({ stateId: record.id, after, limit });
    return connectionOf(operations.map(readBy(reader)), page, positionOf);
  },
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
  exportable: ({ record }) => record.currentVersionId !== null,
  lockedBy: ({ record, reader }) => reader.loaders.lockHolder.load(record.id),
  versionCount: ({ record, reader }) => reader.loaders.versionCount.load(record.id),
  lastExport: ({ record, reader }) => readOne(reader, ({ lastExport }) => lastExport.load(record.id)),
  lastImport: ({ record, reader }) => readOne(reader, ({ lastImport }) => lastImport.load(record.id)),
};

export const StateArchiveTag: StateArchiveTagResolvers = {
  name: ({ tag }) => tag,
};
