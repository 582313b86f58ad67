import { ArchiveError, type ArchiveErrorCode } from './errors.ts';
import { MEMBER } from './format.ts';

/** Bytes of `SHA256SUMS`: one line for `sha256sum -c` per member, in their order. */
export function encodeSums(members: readonly { name: string; sha256: string }[]): Uint8Array {
  return Buffer.from(members.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''));
}

/**
 * Compares `SHA256SUMS` with the members as read.
 *
 * @throws ArchiveError ARCHIVE_CORRUPT, naming the member whose sum differs; ARCHIVE_INCONSISTENT when it does
 *   not list exactly the members there are, in their order.
 */
export function checkSums(sums: Uint8Array, members: readonly { name: string; sha256: string }[]): void {
  if (Buffer.compare(sums, encodeSums(members)) === 0) return;
  const lines = Buffer.from(sums).toString('latin1').split('\n');
  const end = lines.pop();
  for (const [index, line] of lines.entries()) {
    const [, sha256, name] = /^([0-9a-f]{64}) {2}(.+)$/.exec(line) ?? [];
    const member = members[index];
    const which = `line ${index + 1} of ${MEMBER.sums}`;
    if (name === undefined) throw refusal('ARCHIVE_CORRUPT', `${which} is not a digest and a name`);
    if (member?.name !== name) {
      throw refusal('ARCHIVE_INCONSISTENT', `${which} is not about ${member?.name ?? 'any member'}`);
    }
    if (member.sha256 !== sha256) {
      throw refusal('ARCHIVE_CORRUPT', `${name} does not have the SHA-256 that ${MEMBER.sums} gives`, name);
    }
  }
  if (end !== '') throw refusal('ARCHIVE_CORRUPT', `the last line of ${MEMBER.sums} has no newline`);
  throw refusal('ARCHIVE_INCONSISTENT', `${MEMBER.sums} does not list ${members[lines.length]?.name}`);
}

function refusal(code: ArchiveErrorCode, message: string, member: string = MEMBER.sums): ArchiveError {
  return new ArchiveError(code, message, member);
}
