import type { ArchiveError } from '../archive/errors.ts';
import { versionMemberName } from '../archive/format.ts';
import type { VerifiedArchive } from '../archive/reader.ts';
import { present } from '../base/invariant.ts';
import { UnsupportedStateDocumentError } from '../terraform/errors.ts';
import { ARCHIVE_ADVICE, type Reading, readThrough } from './archive-input.ts';
import { DocumentReader } from './document-reader.ts';
import { KlError } from './endings.ts';
import type { Work } from './progress.ts';

/** Something that was found out about an archive. */
export interface Finding {
  /** `FATAL`: the archive is not complete; nothing restores it. `ERROR`: it is complete, and no import takes it. */
  readonly severity: 'FATAL' | 'ERROR' | 'WARNING';
  /** A code of the service's errors or warnings. */
  readonly code: string;
  readonly member: string | null;
  /** Of the version it was found in. */
  readonly serial: bigint | null;
  /** How many versions were read to their ends before it. Of an incomplete archive nothing proves them. */
  readonly versionsBefore: number;
  readonly message: string;
  /** What to do about it. */
  readonly advice: string;
}

/** What an archive's file is. */
export interface Soundness {
  /** Whether every byte of every member was proven to be what was written; null when the file is not. */
  readonly complete: VerifiedArchive | null;
  /** Whether every raw state is a document that Kilolock can hold, as far as that can be told without PostgreSQL. */
  readonly isValid: boolean;
  readonly findings: readonly Finding[];
}

/** Beyond these an archive has one thing wrong with it many times. */
const MAX_DOCUMENT_FINDINGS = 100;

/**
 * Reads a whole archive, and says apart whether it is complete and whether what it holds could be restored.
 *
 * @throws KlError FILE_UNUSABLE, and errors of the file system.
 */
export async function checkArchive(path: string, reading: Reading, work?: Work): Promise<Soundness> {
  const documents: Finding[] = [];
  const reader = new DocumentReader();
  const { archive, damage, whole } = await readThrough(path, reading, work, async (member, before) => {
    if (member.kind !== 'version') return;
    try {
      await reader.read(member.content, member.byteLength);
    } catch (error) {
      if (!(error instanceof UnsupportedStateDocumentError)) throw error;
      if (documents.length === MAX_DOCUMENT_FINDINGS) return;
      const { serial } = member.version;
      documents.push({
        severity: 'ERROR',
        code: error.code,
        member: versionMemberName(serial),
        serial,
        versionsBefore: before,
        message: `At ${error.path}, ${error.reason}.`,
        advice: `No import takes it. kl archive extract --version ${serial} gives the document out as it is.`,
      });
    }
  });
  if (damage !== null) {
    // What a damaged file seems to hold is no fault of whoever wrote the documents.
    return { complete: null, isValid: false, findings: [archiveFinding(damage, whole)] };
  }
  const warnings = archive.warnings.map(
    ({ count, ...warning }): Finding => ({
      ...warning,
      severity: 'WARNING',
      serial: null,
      versionsBefore: 0,
      advice: 'It does not keep an import from taking the archive.',
    }),
  );
  return { complete: archive, isValid: documents.length === 0, findings: [...documents, ...warnings] };
}

/**
 * An archive that is complete, and that could be restored.
 *
 * @param told the name of the file, and what has not been done with one that is not.
 * @throws KlError with the first thing that is wrong.
 */
export async function soundArchive(
  path: string,
  reading: Reading,
  work: Work,
  told: { readonly name: string; readonly undone: string },
): Promise<VerifiedArchive> {
  const { complete, isValid, findings } = await checkArchive(path, reading, work);
  if (complete !== null && isValid) return complete;
  const { code, message, advice } = present(findings[0], 'something is wrong with it');
  throw new KlError(code, `${told.name}: ${message}`, {
    advice: `${told.undone} kl archive verify tells more. ${advice}`,
  });
}

function archiveFinding(error: ArchiveError, whole: readonly bigint[]): Finding {
  const { code, member, message } = error;
  const [, digits] = /^versions\/(\d+)\./.exec(member ?? '') ?? [];
  const serial = digits === undefined ? null : BigInt(digits);
  return {
    severity: 'FATAL',
    code,
    member,
    serial,
    // Sums stand at the end: that those of an early version differ shows after the last.
    versionsBefore: whole.filter((each) => serial === null || each < serial).length,
    message: `${message}.`,
    advice: ARCHIVE_ADVICE[code],
  };
}
