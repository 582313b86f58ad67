import { ARCHIVE_FILE_EXTENSION } from '../archive/format.ts';

/**
 * The key in the store of the archive that an attempt at an export writes. Attempts do not meet: the operation's record names
 * the archive that counts.
 */
export function archiveKeyOf(operationId: string, attempt: number): string {
  return `${operationId}.${attempt}${ARCHIVE_FILE_EXTENSION}`;
}

/** The operation that an archive belongs to, by its key; those of earlier releases have no attempt in it. */
export function operationIdOf(archiveKey: string): string {
  return archiveKey.slice(0, archiveKey.indexOf('.'));
}
