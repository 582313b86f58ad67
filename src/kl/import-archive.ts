import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readArchiveFile } from '../archive/archive-file.ts';
import { SEALED_FILE_EXTENSION } from '../archive/format.ts';
import type { VerifiedArchive } from '../archive/reader.ts';
import { isSealedFile, named, openSealed, type Reading } from './archive-input.ts';
import { DOCUMENTS, type ImportAnswer, type ReportAnswer } from './documents.ts';
import { KlError } from './endings.ts';
import { temporaryDirectory } from './files.ts';
import { isUndecided, waitForEnd } from './operations.ts';
import type { Work } from './progress.ts';
import { type Service, unexplained } from './service.ts';
import { soundArchive } from './soundness.ts';
import type { StagedUpload } from './staged-upload.ts';
import { shellWord } from './texts.ts';

/** Where an archive goes: under its own name, and nowhere where something is already, unless it is said otherwise. */
export interface Placement {
  readonly name?: string | undefined;
  readonly onConflict?: 'REFUSE' | 'ARCHIVED_COPY' | 'OVERWRITE';
  readonly confirmName?: string;
  readonly expectedCurrentSerial?: string | undefined;
  readonly allowSharedLineage?: boolean | undefined;
}

/** What to do about a refusal, in this program's words. */
const ADVICE: Readonly<Record<string, string>> = {
  STATE_ALREADY_EXISTS:
    'Say --as NAME for another name, --archived-copy, or --overwrite to replace its history.',
  STATE_NOT_ACTIVE: 'Bring it back in Kilolock, or say --as NAME for another name.',
  LINEAGE_IN_USE:
    'Archive the other, or say --allow-shared-lineage if both are to manage the same infrastructure.',
  STALE_DESTINATION:
    'Look at what was written meanwhile: kl status NAME. Then say its serial with --expect-serial.',
  STATE_LOCKED: 'Ask again when the lock is released.',
  ARCHIVE_TOO_LARGE: 'Whoever runs the service can raise MAX_ARCHIVE_BYTES.',
};

/** An archive's file that a service can be sent; what was put aside for it goes away with it. */
interface Prepared extends AsyncDisposable {
  readonly path: string;
  readonly archive: VerifiedArchive;
}

/**
 * Verifies an archive here, before a byte of it is sent: that it is complete, and that it could be restored. One that is encrypted is
 * opened into another file, since no service opens it.
 *
 * @throws KlError with the first thing that is wrong.
 */
export async function prepareImport(path: string, context: Reading, work: Work): Promise<Prepared> {
  await using resources = new AsyncDisposableStack();
  let plain = path;
  if (await isSealedFile(path)) {
    const aside = resources.use(await temporaryDirectory());
    plain = join(aside.path, basename(path, SEALED_FILE_EXTENSION));
    const inside = openSealed(readArchiveFile(path, context), context.identity);
    await writeFile(plain, inside, { mode: 0o600, flag: 'wx' }).catch((error: unknown) => {
      throw named(path, error);
    });
  }
  const reading = { ...context, redacted: false };
  const archive = await soundArchive(plain, reading, work, { name: path, undone: 'Nothing was sent.' });
  const kept = resources.move();
  return { path: plain, archive, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** What is to be imported. */
export interface Imported {
  readonly archive: VerifiedArchive;
  /** The archive's file, which was sent. */
  readonly upload: StagedUpload;
  readonly placement: Placement;
  readonly dryRun: boolean;
}

/**
 * Has the service import an archive, or find out what an import would do, and waits until it has.
 *
 * @throws KlError with why it was refused, or what it failed with.
 */
export async function importArchive(
  service: Service,
  { archive, upload, placement, dryRun }: Imported,
  work: Work,
): Promise<ImportAnswer & { readonly report: ReportAnswer }> {
  const { sha256: expectedSha256, manifest } = archive;
  // Made once: a repetition after a lost answer is the same request.
  const idempotencyKey = randomUUID();
  const input = { ...placement, uploadId: upload.id, dryRun, expectedSha256, waitSeconds: 1, idempotencyKey };
  try {
    const asked = await service.change(DOCUMENTS.importArchive, input).catch((error: unknown) => {
      if (dryRun || !isUndecided(error)) throw error;
      upload.leave();
      const name = shellWord(placement.name ?? manifest.state.label);
      throw new KlError(error.code, error.message, {
        advice: `It is not known whether the import has begun: kl operations ${name}`,
        cause: error,
      });
    });
    const begun = asked.operation ?? unexplained('began no import');
    if (!dryRun) await upload.use();
    const ended = await waitForEnd(service, begun, work);
    return { ...ended, report: ended.report ?? unexplained('ended the import without a report') };
  } catch (error) {
    const advice = error instanceof KlError ? ADVICE[error.code] : undefined;
    if (!(error instanceof KlError) || advice === undefined) throw error;
    throw new KlError(error.code, error.message, { advice, cause: error });
  }
}
