import { z } from 'zod';
import { clip } from '../base/clip.ts';
import { WARNING_CODES } from '../inspection/warnings.ts';

const bigintText = z.string().transform(BigInt);

/** The JSON of a {@link RestoreReport}. */
const restoreReport = z.object({
  dryRun: z.boolean(),
  /** How the history is placed. */
  outcome: z.enum(['CREATED', 'ARCHIVED_COPY', 'REPLACED']),
  /** The label restored under. */
  name: z.string(),
  /** How many versions the history had that was replaced. */
  replacedVersions: z.number(),
  /** The label the archive was taken from. */
  sourceName: z.string(),
  /** The id of the state the archive was taken from. */
  sourceStateId: z.string(),
  versions: z.number(),
  tags: z.number(),
  events: z.number(),
  resourceSpans: z.number(),
  /** Whether the spans were derived from the raw states, because those carried are absent or disagree with them. */
  resourceSpansDerived: z.boolean(),
  outputs: z.number(),
  /** Bytes of raw state in the archive. */
  rawBytes: bigintText,
  /** The digest of the history as restored; the archive's own unless raw states were normalised. */
  historyDigest: z.string(),
  /** How many raw states jsonb keeps in another spelling than the archive's. */
  normalisedVersions: z.number(),
  /** What the archive's attestation was worth; null when it had none. Earlier releases looked at no signature. */
  signature: z
    .object({ verified: z.boolean(), keyIds: z.array(z.string()).readonly() })
    .nullable()
    .default(null),
  warnings: z
    .array(
      z.object({
        code: z.enum(WARNING_CODES).nullable().catch(null),
        message: z.string(),
        serial: bigintText.nullable(),
      }),
    )
    .readonly(),
});

/** What a restore wrote; for a dry run, what it would have written. */
export type RestoreReport = Readonly<z.output<typeof restoreReport>>;

/** The JSON text that a record keeps of a report. */
export function writeReport(report: RestoreReport): string {
  return JSON.stringify(report, (_key, value) => (typeof value === 'bigint' ? String(value) : value));
}

/**
 * The report that a record keeps. A replica of a later release may have written it: a warning's code that is not known here
 * is null, and so is the report when anything else in it is not what this release would have written.
 */
export function readReport(text: string): RestoreReport | null {
  return restoreReport.safeParse(JSON.parse(text)).data ?? null;
}

const MAX_NAME = 1024;

/** A name out of an archive as reports and events keep it: cut where it is longer than names are. */
export function nameForRecord(name: string): string {
  return clip(name, MAX_NAME);
}
