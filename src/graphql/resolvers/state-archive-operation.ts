import { parseInt64 } from '../../base/int64.ts';
import { downloadUrl } from '../../operations/downloads.ts';
import { listVersionMapping } from '../../operations/operation-records.ts';
import { connectionOf, keyOfCursor, pageLimit } from '../connection.ts';
import { readOne } from '../parents.ts';
import { requirePermission } from '../reader.ts';
import type {
  StateArchiveFileResolvers,
  StateArchiveImportReportResolvers,
  StateArchiveOperationResolvers,
} from '../schema-types.ts';

export const StateArchiveOperation: StateArchiveOperationResolvers = {
  async __resolveReference({ id }, { reader: open }) {
    return typeof id === 'string'
      ? readOne(await open(null), ({ operationById }) => operationById.load(id))
      : null;
  },

  id: ({ record }) => record.id,
  kind: ({ record }) => record.kind,
  name: ({ record }) => record.label,
  status: ({ record }) => record.status,
  progress: ({ record: { progress } }) => ({
    ...progress,
    versionsDone: Number(progress.versionsDone),
    versionsTotal: progress.versionsTotal === null ? null : Number(progress.versionsTotal),
  }),
  actor: ({ record }) => record.actor,
  createdAt: ({ record }) => record.createdAt,
  startedAt: ({ record }) => record.startedAt,
  finishedAt: ({ record }) => record.finishedAt,
  expiresAt: ({ record }) => record.expiresAt,
  report: ({ record }) => record.report,
  error: ({ record }) => record.error,
  stateArchive: ({ record: { stateId }, reader }) =>
    stateId === null ? null : readOne(reader, ({ stateById }) => stateById.load(stateId)),
  replaced: ({ record: { replacedOperationId: id }, reader }) =>
    id === null ? null : readOne(reader, ({ operationById }) => operationById.load(id)),
  archive: ({ record, reader }) =>
    record.archive === null ? null : { record, reader, archive: record.archive },

  async versionMapping({ record, reader }, page) {
    const limit = pageLimit(page, 1000);
    const after = keyOfCursor(page, parseInt64);
    requirePermission(reader, 'state.import');
    // An import has a state once it has succeeded, and a dry run never.
    if (record.kind !== 'IMPORT' || record.stateId === null) return null;
    const mapping = await listVersionMapping(reader.caller.database.for('read'), record.id, { after, limit });
    return connectionOf(mapping, page, ({ serial }) => String(serial));
  },
};

export const StateArchiveFile: StateArchiveFileResolvers = {
  sha256: ({ archive }) => archive.sha256,
  sizeBytes: ({ archive }) => archive.sizeBytes,
  historyDigest: ({ archive }) => archive.historyDigest,
  fileName: ({ archive }) => archive.fileName,
  retainUntil: ({ record }) => record.retention.retainUntil,
  legalHold: ({ record }) => record.retention.legalHold,
  downloadUrl({ record, reader }, _arguments, { publicUrl, services }) {
    requirePermission(reader, 'state.export');
    return downloadUrl(services, record, reader.caller, publicUrl);
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
