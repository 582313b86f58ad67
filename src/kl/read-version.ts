import type { ArchivedTag, ArchivedVersion, ArchiveManifest } from '../archive/model.ts';
import { readInto } from '../base/read-into.ts';
import { isUuid } from '../base/uuid.ts';
import { type Reading, type ReadThrough, readThrough } from './archive-input.ts';
import { failure } from './endings.ts';
import type { Work } from './progress.ts';

/** One raw state of an archive, whole in memory. */
interface RawStateBytes {
  readonly version: ArchivedVersion;
  readonly bytes: Buffer;
}

/**
 * Reads a whole archive, and keeps one raw state of it.
 *
 * @param reference which one: `current`, a serial, `@N` for the Nth newest counted from 0 (where `@0` is the current one), the
 *   id of a version, or a tag, as Kilolock's `kl` reads one.
 * @returns with `found`, the version: null where a damaged archive was not read as far; if it was, nothing proves it.
 * @throws KlError VERSION_NOT_FOUND, FILE_UNUSABLE.
 */
export async function readVersion(
  path: string,
  reference: string,
  how: Reading,
  work?: Work,
): Promise<ReadThrough & { readonly found: RawStateBytes | null }> {
  let manifest: ArchiveManifest | null = null;
  let tags: readonly ArchivedTag[] = [];
  let wanted: ArchivedVersion | null = null;
  let found: RawStateBytes | null = null;
  const read = await readThrough(path, how, work, async (member) => {
    if (member.kind === 'manifest') manifest = member.manifest;
    if (member.kind === 'tags') tags = member.tags;
    if (member.kind !== 'version' || manifest === null) return;
    wanted ??= resolveVersion(reference, manifest, tags);
    if (member.version.serial !== wanted.serial) return;
    const bytes = Buffer.allocUnsafeSlow(member.byteLength);
    await readInto(bytes, member.content);
    found = { version: member.version, bytes };
  });
  return { ...read, found };
}

/** @throws KlError VERSION_NOT_FOUND. */
function resolveVersion(
  reference: string,
  { state, versions }: ArchiveManifest,
  tags: readonly ArchivedTag[],
): ArchivedVersion {
  const bySerial = (serial: bigint | undefined) => versions.find((version) => version.serial === serial);
  const find = () => {
    if (reference === 'current' || reference === '@0') return bySerial(state.currentSerial);
    if (/^@\d{1,9}$/.test(reference)) return versions.at(-1 - Number(reference.slice(1)));
    if (/^\d{1,19}$/.test(reference)) return bySerial(BigInt(reference));
    if (isUuid(reference)) return versions.find(({ id }) => id === reference.toLowerCase());
    return bySerial(tags.find(({ tag }) => tag === reference)?.serial);
  };
  const found = find();
  if (found !== undefined) return found;
  throw failure('VERSION_NOT_FOUND', `The archive has no version ${JSON.stringify(reference)}.`, {
    advice: `It has serials ${versions[0]?.serial} to ${versions.at(-1)?.serial}; a version is named by serial, @N, tag, id or "current".`,
  });
}
