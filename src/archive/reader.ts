import { Digested } from '../base/digested.ts';
import { type FileOptions, readArchiveFile } from './archive-file.ts';
import { type ArchiveSignature, checkAttestation } from './attestation.ts';
import { Consistency } from './consistency.ts';
import { openContainer } from './container.ts';
import { ArchiveError, quoted } from './errors.ts';
import {
  type ArchiveLimits,
  DEFAULT_ARCHIVE_LIMITS,
  MAX_ATTESTATION_BYTES,
  MEMBER,
  REDACTED_FEATURE,
  SUPPORTED_FEATURES,
  versionMemberName,
} from './format.ts';
import { historyDigest } from './history-digest.ts';
import { MemberWalk } from './member-walk.ts';
import {
  type Decoded,
  type DocumentMember,
  decodeManifest,
  EVENTS,
  EXPORT_RECORD,
  type LinesMember,
  MANIFEST,
  RESOURCES,
  TAGS,
} from './metadata.ts';
import type {
  ArchiveCounts,
  ArchivedEvent,
  ArchivedResource,
  ArchivedTag,
  ArchivedVersion,
  ArchiveManifest,
  ExportRecord,
  VersionDigest,
} from './model.ts';
import { type SignatureTrust, TRUST_NOBODY } from './signing-keys.ts';
import { checkSums } from './sums.ts';

/** Something a person should know of an archive that is nevertheless valid. */
export interface ArchiveWarning {
  /**
   * `UNKNOWN_FIELDS`: a member has fields this reader does not know and left out.
   * `ATTESTATION_NOT_VERIFIED`: there is an attestation, and none of its signatures is of a key that is trusted.
   */
  code: 'UNKNOWN_FIELDS' | 'ATTESTATION_NOT_VERIFIED';
  member: string;
  /** How many times, over the whole member. */
  count: number;
  /** A sentence. */
  message: string;
}

/** What {@link readArchive} yields, in the order of the file. */
export type ArchiveMember =
  | { kind: 'manifest'; manifest: ArchiveManifest }
  | { kind: 'tags'; tags: readonly ArchivedTag[] }
  | { kind: 'event'; event: ArchivedEvent }
  | { kind: 'resource'; resource: ArchivedResource }
  | { kind: 'export'; exportRecord: ExportRecord }
  | {
      kind: 'version';
      version: ArchivedVersion;
      byteLength: number;
      /**
       * The raw state; readable once, until the next member is asked for, and each piece until the next piece is. What is not
       * read is skipped.
       */
      content: AsyncIterable<Uint8Array>;
    };

/** An archive read to its end and found whole. */
export interface VerifiedArchive {
  manifest: ArchiveManifest;
  tags: readonly ArchivedTag[];
  exportRecord: ExportRecord;
  /** In ascending serial order. */
  versionDigests: readonly VersionDigest[];
  /** Sum of the raw states' lengths. */
  rawBytes: bigint;
  historyDigest: string;
  /** SHA-256 of the file as stored, lower-case hex. */
  sha256: string;
  /** Length of the file as stored. */
  sizeBytes: bigint;
  /** Whether the archive has resources.ndjson; without it the spans have to be derived. */
  hasResources: boolean;
  counts: ArchiveCounts;
  /** What its attestation is worth; null when it has none. */
  signature: ArchiveSignature | null;
  warnings: readonly ArchiveWarning[];
}

/** How {@link readArchive} reads. */
export interface ReadOptions {
  /** {@link DEFAULT_ARCHIVE_LIMITS} unless given. */
  limits?: ArchiveLimits | undefined;
  /** {@link TRUST_NOBODY} unless given. */
  trust?: SignatureTrust | undefined;
  /** Whether one is read, too, that values were taken out of: for who looks into archives, never for who restores them. */
  redacted?: boolean | undefined;
}

/** The members of an archive as they come, verified once it was read to its end. */
export type ArchiveMembers = AsyncGenerator<ArchiveMember, VerifiedArchive, void>;

/**
 * Reads an archive in one pass, holding its metadata and one chunk of a raw state at a time, and yields the
 * members as they come. **What has been yielded is verified only when the generator returns**: the sums stand
 * at the end of the file, so keep nothing before that. Leaving the loop early closes the source.
 *
 * @param source The file, from its first byte to its last.
 * @throws ArchiveError with the code that says what is wrong; an error of the source comes out unchanged.
 */
