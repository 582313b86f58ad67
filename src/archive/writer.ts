import { createHash } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { flush } from '../base/flush.ts';
import { abortable, unlessAborted } from './abortable.ts';
import { encodeAttestation } from './attestation.ts';
import { Consistency } from './consistency.ts';
import { ArchiveError } from './errors.ts';
import {
  DEFAULT_ARCHIVE_LIMITS,
  MAX_ATTESTATION_BYTES,
  MAX_ZSTD_WINDOW_LOG,
  MEMBER,
  versionMemberName,
} from './format.ts';
import { byTagName, HistoryDigest } from './history-digest.ts';
import {
  decodeExportRecord,
  decodeManifest,
  decodeTags,
  encodeEvent,
  encodeExportRecord,
  encodeManifest,
  encodeResource,
  encodeTags,
} from './metadata.ts';
import type {
  ArchiveCounts,
  ArchivedEvent,
  ArchivedResource,
  ArchivedState,
  ArchivedTag,
  ArchivedVersion,
  ArchiveManifest,
  ExportRecord,
  HistoryProgress,
  RawState,
  VersionDigest,
} from './model.ts';
import { verifyArchive } from './reader.ts';
import { type ArchiveSigner, type SignatureTrust, TRUST_NOBODY } from './signing-keys.ts';
import { type Spool, spoolLines } from './spool.ts';
import { encodeSums } from './sums.ts';
import { TAR_END, tarHeader, tarPadding } from './tar.ts';
import { ZstdFile } from './zstd-file.ts';

/** Everything that goes into one archive. */
export interface ArchiveContents {
  state: ArchivedState;
  /** In ascending serial order. */
  versions: readonly ArchivedVersion[];
  /** In any order; the archive holds them sorted. */
  tags: readonly ArchivedTag[];
  /** Read to its end before `resources`. */
  events: AsyncIterable<ArchivedEvent>;
  /** Read to its end before `rawStates`; null leaves resources.ndjson out. */
  resources: AsyncIterable<ArchivedResource> | null;
  exportRecord: ExportRecord;
  /** Whether the raw states are the text that PostgreSQL's jsonb gives out; null where nobody knows. */
  rawStateText: ArchiveManifest['rawStateText'];
  /** Features that a reader has to know; none unless given. */
  requiredFeatures?: readonly string[] | undefined;
  /** Length in bytes of the longest raw state, or what it is taken for: too short a length costs compression alone. */
  longestRawState: number;
  /** One for each of `versions`, in the same order. Each content is read to its end before the next is asked for. */
  rawStates: AsyncIterable<RawState>;
}

/** What was written, as the reader found it. */
export interface WrittenArchive {
  /** SHA-256 of the file, lower-case hex. */
  sha256: string;
  sizeBytes: bigint;
  historyDigest: string;
  /** In ascending serial order. */
  versionDigests: readonly VersionDigest[];
  /** Sum of the raw states' lengths. */
  rawBytes: bigint;
  counts: ArchiveCounts;
}

/**
 * Verifies an archive while it is being written, and says what it is, as {@link verifyArchive} does.
 *
 * @param path The file: it has no name of its own yet, and may be read as far as `grown` says.
 * @param grown How many bytes the file has so far, ascending: the newest whenever it is asked for. It ends when the file is
 *   complete, and throws what the writing failed with.
 */
export type ArchiveCheck = (path: string, grown: AsyncIterable<number>) => Promise<WrittenArchive>;

/** How {@link writeArchive} reports, how it is verified, and how it is stopped. */
export interface WriteOptions {
  /** Called after each version. */
  onProgress?: ((progress: HistoryProgress) => void) | undefined;
  /** Stops the writing; the promise rejects with the signal's reason. A check with an end of its own has to be told. */
  signal?: AbortSignal | undefined;
  /** Signs the archive: it gets an attestation. */
  signer?: ArchiveSigner | undefined;
  /** {@link verifyArchive} in this process unless given. When it throws, the writing ends at once with that error. */
  check?: ArchiveCheck | undefined;
}

/**
 * Writes an archive to `path` in one pass over its contents. The file is written beside it as `<path>.partial`
 * (mode 0600), read and verified from the first byte to the last while it grows, and renamed once it has been verified
 * and flushed: at `path` there is a whole archive or what was there before. After a failure nothing is left of the attempt.
 *
 * One writer at a time may write to a path. Equal contents make equal files, byte for byte.
 *
 * @throws ArchiveError when the contents contradict themselves or each other, are beyond
 *   {@link DEFAULT_ARCHIVE_LIMITS}, or the file read back differs from what was written; errors of the sources, of the
 *   check and of the file system come out unchanged.
 */
