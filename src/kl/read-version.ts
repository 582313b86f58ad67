import { ArchiveError } from '../archive/errors.ts';
import type { ArchivedTag, ArchivedVersion, ArchiveManifest } from '../archive/model.ts';
import type { VerifiedArchive } from '../archive/reader.ts';
import { readInto } from '../base/read-into.ts';
import { archiveMembers, type Reading } from './archive-input.ts';
import type { Work } from './progress.ts';
import { resolveVersion } from './version-ref.ts';

/** One raw state of an archive, whole in memory. */
export interface RawStateBytes {
  readonly version: ArchivedVersion;
  readonly bytes: Buffer;
}

/** What was read of an archive, and of one version in it. */
export type VersionReading =
  | { readonly damage: null; readonly archive: VerifiedArchive; readonly found: RawStateBytes }
  | {
      /** Why the archive could not be read to its end. */
      readonly damage: ArchiveError;
      /** The version, if it was read before: nothing proves it. */
      readonly found: RawStateBytes | null;
      /** Serials of the versions that were read to their ends. */
      readonly whole: readonly bigint[];
    };

/**
 * Reads a whole archive, and keeps one raw state of it.
 *
 * @param reference which one; see {@link resolveVersion}.
 * @throws KlError VERSION_NOT_FOUND, FILE_UNUSABLE.
 */
export async function readVersion(
  path: string,
  reference: string,
  how: Reading,
  work?: Work,
): Promise<VersionReading> {
  let manifest: ArchiveManifest | null = null;
  let tags: readonly ArchivedTag[] = [];
  let wanted: ArchivedVersion | null = null;
  let found: RawStateBytes | null = null;
  let reading: bigint | null = null;
  const whole: bigint[] = [];
  try {
    await using members = archiveMembers(path, how, work);
    for (;;) {
      const step = await members.next();
      if (reading !== null) whole.push(reading);
      reading = null;
      if (step.done) {
        if (found === null) throw new Error('unreachable: a whole archive holds each of its versions');
        return { damage: null, archive: step.value, found };
      }
      const member = step.value;
      if (member.kind === 'manifest') manifest = member.manifest;
      if (member.kind === 'tags') tags = member.tags;
      if (member.kind !== 'version' || manifest === null) continue;
      wanted ??= resolveVersion(reference, manifest, tags);
      reading = member.version.serial;
      if (reading !== wanted.serial) continue;
      const bytes = Buffer.allocUnsafeSlow(member.byteLength);
      await readInto(bytes, member.content);
      found = { version: member.version, bytes };
    }
  } catch (error) {
    if (error instanceof ArchiveError) return { damage: error, found, whole };
    throw error;
  }
}
