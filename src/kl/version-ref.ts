import type { ArchivedTag, ArchivedVersion, ArchiveManifest } from '../archive/model.ts';
import { isUuid } from '../base/uuid.ts';
import { failure } from './endings.ts';

/**
 * The version that a reference names, as Kilolock's `kl` reads one: `current`, a serial, `@N` for the Nth newest counted
 * from 0 (where `@0` is the current one), the id of a version, or a tag.
 *
 * @throws KlError VERSION_NOT_FOUND.
 */
export function resolveVersion(
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
