/** Format name and major version, as `manifest.json` carries it in `archive_format`. */
export const ARCHIVE_FORMAT = 'kilolock-state-archive/v1';

/** Media type of an archive in HTTP headers. */
const ARCHIVE_MEDIA_TYPE = 'application/vnd.kilolock.state-archive';

/** File name extension of an archive, dot included. */
export const ARCHIVE_FILE_EXTENSION = '.klstate';

/** What is added to it when the file is encrypted with age. */
export const SEALED_FILE_EXTENSION = '.age';

/** The media type of an archive's file in HTTP headers, by its name: there is none for what age encrypts. */
export function mediaTypeOf(fileName: string): string {
  return fileName.endsWith(SEALED_FILE_EXTENSION) ? 'application/octet-stream' : ARCHIVE_MEDIA_TYPE;
}

/**
 * Features an archive may demand in `required_features` and this reader understands. v1 begins with none: the
 * list exists so that a later writer can make an older reader refuse instead of misread.
 */
export const SUPPORTED_FEATURES: readonly string[] = [];

/**
 * The feature of an archive that values were taken out of for a hand-over. Only who looks into one understands it: whoever
 * restores would take it for the history.
 */
export const REDACTED_FEATURE = 'redacted';

/** Base-2 logarithm of the largest zstd window: 128 MiB, the most that `zstd -d` opens without a flag. */
export const MAX_ZSTD_WINDOW_LOG = 27;

/** Base-2 logarithm of the smallest zstd window there is (RFC 8878, 3.1.1.1.2). */
export const MIN_ZSTD_WINDOW_LOG = 10;

/** Names of the members that are not versions, in the order they stand in an archive. */
export const MEMBER = {
  manifest: 'manifest.json',
  tags: 'tags.json',
  events: 'events.ndjson',
  resources: 'resources.ndjson',
  exportRecord: 'export.json',
  sums: 'SHA256SUMS',
  attestation: 'attestation.dsse.json',
} as const;

/** Name of the member that holds the raw state of the version with this serial. */
export function versionMemberName(serial: bigint): string {
  return `versions/${serial}.tfstate.json`;
}

const VERSION_MEMBER = /^versions\/(0|[1-9][0-9]{0,18})\.tfstate\.json$/;
const FIXED_MEMBERS: ReadonlySet<string> = new Set(Object.values(MEMBER));

/** The serial of the version whose raw state a member of this name holds; null for every other. */
export function serialOfMember(name: string): bigint | null {
  const serial = VERSION_MEMBER.exec(name)?.[1];
  return serial === undefined ? null : BigInt(serial);
}

/** Whether the format knows a member of this name, wherever it may stand. */
export function isMemberName(name: string): boolean {
  return FIXED_MEMBERS.has(name) || VERSION_MEMBER.test(name);
}

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

/**
 * Limits that no honest archive of a Kilolock state meets: PostgreSQL's jsonb ends at a document of 2^28 - 1 bytes (data
 * model, trap 3), and 100 000 versions are a write every five minutes for a year.
 */
export const DEFAULT_ARCHIVE_LIMITS = {
  /** The file as stored, compressed. */
  maxArchiveBytes: BigInt(8 * GIB),
  /** The whole tar, decompressed. */
  maxTotalBytes: BigInt(64 * GIB),
  /** One version's raw state. */
  maxVersionBytes: 256 * MIB - 1,
  /** Each of the streamed `.ndjson` members: room for five million spans with addresses of two hundred characters. */
  maxMemberBytes: 2 * GIB,
  /** Each member that is held in memory: manifest.json, tags.json, export.json, SHA256SUMS. */
  maxMetadataBytes: 32 * MIB,
  /**
   * One line of an `.ndjson` member: room for the longest payload of an event with every character escaped, and an actor beside
   * it.
   */
  maxRecordBytes: 16 * MIB,
  /** Versions, and likewise tags. */
  maxVersions: 100_000,
  /** Audit events. */
  maxEvents: 1_000_000,
  /**
   * Decompressed bytes per compressed byte, looked at once 16 MiB have come out. Successive versions of a state
   * are nearly equal, so honest archives reach thousands; the absolute limits stop what this lets through.
   */
  maxExpansionRatio: 20_000,
};

/**
 * The most a reader spends on one archive. Sizes are bytes. Beyond any of them the reader stops at once with
 * ARCHIVE_TOO_LARGE.
 */
export type ArchiveLimits = typeof DEFAULT_ARCHIVE_LIMITS;

/** Decompressed bytes below which the expansion ratio is not judged: little that repeats is no bomb. */
export const EXPANSION_RATIO_GRACE_BYTES = 16 * MIB;

/**
 * Longest text in an archive, in bytes of UTF-8, but for raw states, payloads, and what has a bound of its own. Whatever
 * holds for a reader holds for an export too: nothing leaves that could not come back.
 */
export const MAX_TEXT_BYTES: number = MIB;

/**
 * Longest kind of an event, in bytes of UTF-8. Kilolock's are words of a program; its table's index ends at about 2 700
 * bytes (data model, "btree limits").
 */
export const MAX_EVENT_KIND_BYTES = 255;

/** Largest attestation.dsse.json a reader keeps. */
export const MAX_ATTESTATION_BYTES = 64 * KIB;

/** Most signatures in one: each is checked with each trusted key. */
export const MAX_SIGNATURES = 16;
