import type { VersionRecord } from '../../history/versions.ts';
import type { Loaders } from '../loaders.ts';
import type { StateArchiveVersionResolvers } from '../schema-types.ts';

export const StateArchiveVersion: StateArchiveVersionResolvers = {
  sizeBytes: async (version, _arguments, { loaders }) => (await factsOf(version, loaders)).byteLength,
  sha256: async (version, _arguments, { loaders }) => (await factsOf(version, loaders)).sha256,
  tags: async ({ id, stateId }, _arguments, { loaders }) =>
    (await loaders.tags.load(stateId)).filter(({ versionId }) => versionId === id),
  resourceCount: async (version, _arguments, { loaders }) => (await contentsOf(version, loaders)).resources,
  changes: contentsFor,
  outputNames: async ({ id }, _arguments, { loaders }) => [...(await loaders.outputNames.load(id))],
  rawState: ({ id }, _arguments, { loaders }) => loaders.rawState.load(id),
};

function contentsFor(version: VersionRecord, _arguments: unknown, { loaders }: { loaders: Loaders }) {
  return contentsOf(version, loaders);
}

async function contentsOf({ id }: VersionRecord, { contents }: Loaders) {
  return found(await contents.load(id));
}

async function factsOf(version: VersionRecord, { rawStateFacts }: Loaders) {
  return found(await rawStateFacts.load(version));
}

/** A version that was there a moment ago is only gone when its whole state was destroyed meanwhile. */
function found<Value>(value: Value | null): Value {
  if (value === null) throw new Error('The version was destroyed while it was read.');
  return value;
}