export async function writeArchive(
  contents: ArchiveContents,
  path: string,
  options: WriteOptions = {},
): Promise<WrittenArchive> {
  const { onProgress, signal, signer } = options;
  const { check = (file, grown) => verifyArchive(file, { grown, signal, trust: trustOf(signer) }) } = options;
  const partial = `${path}.partial`;
  const spools = { events: `${path}.events.partial`, resources: `${path}.resources.partial` };
  const removeTemporaries = () =>
    Promise.all([partial, spools.events, spools.resources].map((file) => rm(file, { force: true })));
  // A process that was killed may have left some.
  await removeTemporaries();
  try {
    const { events, resources } = contents;
    const eventSpool = await spoolLines(encoded(abortable(events, signal), encodeEvent), spools.events);
    const resourceSpool =
      resources &&
      (await spoolLines(encoded(abortable(resources, signal), encodeResource), spools.resources));
    const tar = new TarComposer(contents, eventSpool, resourceSpool, { onProgress, signer });
    const verified = await writeVerified(tar, partial, check, signal);
    await rename(partial, path);
    // The renaming itself is to survive a power cut.
    await flush(dirname(path));
    const { sha256, sizeBytes, historyDigest, versionDigests, rawBytes, counts } = verified;
    return { sha256, sizeBytes, historyDigest, versionDigests, rawBytes, counts };
  } finally {
    await removeTemporaries();
  }
}

/** How the archive is looked at that this signer signs: by nobody else, and by it for sure. */
export function trustOf(signer: ArchiveSigner | undefined): SignatureTrust {
  return signer === undefined ? TRUST_NOBODY : { keys: [signer.verificationKey], isRequired: true };
}

/** Writes the file and has it verified behind the writing: what fails first ends the other. */
async function writeVerified(
  tar: TarComposer,
  path: string,
  check: ArchiveCheck,
  signal: AbortSignal | undefined,
): Promise<WrittenArchive> {
  const refused = new AbortController();
  const ending = signal ? AbortSignal.any([signal, refused.signal]) : refused.signal;
  const file = await ZstdFile.create(path, tar.windowLog);
  try {
    const checking = check(path, file.growth);
    checking.catch((error) => refused.abort(error));
    await tar.writeTo(file, ending);
    const written = await file.end();
    const verified = await unlessAborted(checking, ending);
    if (verified.sha256 !== written.sha256) {
      throw new ArchiveError('ARCHIVE_CORRUPT', 'the file read back is not the one that was written');
    }
    return verified;
  } catch (error) {
    await file.abandon(error);
    throw error;
  }
}

async function* encoded<T>(
  source: AsyncIterable<T>,
  encode: (item: T) => string,
): AsyncGenerator<string, void, void> {
  for await (const item of source) yield encode(item);
}

type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Puts the members into a tar, in their order, each digested for SHA256SUMS on the way. */
class TarComposer {
  /** Base-2 logarithm of the window that the tar is to be compressed with: its manifest tells it. */
  readonly windowLog: number;
  readonly #contents: ArchiveContents;
  readonly #events: Spool;
  readonly #resources: Spool | null;
  readonly #options: Pick<WriteOptions, 'onProgress' | 'signer'>;
  readonly #manifest: Uint8Array;
  readonly #sortedTags: readonly ArchivedTag[];
  readonly #tags: Uint8Array;
  readonly #exportRecord: Uint8Array;
  readonly #sums: { name: string; sha256: string }[] = [];

