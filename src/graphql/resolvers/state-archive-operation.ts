import { parseInt64 } from '../../base/int64.ts';
import { isUtcTime } from '../../base/time.ts';
import { isUuid } from '../../base/uuid.ts';
import { downloadUrl } from '../../operations/downloads.ts';
import {
  listVersionMapping,
  type OperationPosition,
  type VersionMapping,
} from '../../operations/operation-records.ts';
import { type PagedList, pageOf } from '../connection.ts';
import { requirePermission } from '../context.ts';
import { type OperationParent, readOne } from '../parents.ts';
import type {
  StateArchiveFileResolvers,
  StateArchiveImportReportResolvers,
  StateArchiveOperationResolvers,
} from '../schema-types.ts';

/** The operations of an environment or of a state, newest first. */
export const OPERATIONS: PagedList<OperationParent, OperationPosition> = {
  maximum: 100,
  keyOf: ({ createdAt, id }) => `${createdAt} ${id}`,
  readKey(text) {
    const [createdAt = '', id = '', ...more] = text.split(' ');
    return isUtcTime(createdAt) && isUuid(id) && more.length === 0 ? { createdAt, id } : null;
  },
};

/** The versions of an import, lowest serial first. */
const VERSION_MAPPING: PagedList<VersionMapping, bigint> = {
  maximum: 1000,
  keyOf: ({ serial }) => String(serial),
  readKey: parseInt64,
};

export const StateArchiveOperation: StateArchiveOperationResolvers = {
  async __resolveReference({ id }, { reader: open }) {
    return typeof id === 'string'
      ? readOne(await open(null), ({ operationById }) => operationById.load(id))
      : null;
  },

  name: ({ label }) => label,
  progress: ({ progress }) => ({
    ...progress,
    versionsDone: Number(progress.versionsDone),
    versionsTotal: progress.versionsTotal === null ? null : Number(progress.versionsTotal),
  }),
  stateArchive: ({ stateId, reader }) =>
    stateId === null ? null : readOne(reader, ({ stateById }) => stateById.load(stateId)),
  replaced: ({ replacedOperationId: id, reader }) =>
    id === null ? null : readOne(reader, ({ operationById }) => operationById.load(id)),
  archive: (operation) => operation.archive && { ...operation.archive, ...operation.retention, operation },

  async versionMapping({ id, kind, stateId, reader }, page) {
    // An import has a state once it has succeeded, and a dry run never.
    const isThere = kind === 'IMPORT' && stateId !== null;
    const mapping = await pageOf(VERSION_MAPPING, page, async (position) => {
      requirePermission(reader, 'state.import');
      return isThere ? listVersionMapping(reader.caller.database.for('read'), id, position) : [];
    });
    return isThere ? mapping : null;
  },
};

export const StateArchiveFile: StateArchiveFileResolvers = {
  downloadUrl({ operation }, _arguments, { publicUrl, services }) {
    const { reader } = operation;
    requirePermission(reader, 'state.export');
    return downloadUrl(services, operation, reader.caller, publicUrl);
  },
};

export const StateArchiveImportReport: StateArchiveImportReportResolvers = {
  replacedVersionCount: ({ replacedVersions }) => replacedVersions,
  versionCount: ({ versions }) => versions,
  normalisedVersionCount: ({ normalisedVersions }) => normalisedVersions,
  tagCount: ({ tags }) => tags,
  eventCount: ({ events }) => events,
  resourceSpanCount: ({ resourceSpans }) => resourceSpans,
  outputCount: ({ outputs }) => outputs,
};
