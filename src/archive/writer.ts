import { createHash } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { abortable, unlessAborted } from '../base/abortable.ts';
import { flush } from '../base/flush.ts';
import { encodeAttestation } from './attestation.ts';
import { Consistency } from './consistency.ts';
import { ArchiveError } from './errors.ts';
import {
  ARCHIVE_FORMAT,
  DEFAULT_ARCHIVE_LIMITS,
  MAX_ATTESTATION_BYTES,
  MAX_ZSTD_WINDOW_LOG,
  MEMBER,
  versionMemberName,
} from './format.ts';
import { byTagName, HistoryDigest } from './history-digest.ts';
import { decodeManifest, EVENTS, EXPORT_RECORD, MANIFEST, RESOURCES, TAGS } from './metadata.ts';
import type {
  ArchivedEvent,
  ArchivedResource,
  ArchivedState,
  ArchivedTag,
  ArchivedVersion,
  ArchiveManifest,
  ExportRecord,
  HistoryProgress,
  RawState,
} from './model.ts';
import { type VerifiedArchive, verifyArchive } from './reader.ts';
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
export type WrittenArchive = Pick<
  VerifiedArchive,
  'sha256' | 'sizeBytes' | 'historyDigest' | 'versionDigests' | 'rawBytes' | 'counts'
>;

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
  {
    onProgress,
    signal,
    signer,
    check = (file, grown) => verifyArchive(file, { grown, signal, trust: trustOf(signer) }),
  }: WriteOptions = {},
): Promise<WrittenArchive> {
  const partial = `${path}.partial`;
  const spools = { events: `${path}.events.partial`, resources: `${path}.resources.partial` };
  const removeTemporaries = () =>
    Promise.all([partial, spools.events, spools.resources].map((file) => rm(file, { force: true })));
  // A process that was killed may have left some.
  await removeTemporaries();
  try {
    const { events, resources } = contents;
    const lines = {
      events: await spoolLines(abortable(events, signal), EVENTS.encode, spools.events),
      resources:
        resources && (await spoolLines(abortable(resources, signal), RESOURCES.encode, spools.resources)),
    };
    const metadata = encodeMetadata(contents, lines);
    const compose = (file: ZstdFile, ending: AbortSignal) =>
      writeTar(file, contents, metadata, lines, { onProgress, signer }, ending);
    const verified = await writeVerified(partial, metadata.windowLog, compose, check, signal);
    await rename(partial, path);
    // The renaming itself is to survive a power cut.
    await flush(dirname(path));
    return verified;
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
  path: string,
  windowLog: number,
  compose: (file: ZstdFile, signal: AbortSignal) => Promise<void>,
  check: ArchiveCheck,
  signal: AbortSignal | undefined,
): Promise<WrittenArchive> {
  const refused = new AbortController();
  const ending = signal ? AbortSignal.any([signal, refused.signal]) : refused.signal;
  const file = new ZstdFile(await open(path, 'wx', 0o600), windowLog);
  try {
    const checking = check(path, file.growth);
    checking.catch((error) => refused.abort(error));
    await compose(file, ending);
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

type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** The members of which there is a line for each row. */
interface Lines {
  readonly events: Spool;
  readonly resources: Spool | null;
}

/**
 * The bytes of the members that are small, and the base-2 logarithm of the window that the tar is to be compressed with. They are
 * read back at once, so that contents no reader accepts cost no pass over the raw states.
 */
function encodeMetadata(contents: ArchiveContents, { events, resources }: Lines) {
  const { state, versions, exportRecord, rawStateText, longestRawState, requiredFeatures = [] } = contents;
  const windowLog = fittingWindowLog(versions.length, longestRawState);
  const tags = [...contents.tags].sort(byTagName);
  const bytes = {
    manifest: MANIFEST.encode({
      archiveFormat: ARCHIVE_FORMAT,
      state,
      counts: {
        versions: versions.length,
        tags: tags.length,
        events: events.lines,
        resources: resources?.lines ?? 0,
      },
      versions,
      requiredFeatures: [...requiredFeatures],
      rawStateText,
      zstdWindowLog: windowLog,
    }),
    tags: TAGS.encode({ tags }),
    exportRecord: EXPORT_RECORD.encode(exportRecord),
  };
  const limits = DEFAULT_ARCHIVE_LIMITS;
  const manifest = decodeManifest(bytes.manifest, limits, requiredFeatures).value;
  new Consistency(manifest, limits).checkTags(TAGS.decode(bytes.tags, limits).value.tags);
  EXPORT_RECORD.decode(bytes.exportRecord, limits);
  return { bytes, tags, windowLog };
}

/**
 * Puts the members into a tar, in their order, each digested for SHA256SUMS on the way.
 *
 * @param signal Ends the writing with its reason, even while a source keeps it waiting.
 */
async function writeTar(
  file: ZstdFile,
  { state, exportRecord, versions, rawStates }: ArchiveContents,
  { bytes, tags }: ReturnType<typeof encodeMetadata>,
  { events, resources }: Lines,
  { onProgress, signer }: Pick<WriteOptions, 'onProgress' | 'signer'>,
  signal: AbortSignal,
): Promise<void> {
  const { maxMetadataBytes, maxMemberBytes, maxVersionBytes } = DEFAULT_ARCHIVE_LIMITS;
  const written: { name: string; sha256: string }[] = [];
  const member = async (name: string, size: number, limit: number, content: Content): Promise<string> => {
    const sha256 = await unlessAborted(writeMember(file, name, size, limit, content, signal), signal);
    written.push({ name, sha256 });
    return sha256;
  };
  const whole = (name: string, content: Uint8Array, limit = maxMetadataBytes) =>
    member(name, content.length, limit, [content]);
  await whole(MEMBER.manifest, bytes.manifest);
  await whole(MEMBER.tags, bytes.tags);
  await member(MEMBER.events, events.byteLength, maxMemberBytes, events.read());
  if (resources !== null) {
    await member(MEMBER.resources, resources.byteLength, maxMemberBytes, resources.read());
  }
  await whole(MEMBER.exportRecord, bytes.exportRecord);
  const history = new HistoryDigest(state.lineage, state.currentSerial);
  const expected = versions.values();
  const progress = { versions: 0, bytes: 0n };
  for await (const { serial, byteLength, content } of abortable(rawStates, signal)) {
    const version = expected.next().value;
    if (version?.serial !== serial) {
      const other = version ? `serial ${version.serial}` : 'no raw state';
      throw mismatch(serial, `came where ${other} was expected`);
    }
    const sha256 = await member(versionMemberName(serial), byteLength, maxVersionBytes, content);
    history.addVersion({ ...version, sha256 });
    progress.versions += 1;
    progress.bytes += BigInt(byteLength);
    onProgress?.({ ...progress });
  }
  const missing = expected.next().value;
  if (missing) throw mismatch(missing.serial, 'is missing');
  const sums = encodeSums(written);
  await whole(MEMBER.sums, sums);
  if (signer !== undefined) {
    for (const tag of tags) history.addTag(tag);
    const attested = { sums, historyDigest: history.end(), state, exportRecord };
    await whole(MEMBER.attestation, encodeAttestation(attested, signer), MAX_ATTESTATION_BYTES);
  }
  await file.write(TAR_END);
}

/** @returns the SHA-256 of the content, lower-case hex. */
async function writeMember(
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
    const message = `${name} was announced with ${size} bytes and has ${found}`;
    throw new ArchiveError('ARCHIVE_INCONSISTENT', message, name);
  }
  await file.write(tarPadding(size));
  return hash.digest('hex');
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
