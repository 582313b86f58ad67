import { ArchiveError } from '../../archive/errors.ts';
import { REDACTED_FEATURE } from '../../archive/format.ts';
import type { ArchivedEvent, RawState } from '../../archive/model.ts';
import { type ArchiveMember, type VerifiedArchive, verifyArchive } from '../../archive/reader.ts';
import { type WrittenArchive, writeArchive } from '../../archive/writer.ts';
import { redactState } from '../../terraform/redaction.ts';
import { archiveMembers, named } from '../archive-input.ts';
import type { CommonOptions, Context } from '../context.ts';
import { DocumentReader } from '../document-reader.ts';
import { EXIT, type Exit } from '../endings.ts';
import { refuseExisting } from '../files.ts';
import { shown, type Work } from '../progress.ts';
import { soundArchive } from '../soundness.ts';
import { pairs } from '../tables.ts';
import { bytesText } from '../texts.ts';

interface Options extends CommonOptions {
  readonly out: string;
  readonly force?: boolean;
}

/** `kl archive redact`: an archive for somebody who may not see what is sensitive in it. */
export async function run(context: Context, options: Options, path: string): Promise<Exit> {
  const { terminal } = context;
  const { out, force = false } = options;
  if (!force) await refuseExisting(out);
  const { state, written, values } = await shown(terminal, path, async (work) => {
    const undone = 'Nothing was written: what is sensitive in it cannot be told.';
    const original = await soundArchive(path, context, work, { name: path, undone });
    const redacted = await writeRedacted(path, original, out, context, work).catch((error: unknown) => {
      throw named(path, error);
    });
    return { state: original.manifest.state, ...redacted };
  });
  terminal.result(
    {
      file: out,
      name: state.label,
      redactedValues: values,
      versionCount: written.counts.versions,
      historyDigest: written.historyDigest,
      sha256: written.sha256,
      sizeBytes: written.sizeBytes,
    },
    () =>
      pairs({
        File: out,
        State: state.label,
        Versions: written.counts.versions,
        'Taken out': `${values} values, over all versions`,
        Size: bytesText(written.sizeBytes),
        'History digest': `${written.historyDigest}, of what is left`,
      }),
  );
  terminal.say(
    '\nNo import takes it. What nobody marked and no name gives away is still there: names, addresses, tags, events and the other attributes. Look through it before you hand it over.',
  );
  return EXIT.done;
}

/**
 * Writes an archive again without what is sensitive in its raw states, marked so that no import takes it for the history. The
 * resource spans are left out: a hash over attributes of which all but a short secret are known tells the secret. So is the attestation, which is about
 * another archive.
 *
 * @param original the archive in the file at `path`, verified, with every document one that Kilolock can hold.
 * @returns what was written, and how many values were taken out, over all versions.
 * @throws ArchiveError ARCHIVE_CORRUPT when the file was changed meanwhile; errors of the file system.
 */
async function writeRedacted(
  path: string,
  original: VerifiedArchive,
  out: string,
  reading: Context,
  work: Work,
): Promise<{ readonly written: WrittenArchive; readonly values: number }> {
  const { manifest, tags, exportRecord, versionDigests, rawBytes } = original;
  const { signal } = reading;
  let values = 0;
  await using members = archiveMembers(path, reading);
  /** The next member; null at the end of the archive that was verified. */
  async function take(): Promise<ArchiveMember | null> {
    const step = await members.next();
    if (!step.done) return step.value;
    if (step.value.sha256 === original.sha256) return null;
    throw new ArchiveError('ARCHIVE_CORRUPT', 'the file was changed while it was being read');
  }
  async function* events(): AsyncGenerator<ArchivedEvent, void, void> {
    for (;;) {
      const member = await take();
      if (member?.kind === 'event') yield member.event;
      // What stands behind the events is no version: the record of the export comes first.
      else if (member?.kind !== 'manifest' && member?.kind !== 'tags') return;
    }
  }
  async function* rawStates(): AsyncGenerator<RawState, void, void> {
    const reader = new DocumentReader();
    for (let member = await take(); member !== null; member = await take()) {
      if (member.kind !== 'version') continue;
      const document = await reader.read(member.content, member.byteLength);
      const { byteLength, content, count } = redactState(document);
      values += count;
      yield { serial: member.version.serial, byteLength, content: each(content) };
    }
  }
  const written = await writeArchive(
    {
      state: manifest.state,
      versions: manifest.versions,
      tags,
      events: events(),
      resources: null,
      exportRecord,
      rawStateText: null,
      requiredFeatures: [...new Set([...manifest.requiredFeatures, REDACTED_FEATURE])],
      longestRawState: Math.max(...versionDigests.map(({ byteLength }) => byteLength)),
      rawStates: rawStates(),
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
  return { written, values };
}

async function* each<T>(items: Iterable<T>): AsyncGenerator<T, void, void> {
  yield* items;
}
