import { randomUUID } from 'node:crypto';
import { ArchiveError } from '../archive/errors.ts';
import { REDACTED_FEATURE } from '../archive/format.ts';
import type { VerifiedArchive } from '../archive/reader.ts';
import { named, type Reading } from './archive-input.ts';
import { DOCUMENTS, type ImportAnswer, type UserError } from './documents.ts';
import { failure, KlError } from './endings.ts';
import { waitForEnd } from './operations.ts';
import type { Work } from './progress.ts';
import { isPassing, type Service } from './service.ts';
import { checkArchive } from './soundness.ts';
import type { StagedUpload } from './staged-upload.ts';
import { shellWord } from './texts.ts';

/** What an import is asked to do with its destination. */
export interface Placement {
  /** Null: the archive's own. */
  readonly name: string | null;
  readonly onConflict: 'REFUSE' | 'ARCHIVED_COPY' | 'OVERWRITE';
  readonly confirmName: string | null;
  readonly expectedCurrentSerial: string | null;
  readonly allowSharedLineage: boolean;
}

/** Where an archive goes that nobody said anything else of. */
export const PLAIN_PLACEMENT: Placement = {
  name: null,
  onConflict: 'REFUSE',
  confirmName: null,
  expectedCurrentSerial: null,
  allowSharedLineage: false,
};

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

/**
 * Verifies an archive here, before a byte of it is sent: that it is complete, and that it could be restored.
 *
 * @throws KlError with the first thing that is wrong.
 */
export async function verifyBeforeImport(
  path: string,
  reading: Reading,
  work: Work,
): Promise<VerifiedArchive> {
  const { complete, isValid, findings } = await checkArchive(path, reading, work);
  if (complete?.manifest.requiredFeatures.includes(REDACTED_FEATURE)) {
    throw named(
      path,
      new ArchiveError('ARCHIVE_REDACTED', 'values were taken out of this archive for a hand-over'),
    );
  }
  if (complete !== null && isValid) return complete;
  const [finding] = findings;
  throw new KlError(finding?.code ?? 'ARCHIVE_CORRUPT', `${path}: ${finding?.message}`, {
    advice: `Nothing was sent. kl archive verify tells more. ${finding?.advice ?? ''}`.trim(),
  });
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
  imported: Imported,
  work: Work,
  signal: AbortSignal,
): Promise<ImportAnswer> {
  try {
    const begun = await beginImport(service, imported).catch((error: unknown) => {
      if (imported.dryRun || !(signal.aborted || isPassing(error))) throw error;
      imported.upload.leave();
      const name = imported.placement.name ?? imported.archive.manifest.state.label;
      const { code, message } = error instanceof KlError ? error : failure('INTERRUPTED', 'Interrupted.');
      throw new KlError(code, message, {
        advice: `It is not known whether the import has begun: kl operations ${shellWord(name)}`,
        cause: error,
      });
    });
    if (!imported.dryRun) await imported.upload.use();
    const ended = await waitForEnd(service, begun, work);
    if (ended.report === null) throw failure('UNKNOWN_ANSWER', 'The import ended without a report.');
    return ended;
  } catch (error) {
    const advice = error instanceof KlError ? ADVICE[error.code] : undefined;
    if (!(error instanceof KlError) || advice === undefined) throw error;
    throw new KlError(error.code, error.message, { advice, cause: error });
  }
}

async function beginImport(
  service: Service,
  { archive, upload, placement, dryRun }: Imported,
): Promise<ImportAnswer> {
  // The key is made once: a repetition after a lost answer is the same request.
  const { sha256: expectedSha256 } = archive;
  const variables = { ...placement, uploadId: upload.id, dryRun, expectedSha256, key: randomUUID() };
  const { importStateArchive } = await service.ask<{
    importStateArchive: {
      readonly operation: ImportAnswer | null;
      readonly userErrors: readonly UserError[];
    };
  }>(DOCUMENTS.importArchive, variables);
  const { operation, userErrors } = importStateArchive;
  const [refusal] = userErrors;
  if (refusal !== undefined) throw new KlError(refusal.code, refusal.message);
  if (operation === null)
    throw failure('UNKNOWN_ANSWER', 'The service began no import, and says nothing of why.');
  return operation;
}
