import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../base/errno.ts';
import { openFileStore } from './file-store.ts';
import type { ObjectStore } from './object-store.ts';
import type { S3Location } from './s3-store.ts';

/** Where the store is. */
export type ArchiveStoreLocation =
  /** A directory, by its absolute path: on one machine, or on a disk that all machines share. */
  | { readonly kind: 'file'; readonly directory: string }
  | ({
      readonly kind: 's3';
      /** Whether archives are given out by addresses of the bucket itself. */
      readonly isAddressed: boolean;
    } & S3Location);

/** What all machines share beside the database. */
export interface ArchiveStore {
  /** Finished archives. */
  readonly archives: ObjectStore;
  /** Files that callers sent, until what they were sent for is over. */
  readonly uploads: ObjectStore;
}

/** @throws OperatorError, in one line, when the store cannot be used. */
export async function openArchiveStore(location: ArchiveStoreLocation): Promise<ArchiveStore> {
  if (location.kind === 'file') {
    await removeStaging(location.directory);
    return {
      archives: await openFileStore(join(location.directory, 'archives')),
      uploads: await openFileStore(join(location.directory, 'uploads')),
    };
  }
  // Its client is a sixth of all code, and most services have no bucket.
  const { openBucket, openS3Store } = await import('./s3-store.ts');
  const bucket = await openBucket(location);
  return { archives: openS3Store(bucket, 'archives', location), uploads: openS3Store(bucket, 'uploads') };
}

/** A process of release 0.1.0 may be running beside this one still. */
const STAGING_AGE_MS = 3_600_000;

/** Removes what release 0.1.0 has left in the directory in which it put files that were on their way. Nothing else goes there. */
async function removeStaging(directory: string): Promise<void> {
  const staging = join(directory, 'staging');
  try {
    for (const name of await readdir(staging)) {
      const { mtimeMs } = await stat(join(staging, name));
      if (Date.now() - mtimeMs < STAGING_AGE_MS) return;
    }
    await rm(staging, { recursive: true, force: true });
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}
