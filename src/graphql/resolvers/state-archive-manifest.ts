import { ARCHIVE_FORMAT } from '../../archive/format.ts';
import type { StateArchiveManifestResolvers } from '../schema-types.ts';

export const StateArchiveManifest: StateArchiveManifestResolvers = {
  archiveFormat: () => ARCHIVE_FORMAT,
  name: ({ state }) => state.label,
  lineage: ({ preview }) => preview.lineage,
  currentSerial: ({ preview }) => preview.currentSerial,
  currentVersionId: ({ preview }) => preview.currentVersionId,
  firstSerial: ({ preview }) => preview.firstSerial,
  lastSerial: ({ preview }) => preview.lastSerial,
  versionCount: ({ preview }) => preview.versionCount,
  tagCount: ({ preview }) => preview.tagCount,
  eventCount: ({ preview }) => preview.eventCount,
  resourceSpanCount: ({ preview }) => preview.resourceSpanCount,
  rawBytes: ({ preview }) => preview.rawBytes,
  historyDigest: ({ preview }) => preview.historyDigest,
  sources: ({ preview }) => [...preview.sources],
  terraformVersions: ({ preview }) => [...preview.terraformVersions],
  firstCreatedAt: ({ preview }) => preview.firstCreatedAt,
  lastCreatedAt: ({ preview }) => preview.lastCreatedAt,
};
