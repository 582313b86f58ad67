import { downloadUrl } from '../../operations/downloads.ts';
import { listVersionMapping } from '../../operations/operation-records.ts';
import { connectionOf, keyOfCursor, pageLimit } from '../connection.ts';
import { parseInt64 } from '../int64.ts';
import type {
  StateArchiveFileResolvers,
  StateArchiveImportReportResolvers,
  StateArchiveOperationProgressResolvers,
  StateArchiveOperationResolvers,
  StateArchiveUserErrorResolvers,
} from '../schema-types.ts';

export const StateArchiveOperation: StateArchiveOperationResolvers = {
  async __resolveReference({ id }, { loaders }) {
    return typeof id === 'string' ? loaders.operationById.load(id) : null;
  },

  stateArchive: ({ stateId }, _arguments, { loaders }) =>
    stateId === null ? null : loaders.stateById.load(stateId),
  replaced: ({ replacedOperationId }, _arguments, { loaders }) =>
    replacedOperationId === null ? null : loaders.operationById.load(replacedOperationId),
  archive: (operation) => (operation.archive === null ? null : { operation, archive: operation.archive }),

  async versionMapping({ id, kind, stateId }, page, { services }) {
    const limit = pageLimit(page, 1000);
    const after = keyOfCursor(page, parseInt64);
    // An import has a state once it has succeeded, and a dry run never.
    if (kind !== 'IMPORT' || stateId === null) return null;
    const mapping = await listVersionMapping(services.database.db, id, { after, limit });
    return connectionOf(mapping, page, ({ serial }) => String(serial));
  },
};

export const StateArchiveOperationProgress: StateArchiveOperationProgressResolvers = {
  versionsDone: ({ versionsDone }) => Number(versionsDone),
  versionsTotal: ({ versionsTotal }) => (versionsTotal === null ? null : Number(versionsTotal)),
};

export const StateArchiveFile: StateArchiveFileResolvers = {
  sha256: ({ archive }) => archive.sha256,
  sizeBytes: ({ archive }) => archive.sizeBytes,
  historyDigest: ({ archive }) => archive.historyDigest,
  fileName: ({ archive }) => archive.fileName,
  downloadUrl: async ({ operation }, _arguments, { principal, publicUrl, services }) =>
    principal === null ? null : downloadUrl(services, operation, { subject: principal.subject, publicUrl }),
};

export const StateArchiveImportReport: StateArchiveImportReportResolvers = {
  replacedVersionCount: ({ replacedVersions }) => replacedVersions,
  versionCount: ({ versions }) => versions,
  tagCount: ({ tags }) => tags,
  eventCount: ({ events }) => events,
  resourceSpanCount: ({ resourceSpans }) => resourceSpans,
  outputCount: ({ outputs }) => outputs,
  warnings: ({ warnings }) => [...warnings],
};

export const StateArchiveUserError: StateArchiveUserErrorResolvers = {
  path: ({ path }) => (path === null ? null : [...path]),
};
