import { ArchiveError } from '../archive/errors.ts';
import { REDACTED_FEATURE } from '../archive/format.ts';
import type { ArchivedEvent, RawState } from '../archive/model.ts';
import {
  type ArchiveMember,
  type ArchiveMembers,
  type VerifiedArchive,
  verifyArchive,
} from '../archive/reader.ts';
import { type WrittenArchive, writeArchive } from '../archive/writer.ts';
import { redactState } from '../terraform/redaction.ts';
import { archiveMembers, type Reading } from './archive-input.ts';
import { DocumentReader } from './document-reader.ts';
import type { Work } from './progress.ts';

/** What was written. */
export interface RedactedArchive {
  readonly written: WrittenArchive;
  /** How many values were taken out, over all versions. */
  readonly values: number;
}

/**
 * Writes an archive again without what is sensitive in its raw states, marked so that no import takes it for the history. The
 * resource spans are left out: a hash over attributes of which all but a short secret are known tells the secret. So is the attestation, which is about
 * another archive.
 *
 * @param original the archive in the file at `path`, verified, with every document one that Kilolock can hold.
 * @throws ArchiveError ARCHIVE_CORRUPT when the file was changed meanwhile; errors of the file system.
 */
export async function writeRedacted(
  path: string,
  original: VerifiedArchive,
  out: string,
  reading: Reading,
  work: Work,
): Promise<RedactedArchive> {
  const { manifest, tags, exportRecord, versionDigests, rawBytes } = original;
  const { signal } = reading;
  await using members = archiveMembers(path, reading);
  const source = new Source(members, original.sha256);
  const written = await writeArchive(
    {
      state: manifest.state,
      versions: manifest.versions,
      tags,
      events: source.events(),
      resources: null,
      exportRecord,
      rawStateText: null,
      requiredFeatures: [...new Set([...manifest.requiredFeatures, REDACTED_FEATURE])],
      longestRawState: Math.max(...versionDigests.map(({ byteLength }) => byteLength)),
      rawStates: source.rawStates(),
    },
    out,
    {
      signal,
      check: (file, grown) => verifyArchive(file, { grown, signal, redacted: true }),
      onProgress: ({ versions, bytes }) =>
        work.show({
          step: 'writing',
          bytes: { done: Number(bytes), total: Number(rawBytes) },
          versions: { done: versions, total: manifest.versions.length },
        }),
    },
  );
  return { written, values: source.values };
}

/** The archive, read once more from its beginning. */
class Source {
  values = 0;
  readonly #members: ArchiveMembers;
  readonly #sha256: string;
  /** The first member behind the events. */
  #next: ArchiveMember | null = null;

  constructor(members: ArchiveMembers, sha256: string) {
    this.#members = members;
    this.#sha256 = sha256;
  }

  async *events(): AsyncGenerator<ArchivedEvent, void, void> {
    for (;;) {
      const member = await this.#take();
      if (member?.kind === 'event') yield member.event;
      else if (member?.kind !== 'manifest' && member?.kind !== 'tags') {
        this.#next = member;
        return;
      }
    }
  }

  async *rawStates(): AsyncGenerator<RawState, void, void> {
    const reader = new DocumentReader();
    for (let member = this.#next; member !== null; member = await this.#take()) {
      if (member.kind !== 'version') continue;
      const { byteLength, content, count } = redactState(
        await reader.read(member.content, member.byteLength),
      );
      this.values += count;
      yield { serial: member.version.serial, byteLength, content: each(content) };
    }
  }

  /** The next member; null at the end of the archive that was verified. */
  async #take(): Promise<ArchiveMember | null> {
    const step = await this.#members.next();
    if (!step.done) return step.value;
    if (step.value.sha256 === this.#sha256) return null;
    throw new ArchiveError('ARCHIVE_CORRUPT', 'the file was changed while it was being read');
  }
}

async function* each<T>(items: Iterable<T>): AsyncGenerator<T, void, void> {
  yield* items;
}
