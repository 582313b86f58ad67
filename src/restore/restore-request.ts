import { readArchiveFile } from '../archive/archive-file.ts';
import type { ArchiveLimits } from '../archive/format.ts';
import type { ArchiveManifest } from '../archive/model.ts';
import { type ArchiveMember, readArchive, type VerifiedArchive } from '../archive/reader.ts';
import type { RowPaths } from '../inspection/spooled-rows.ts';
import type { PlacementRequest } from './placement.ts';

/** What is to be restored, and where. */
export interface RestoreRequest extends PlacementRequest {
  /** The archive; the file must not change until the restore is over. */
  readonly archivePath: string;
  /** What the archive may cost to read. */
  readonly limits: ArchiveLimits;
  readonly dryRun: boolean;
  /** Ends the work early; nothing is left behind. */
  readonly signal: AbortSignal;
}

/** Where a restore puts its rows aside between plan and apply. */
export function rowPathsOf({ archivePath }: Pick<RestoreRequest, 'archivePath'>): RowPaths {
  return { resources: `${archivePath}.resources`, outputs: `${archivePath}.outputs` };
}

/** The members of the archive, verified as they are read; see {@link readArchive}. */
export function archiveMembers({
  archivePath,
  limits,
  signal,
}: Pick<RestoreRequest, 'archivePath' | 'limits' | 'signal'>): AsyncGenerator<
  ArchiveMember,
  VerifiedArchive,
  void
> {
  return readArchive(readArchiveFile(archivePath, { signal }), limits);
}

/** What comes out of a decoder at once, and may reach beyond the manifest. */
const UNPACKED_IN_ONE_GO = 1024 * 1024;

/**
 * The manifest of an archive, read from its beginning: what the file claims to be, before it is verified. Hardly more than
 * a manifest may have is unpacked, whatever is wrong with it.
 *
 * @param bytes the file; left as soon as the manifest is known.
 * @throws ArchiveError when the file does not begin as an archive; what `bytes` throws.
 */
export async function readManifest(
  bytes: AsyncIterable<Uint8Array>,
  limits: ArchiveLimits,
): Promise<ArchiveManifest> {
  const maxTotalBytes = BigInt(limits.maxMetadataBytes + UNPACKED_IN_ONE_GO);
  const bounded = {
    ...limits,
    maxTotalBytes: maxTotalBytes < limits.maxTotalBytes ? maxTotalBytes : limits.maxTotalBytes,
  };
  for await (const member of readArchive(bytes, bounded)) {
    if (member.kind === 'manifest') return member.manifest;
  }
  throw new Error('An archive was read to its end without a manifest.');
}