  /** Has the metadata read back at once, so that contents no reader accepts cost no pass over the raw states. */
  constructor(
    contents: ArchiveContents,
    events: Spool,
    resources: Spool | null,
    options: Pick<WriteOptions, 'onProgress' | 'signer'>,
  ) {
    this.#contents = contents;
    this.#events = events;
    this.#resources = resources;
    this.#options = options;
    const { state, versions, tags, exportRecord, rawStateText, longestRawState } = contents;
    const { requiredFeatures = [] } = contents;
    this.windowLog = fittingWindowLog(versions.length, longestRawState);
    this.#manifest = encodeManifest({
      state,
      counts: {
        versions: versions.length,
        tags: tags.length,
        events: events.lines,
        resources: resources?.lines ?? 0,
      },
      versions,
      requiredFeatures,
      rawStateText,
      zstdWindowLog: this.windowLog,
    });
    this.#sortedTags = [...tags].sort(byTagName);
    this.#tags = encodeTags(this.#sortedTags);
    this.#exportRecord = encodeExportRecord(exportRecord);
    const limits = DEFAULT_ARCHIVE_LIMITS;
    const manifest = decodeManifest(this.#manifest, limits, requiredFeatures).value;
    new Consistency(manifest, limits).checkTags(decodeTags(this.#tags, limits).value);
    decodeExportRecord(this.#exportRecord, limits);
  }

  /** @param signal Ends the writing with its reason, even while a source keeps it waiting. */
  async writeTo(file: ZstdFile, signal: AbortSignal): Promise<void> {
    const { maxMetadataBytes, maxMemberBytes, maxVersionBytes } = DEFAULT_ARCHIVE_LIMITS;
    const member = (name: string, size: number, limit: number, content: Content) =>
      unlessAborted(this.#member(file, name, size, limit, content, signal), signal);
    const metadata = (name: string, content: Uint8Array) =>
      member(name, content.length, maxMetadataBytes, [content]);
    await metadata(MEMBER.manifest, this.#manifest);
    await metadata(MEMBER.tags, this.#tags);
    await member(MEMBER.events, this.#events.byteLength, maxMemberBytes, this.#events.read());
    if (this.#resources !== null) {
      await member(MEMBER.resources, this.#resources.byteLength, maxMemberBytes, this.#resources.read());
    }
    await metadata(MEMBER.exportRecord, this.#exportRecord);
    const { state, exportRecord } = this.#contents;
    const history = new HistoryDigest(state.lineage, state.currentSerial);
    const expected = this.#contents.versions.values();
    const progress = { versions: 0, bytes: 0n };
    for await (const { serial, byteLength, content } of abortable(this.#contents.rawStates, signal)) {
      const version = expected.next().value;
      if (version?.serial !== serial) {
        throw mismatch(
          serial,
          `came where ${version ? `serial ${version.serial}` : 'no raw state'} was expected`,
        );
      }
      const sha256 = await member(versionMemberName(serial), byteLength, maxVersionBytes, content);
      history.addVersion({ ...version, sha256 });
      progress.versions += 1;
      progress.bytes += BigInt(byteLength);
      this.#options.onProgress?.({ ...progress });
    }
    const missing = expected.next().value;
    if (missing) throw mismatch(missing.serial, 'is missing');
    const sums = encodeSums(this.#sums);
    await metadata(MEMBER.sums, sums);
    const { signer } = this.#options;
    if (signer !== undefined) {
      for (const tag of this.#sortedTags) history.addTag(tag);
      const attested = { sums, historyDigest: history.end(), state, exportRecord };
      const attestation = encodeAttestation(attested, signer);
      await member(MEMBER.attestation, attestation.length, MAX_ATTESTATION_BYTES, [attestation]);
    }
    await file.write(TAR_END);
  }

  async #member(
    file: ZstdFile,
    name: string,
    size: number,
    limit: number,
    content: Content,
    signal: AbortSignal,
  ): Promise<string> {
    if (size > limit) {
      throw new ArchiveError('ARCHIVE_TOO_LARGE', `${name} has ${size} bytes; the limit is ${limit}`, name);
    }
    await file.write(tarHeader(name, size));
    const hash = createHash('sha256');
    let length = 0;
    for await (const chunk of content) {
      // Nobody may be waiting for this any more.
      signal.throwIfAborted();
      length += chunk.length;
      if (length > size) break;
      hash.update(chunk);
      const full = file.write(chunk);
      if (full !== undefined) await full;
    }
    if (length !== size) {
      const found = length > size ? 'more' : String(length);
      throw new ArchiveError(
        'ARCHIVE_INCONSISTENT',
        `${name} was announced with ${size} bytes and has ${found}`,
        name,
      );
    }
    await file.write(tarPadding(size));
    const sha256 = hash.digest('hex');
    this.#sums.push({ name, sha256 });
    return sha256;
  }
}

/** Versions that a window reaches over: twice as many make a file that is as large, half as many one that can be larger. */
const VERSIONS_IN_WINDOW = 8;
/** Costs next to nothing, and is what `zstd` takes by itself: packed again by it, a small archive is none that looks damaged. */
const SMALL_WINDOW_LOG = 21;

/**
 * The window that lets a version be written as its difference from those before. It costs its length in memory on either
 * side, and time beyond what the processor's cache holds. A version alone has nothing before it to reach back to,
 * and one that is longer than any window cannot.
 */
function fittingWindowLog(versions: number, longestRawState: number): number {
  if (versions < 2 || longestRawState >= 2 ** MAX_ZSTD_WINDOW_LOG) return SMALL_WINDOW_LOG;
  const reach = Math.min(versions, VERSIONS_IN_WINDOW) * longestRawState;
  return Math.min(Math.max(Math.ceil(Math.log2(reach)), SMALL_WINDOW_LOG), MAX_ZSTD_WINDOW_LOG);
}

function mismatch(serial: bigint, what: string): ArchiveError {
  return new ArchiveError(
    'ARCHIVE_INCONSISTENT',
    `the raw state of serial ${serial} ${what}`,
    versionMemberName(serial),
  );
}
