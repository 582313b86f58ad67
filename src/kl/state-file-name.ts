import { hash } from 'node:crypto';
import { ARCHIVE_FILE_EXTENSION } from '../archive/format.ts';

const MAX_SEGMENT_BYTES = 180;

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
