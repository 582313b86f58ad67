import type { VersionParent } from '../parents.ts';
import { requirePermission } from '../reader.ts';
import type { StateArchiveVersionResolvers } from '../schema-types.ts';

export const StateArchiveVersion: StateArchiveVersionResolvers = {
  id: ({ record }) => record.id,
  serial: ({ record }) => record.serial,
  isCurrent: ({ record }) => record.isCurrent,
  terraformVersion: ({ record }) => record.terraformVersion,
  source: ({ record }) => record.source,
  createdAt: ({ record }) => record.createdAt,
  createdBy: ({ record }) => record.createdBy,
  sizeBytes: async (version) => (await factsOf(version)).byteLength,
  sha256: async (version) => (await factsOf(version)).sha256,
  tags: async ({ record, reader }) =>
    (await reader.loaders.tags.load(record.stateId)).filter(({ versionId }) => versionId === record.id),
  resourceCount: async (version) => (await contentsOf(version)).resources,
  changes: (version) => contentsOf(version),
  outputNames: ({ record, reader }) => reader.loaders.outputNames.load(record.id),
  async rawState({ record, reader }) {
    requirePermission(reader, 'state.raw.read');
    return (await reader.loaders.rawState.load(record.id))?.take() ?? null;
  },
};

async function contentsOf({ record, reader }: VersionParent) {
  return found(await reader.loaders.contents.load(record.id));
}

async function factsOf({ record, reader }: VersionParent) {
  return found(await reader.loaders.rawStateFacts.load(record));
}

/** A version that was there a moment ago is only gone when its whole state was destroyed meanwhile. */
function found<Value>(value: Value | null): Value {
  if (value === null) throw new Error('The version was destroyed while it was read.');
  return value;
}
