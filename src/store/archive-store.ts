import { join } from 'node:path';
import { openFileStore } from './file-store.ts';
import type { ObjectStore } from './object-store.ts';

/** What all machines share beside the database. */
export interface ArchiveStore {
  /** Finished archives. */
  readonly archives: ObjectStore;
  /** Files that callers sent, until what they were sent for is over. */
  readonly uploads: ObjectStore;
}

/**
 * Opens the store in a directory: on one machine, or on a disk that all machines share.
 *
 * @throws OperatorError when it cannot be used.
 */
export async function openArchiveStore(directory: string): Promise<ArchiveStore> {
  return {
    archives: await openFileStore(join(directory, 'archives')),
    uploads: await openFileStore(join(directory, 'uploads')),
  };
}
