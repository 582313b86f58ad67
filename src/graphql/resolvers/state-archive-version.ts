import { requirePermission } from '../context.ts';
import type { VersionParent } from '../parents.ts';
import type { StateArchiveVersionResolvers } from '../schema-types.ts';

export const StateArchiveVersion: StateArchiveVersionResolvers = {
  sizeBytes: async (version) => (await factsOf(version)).byteLength,
  sha256: async (version) => (await factsOf(version)).sha256,
  tags: async ({ id, stateId, reader }) =>
    (await reader.loaders.tags.load(stateId)).filter(({ versionId }) => versionId === id),
  resourceCount: async (version) => (await contentsOf(version)).resources,
  changes: (version) => contentsOf(version),
  outputNames: ({ id, reader }) => reader.loaders.outputNames.load(id),
  async rawState({ id, reader }) {
    requirePermission(reader, 'state.raw.read');
    return (await reader.loaders.rawState.load(id))?.take() ?? null;
  },
};

async function contentsOf({ id, reader }: VersionParent) {
  return found(await reader.loaders.contents.load(id));
}

async function factsOf(version: VersionParent) {
  return found(await version.reader.loaders.rawStateFacts.load(version));
}

/** A version that was there a moment ago is only gone when its whole state was destroyed meanwhile. */
function found<Value>(value: Value | null): Value {
  if (value === null) throw new Error('The version was destroyed while it was read.');
  return value;
}
