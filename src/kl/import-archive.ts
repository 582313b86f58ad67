import { randomUUID } from 'node:crypto';
import type { VerifiedArchive } from '../archive/reader.ts';
import { DOCUMENTS, type ImportAnswer, type UserError } from './documents.ts';
import { failure, KlError } from './endings.ts';
import { waitForEnd } from './operations.ts';
import type { Work } from './progress.ts';
import type { Service } from './service.ts';
import { checkArchive } from './soundness.ts';
import { sendArchive } from './staged-upload.ts';

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
  signal: AbortSignal,
  work: Work,
): Promise<VerifiedArchive> {
  const { complete, isValid, findings } = await checkArchive(path, signal, work);
  if (complete !== null && isValid) return complete;
  const [finding] = findings;
  throw new KlError(finding?.code ?? 'ARCHIVE_CORRUPT', `${path}: ${finding?.message}`, {
    advice: `Nothing was sent. kl archive verify tells more. ${finding?.advice ?? ''}`.trim(),
  });
}

/** What is to be imported. */
export interface Imported {
  readonly path: string;
  readonly archive: VerifiedArchive;
  readonly placement: Placement;
  readonly dryRun: boolean;
}

/**
 * Sends an archive, and waits until the service has imported it, or has found out what an import would do.
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
    work.show({ step: 'sending' });
    const upload = await sendArchive(service, imported.path, imported.archive, work, signal);
    const begun = await beginImport(service, imported, upload.id).catch(async (error: unknown) => {
      // No operation has used it up, and it counts for a day.
      if (error instanceof KlError && !['INTERRUPTED', 'UNREACHABLE'].includes(error.code))
        await upload.discard();
      throw error;
    });
    const ended = await waitForEnd(service, begun, work);
    // A dry run leaves it to be used, and it counts for a day.
    if (imported.dryRun) await upload.discard();
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
  { archive, placement, dryRun }: Imported,
  uploadId: string,
): Promise<ImportAnswer> {
  // The key is made once: a repetition after a lost answer is the same request.
  const variables = { ...placement, uploadId, dryRun, expectedSha256: archive.sha256, key: randomUUID() };
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
