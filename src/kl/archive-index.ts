import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ARCHIVE_FILE_EXTENSION } from '../archive/format.ts';
import { isErrno } from '../base/errno.ts';
import { failure } from './endings.ts';
import { unreadable, writePrivateFile } from './files.ts';

/** An archive in a directory of archives. */
export interface IndexEntry {
  readonly name: string;
  readonly currentSerial: string;
  readonly historyDigest: string;
  /** Of the file. */
  readonly sha256: string;
  readonly sizeBytes: string;
  /** Below the directory, with slashes. */
  readonly file: string;
  readonly exportedAt: string;
}

const MAX_SEGMENT_BYTES = 180;
const FORMAT = 'kilolock-state-archives/v1';

/** The name of the file that says what a directory of archives holds. */
export const INDEX_FILE = 'index.json';

/**
 * What a directory of archives holds, by name; nothing where there is no index.
 *
 * @throws KlError FILE_UNUSABLE for an index of another kind, or one that names files elsewhere.
 */
export async function readIndex(directory: string): Promise<Map<string, IndexEntry>> {
  const path = join(directory, INDEX_FILE);
  const text = await readFile(path, 'utf8').catch((error: unknown) =>
    isErrno(error, 'ENOENT') ? null : unreadable(path)(error),
  );
  if (text === null) return new Map();
  try {
    const { format, states } = JSON.parse(text) as { format: unknown; states: IndexEntry[] };
    if (format === FORMAT && states.every(isEntry))
      return new Map(states.map((entry) => [entry.name, entry]));
  } catch (error) {
    throw failure('FILE_UNUSABLE', `${path} is no index of archives.`, { cause: error });
  }
  throw failure('FILE_UNUSABLE', `${path} is no index of archives that this release reads.`);
}

/** Writes the index, in order of name. */
export async function writeIndex(directory: string, entries: ReadonlyMap<string, IndexEntry>): Promise<void> {
  const states = [...entries.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  const text = `${JSON.stringify({ format: FORMAT, states }, null, 2)}\n`;
  await writePrivateFile(join(directory, INDEX_FILE), text, { replace: true });
}

function isEntry(entry: IndexEntry): boolean {
  const { name, currentSerial, historyDigest, sha256, sizeBytes, file } = entry;
  const texts = [name, currentSerial, historyDigest, sha256, sizeBytes, file];
  if (!texts.every((text) => typeof text === 'string')) return false;
  return file.split('/').every((segment) => !['', '.', '..'].includes(segment)) && !file.includes('\\');
}

/**
 * Where the archive of a state goes below a directory: its name, each segment in a form that every file system takes. No two
 * names have one path, but for file systems that fold cases.
 */
export function archivePathOf(name: string): string {
  const segments = name.split('/').map(safeSegment);
  return `${segments.join('/')}${ARCHIVE_FILE_EXTENSION}`;
}

function safeSegment(segment: string): string {
  const encoded = encodeURIComponent(segment.toWellFormed())
    .replace(/[!'()*]/g, percentEncoded)
    .replace(/^\.+/, (dots) => percentEncoded('.').repeat(dots.length));
  if (encoded === '') return '%00';
  if (encoded.length <= MAX_SEGMENT_BYTES) return encoded;
  return `${encoded.slice(0, MAX_SEGMENT_BYTES)}%${hash('sha256', segment).slice(0, 16)}`;
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