export async function* readArchive(
  source: AsyncIterable<Uint8Array>,
  { limits = DEFAULT_ARCHIVE_LIMITS, trust = TRUST_NOBODY, redacted = false }: ReadOptions = {},
): ArchiveMembers {
  const file = new Digested(source);
  const { tar, checkWindow } = openContainer(file, limits);
  const walk = new MemberWalk(tar);
  try {
    const unknown = new Map<string, number>();
    const note = <T>(member: string, { value, unknownFields }: Decoded<T>): T => {
      if (unknownFields > 0) unknown.set(member, (unknown.get(member) ?? 0) + unknownFields);
      return value;
    };
    const whole = async (name: string, limit = limits.maxMetadataBytes) => {
      await walk.take(name, limit);
      return await walk.readAll();
    };
    const document = async <T>(member: DocumentMember<T>) =>
      note(member.name, member.decode(await whole(member.name), limits));
    const lines = async <T>({ name, decode }: LinesMember<T>) => {
      await walk.take(name, limits.maxMemberBytes);
      return walk.lines(limits.maxRecordBytes, (line, number) => note(name, decode(line, number)));
    };

    const features = redacted ? [...SUPPORTED_FEATURES, REDACTED_FEATURE] : SUPPORTED_FEATURES;
    const manifest = note(MANIFEST.name, decodeManifest(await whole(MANIFEST.name), limits, features));
    checkWindow(manifest.zstdWindowLog);
    const consistency = new Consistency(manifest, limits);
    yield { kind: 'manifest', manifest };

    const { tags } = await document(TAGS);
    consistency.checkTags(tags);
    yield { kind: 'tags', tags };

    for await (const event of await lines(EVENTS)) {
      consistency.checkEvent(event);
      yield { kind: 'event', event };
    }
    consistency.checkCount('events');

    // It may be absent only from an archive that says it has no spans.
    const hasResources = manifest.counts.resources > 0 || (await walk.isNext(RESOURCES.name));
    if (hasResources) {
      for await (const resource of await lines(RESOURCES)) {
        consistency.checkResource(resource);
        yield { kind: 'resource', resource };
      }
      consistency.checkCount('resources');
    }

    const exportRecord = await document(EXPORT_RECORD);
    yield { kind: 'export', exportRecord };

    const versions: (ArchivedVersion & VersionDigest)[] = [];
    for (const version of manifest.versions) {
      const byteLength = await walk.take(versionMemberName(version.serial), limits.maxVersionBytes);
      yield { kind: 'version', version, byteLength, content: walk.content() };
      const { sha256 } = await walk.finish();
      versions.push({ ...version, byteLength, sha256 });
    }

    const sums = await whole(MEMBER.sums);
    checkSums(sums, walk.finished.slice(0, -1));

    const attestation = (await walk.isNext(MEMBER.attestation))
      ? await whole(MEMBER.attestation, MAX_ATTESTATION_BYTES)
      : null;
    await walk.expectEnd();
    const { state } = manifest;
    const { lineage, currentSerial } = state;
    const digest = historyDigest({ lineage, currentSerial, versions, tags });
    const attested = { sums, historyDigest: digest, state, exportRecord };
    const signature = checkAttestation(attestation, attested, trust, limits);

    return {
      manifest,
      tags,
      exportRecord,
      versionDigests: versions.map(({ serial, sha256, byteLength }) => ({ serial, sha256, byteLength })),
      rawBytes: versions.reduce((sum, { byteLength }) => sum + BigInt(byteLength), 0n),
      historyDigest: digest,
      sha256: file.sha256(),
      sizeBytes: BigInt(file.length),
      hasResources,
      counts: manifest.counts,
      signature,
      warnings: [
        ...Array.from(unknown, unknownFields),
        ...(signature?.verified === false ? [notVerified(signature)] : []),
      ],
    };
  } catch (error) {
    throw error instanceof ArchiveError ? await nameDamage(error, walk.reading, tar) : error;
  } finally {
    await tar.return();
  }
}

/** How far an archive that is refused already is unpacked, to learn whether it is a damaged one. */
const SEARCH_FOR_DAMAGE_BYTES = 64 * 1024 * 1024;

/**
 * The truest name for what is wrong. A damaged container shows first as nonsense in what it unpacks to, and only its end,
 * where the checksum stands, tells damage from an archive that was written wrong. Of a large archive the end is not waited
 * for: a refusal costs a bounded amount.
 */
export async function nameDamage(
  error: ArchiveError,
  reading: string | null,
  tar: AsyncGenerator<Uint8Array>,
): Promise<ArchiveError> {
  const member = error.member ?? reading;
  const located = (found: ArchiveError) =>
    found.member !== null || member === null
      ? found
      : new ArchiveError(found.code, `${found.message}; it shows in ${member}`, member, { cause: found });
  let unpacked = 0;
  try {
    for await (const chunk of tar) {
      unpacked += chunk.length;
      if (unpacked > SEARCH_FOR_DAMAGE_BYTES) break;
    }
  } catch (damage) {
    if (damage instanceof ArchiveError && damage.code !== 'ARCHIVE_TOO_LARGE') return located(damage);
  }
  return located(error);
}

/**
 * Reads the archive at `path` to its end and says what it is.
 *
 * @throws ArchiveError with the code that says what is wrong; errors of the file system, and of `grown`, come out unchanged.
 */
export async function verifyArchive(
  path: string,
  { grown, signal, ...options }: FileOptions & ReadOptions = {},
): Promise<VerifiedArchive> {
  return verified(readArchive(readArchiveFile(path, { grown, signal }), options));
}

/**
 * Reads an archive to its end, and has each member looked at. Where that fails the source is closed, as soon as that can be: one
 * that is still being written may have to grow before.
 */
export async function verified(
  members: ArchiveMembers,
  look: (member: ArchiveMember) => void | Promise<void> = () => {},
): Promise<VerifiedArchive> {
  try {
    for (;;) {
      const next = await members.next();
      if (next.done) return next.value;
      await look(next.value);
    }
  } catch (error) {
    members.return(undefined as never).catch(() => {});
    throw error;
  }
}

function unknownFields([member, count]: [string, number]): ArchiveWarning {
  const message = `${member} has fields that this version does not know, and they are left out: ${count} in all.`;
  return { code: 'UNKNOWN_FIELDS', member, count, message };
}

function notVerified({ keyIds }: ArchiveSignature): ArchiveWarning {
  return {
    code: 'ATTESTATION_NOT_VERIFIED',
    member: MEMBER.attestation,
    count: 1,
    message: `The archive is signed by ${keyIds.map(quoted).join(', ')}, whom nobody here trusts: who made it is not known.`,
  };
}
