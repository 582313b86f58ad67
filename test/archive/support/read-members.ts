import { createReadStream } from 'node:fs';
import {
  type ArchiveMember,
  readArchive,
  type VerifiedArchive,
  verified,
} from '../../../src/archive/reader.ts';

/** Reads the archive at `path`, shows each member as it comes by, and gives what the reader says in the end. */
export function readMembers(
  path: string,
  see: (member: ArchiveMember) => Promise<void> | void,
): Promise<VerifiedArchive> {
  return verified(readArchive(createReadStream(path)), see);
}
