import { hash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { v5 as uuidv5 } from 'uuid';
import { DEFAULT_ARCHIVE_LIMITS } from '../archive/format.ts';
import type { ArchivedState, ArchivedTag, ArchivedVersion, RawState } from '../archive/model.ts';
import type { ArchiveContents } from '../archive/writer.ts';
import { Digested } from '../base/digested.ts';
import { present } from '../base/invariant.ts';
import { stateLabelFault } from '../base/state-label.ts';
import { utcTimeOf } from '../base/time.ts';
import { canonicalUuid } from '../base/uuid.ts';
import { bytesOf } from './archive-input.ts';
import { DocumentReader, namedDocument } from './document-reader.ts';
import { failure, KlError } from './endings.ts';
import { unreadable } from './files.ts';

/** What is known of a state's file beside its contents. */
export interface FileFacts {
  /** RFC 3339 in UTC with six fractional digits. */
  readonly createdAt?: string | undefined;
  readonly createdBy?: string | undefined;
  readonly source?: string | undefined;
}

/** What a history is built of. */
export interface BuildRequest {
  /** The name of the state. */
  readonly label: string;
  /** In any order. */
  readonly files: readonly string[];
  /** By the name of the file. */
  readonly facts: ReadonlyMap<string, FileFacts>;
  readonly tags: readonly { readonly tag: string; readonly serial: bigint }[];
}

/** One version to be, and the file it comes from. */
interface Found {
  readonly path: string;
  readonly byteLength: number;
  readonly sha256: string;
  /** '' where the document has none. */
  readonly lineage: string;
  readonly version: Omit<ArchivedVersion, 'id'>;
}

/** Files that hold the same version as another, byte for byte, and that other. */
type Duplicates = readonly { readonly path: string; readonly of: string }[];

const SOURCE = 'import';
/** Where the ids come from: the same files make the same archive. */
const ID_NAMESPACE = '7b3c1d52-5f0e-5f7a-9f41-0d6b8a2c4e19';
const STATE_FILE = /\.tfstate(?:\.backup|\.json)?$/;

/**
 * The state files under these paths: of a directory those that are named like one, without what lies deeper.
 *
 * @throws KlError FILE_UNUSABLE.
 */
export async function stateFiles(
  paths: readonly string[],
): Promise<{ readonly files: string[]; readonly others: string[] }> {
  const files: string[] = [];
  const others: string[] = [];
  for (const path of paths) {
    const found = await stat(path).catch(unreadable(path));
    if (found.isDirectory()) {
      for (const entry of await readdir(path, { withFileTypes: true })) {
        const isState = entry.isFile() && STATE_FILE.test(entry.name);
        (isState ? files : others).push(join(path, entry.name));
      }
    } else if (found.isFile()) files.push(path);
    else throw failure('FILE_UNUSABLE', `${path} is no file.`);
  }
  if (files.length === 0) throw failure('FILE_UNUSABLE', `There is no .tfstate file in ${paths.join(', ')}.`);
  return { files: files.sort(), others };
}

/**
 * The history that files of one state amount to: ordered by serial, the last one current.
 *
 * @throws KlError UNSUPPORTED_STATE_DOCUMENT for a file that holds no state of Terraform's; NO_HISTORY when the files are not
 *   of one history; USAGE for a name or a tag that no archive holds.
 */
export async function buildHistory(
  { label, files, facts, tags }: BuildRequest,
  signal: AbortSignal,
  onRead: (files: number) => void,
): Promise<{ readonly contents: ArchiveContents; readonly duplicates: Duplicates }> {
  const fault = stateLabelFault(label);
  if (fault !== null) throw failure('USAGE', `The state's name ${fault}.`);
  const byName = new Map([...facts].map(([name, fact]) => [basename(name), fact]));
  const all: Found[] = [];
  const reader = new DocumentReader();
  for (const path of files) {
    signal.throwIfAborted();
    all.push(await examine(path, byName.get(basename(path)) ?? {}, reader));
    onRead(all.length);
  }
  const { kept, duplicates } = withoutDuplicates(all);
  const lineage = lineageOf(kept);
  const versions = kept.map(
    ({ version }): ArchivedVersion => ({
      id: uuidv5(`${label}/${lineage}/${version.serial}`, ID_NAMESPACE),
      ...version,
    }),
  );
  const first = present(versions[0], 'there is a file');
  const last = present(versions.at(-1), 'there is a file');
  const elsewhere = { workspace: 'elsewhere', environment: 'elsewhere' };
  const state: ArchivedState = {
    id: uuidv5(`${label}/${lineage}`, ID_NAMESPACE),
    label,
    name: label,
    ...elsewhere,
    lineage,
    lifecycleStatus: 'active',
    createdAt: first.createdAt,
    updatedAt: last.createdAt,
    currentSerial: last.serial,
    currentVersionId: last.id,
    // What Kilolock gives a state that Terraform writes: one without its lock would let two write at once.
    exclusiveLocks: true,
    coexistenceMode: 'strict',
  };
  return {
    duplicates,
    contents: {
      state,
      versions,
      tags: tags.map((each) => tagOf(each, versions)),
      events: none(),
      resources: null,
      exportRecord: {
        exportedAt: utcTimeOf(new Date()),
        exportedBy: 'kl archive build',
        source: { ...elsewhere, stateName: label },
        tool: { name: 'kl archive build', version: '1' },
      },
      rawStateText: null,
      longestRawState: Math.max(...kept.map(({ byteLength }) => byteLength)),
      rawStates: rawStatesOf(kept),
    },
  };
}

async function* none(): AsyncGenerator<never, void, void> {}

async function examine(path: string, facts: FileFacts, reader: DocumentReader): Promise<Found> {
  const { mtimeNs, size } = await stat(path, { bigint: true });
  if (size > BigInt(DEFAULT_ARCHIVE_LIMITS.maxVersionBytes)) {
    throw new KlError(
      'ARCHIVE_TOO_LARGE',
      `${path} has ${size} bytes; a version ends at ${DEFAULT_ARCHIVE_LIMITS.maxVersionBytes}.`,
    );
  }
  try {
    const byteLength = Number(size);
    const document = await reader.read(contentOf(path, byteLength), byteLength);
    const { serial, terraformVersion } = document;
    const { createdAt = timeOf(mtimeNs), createdBy = null, source = SOURCE } = facts;
    return {
      path,
      byteLength,
      sha256: hash('sha256', document.bytes),
      lineage: canonicalUuid(document.lineage),
      version: { serial, terraformVersion, source, createdAt, createdBy },
    };
  } catch (error) {
    throw namedDocument(
      path,
      error,
      'Leave the file out, or find out what it is: only state files of version 4, not encrypted, make a history.',
    );
  }
}

/** An instant of the file system, to the microsecond. */
function timeOf(nanoseconds: bigint): string {
  const seconds = new Date(Number(nanoseconds / 1_000_000_000n) * 1000).toISOString().slice(0, 19);
  const micros = (nanoseconds % 1_000_000_000n) / 1000n;
  return `${seconds}.${String(micros).padStart(6, '0')}Z`;
}

/** Files by serial. A version that is there twice is kept once, as of the earlier time. */
function withoutDuplicates(all: readonly Found[]): { kept: Found[]; duplicates: Duplicates } {
  const sorted = [...all].sort(
    ({ version: one }, { version: other }) =>
      Number(one.serial - other.serial) ||
      (one.createdAt < other.createdAt ? -1 : one.createdAt > other.createdAt ? 1 : 0),
  );
  const kept: Found[] = [];
  const duplicates: { path: string; of: string }[] = [];
  for (const each of sorted) {
    const { serial } = each.version;
    const last = kept.at(-1);
    if (last?.version.serial !== serial) kept.push(each);
    else if (last.sha256 === each.sha256) duplicates.push({ path: each.path, of: last.path });
    else {
      const message = `${last.path} and ${each.path} both have serial ${serial}, and are not the same.`;
      throw failure('NO_HISTORY', message, {
        advice:
          'Leave out the one that is not of this history: two versions of a state cannot share a serial.',
      });
    }
  }
  return { kept, duplicates };
}

/** The lineage of all files; null where no file has one. */
function lineageOf(kept: readonly Found[]): string | null {
  const byLineage = new Map(kept.map(({ lineage, path }) => [lineage, path]));
  byLineage.delete('');
  if (byLineage.size > 1) {
    const [one, other] = [...byLineage.values()];
    throw failure('NO_HISTORY', `${one} and ${other} are of two lineages: they are versions of two states.`, {
      advice: 'Build an archive of each by itself.',
    });
  }
  const [lineage = null] = byLineage.keys();
  return lineage;
}

function tagOf(
  { tag, serial }: BuildRequest['tags'][number],
  versions: readonly ArchivedVersion[],
): ArchivedTag {
  const version = versions.find((each) => each.serial === serial);
  if (version === undefined) throw failure('USAGE', `--tag ${tag}: no file has serial ${serial}.`);
  // Times are part of the history digest: the same files and tags make the same history.
  const at = version.createdAt;
  return { tag, serial, description: null, actor: 'kl archive build', createdAt: at, updatedAt: at };
}

async function* rawStatesOf(kept: readonly Found[]): AsyncGenerator<RawState, void, void> {
  for (const { path, version, byteLength, sha256 } of kept) {
    yield { serial: version.serial, byteLength, content: contentOf(path, byteLength, sha256) };
  }
}

/** A file that had this length, and this digest. @throws KlError FILE_UNUSABLE when it has another by now. */
async function* contentOf(
  path: string,
  byteLength: number,
  sha256?: string,
): AsyncGenerator<Uint8Array, void, void> {
  const file = new Digested(bytesOf(path));
  for await (const chunk of file) {
    if (file.length > byteLength) throw changed(path);
    yield chunk;
  }
  const isSame = sha256 === undefined || file.sha256() === sha256;
  if (file.length < byteLength || !isSame) throw changed(path);
}

function changed(path: string): KlError {
  return failure('FILE_UNUSABLE', `${path} was changed while it was being read.`);
}
