import { createReadStream } from 'node:fs';
import { type ArchiveMember, readArchive, type VerifiedArchive } from '../../../src/archive/reader.ts';

/** Reads the archive at `path`, shows each member as it comes by, and gives what the reader says in the end. */
export async function readMembers(
  path: string,
  see: (member: ArchiveMember) => Promise<void> | void,
): Promise<VerifiedArchive> {
  await using members = readArchive(createReadStream(path));
  for (;;) {
    const next = await members.next();
    if (next.done) return next.value;
    await see(next.value);
  }
}
