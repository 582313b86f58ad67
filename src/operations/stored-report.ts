import { z } from 'zod';
import { WARNING_CODES } from '../inspection/warnings.ts';
import type { RestoreReport } from '../restore/report.ts';

const bigintText = z.string().transform(BigInt);

const storedReport = z.object({
  dryRun: z.boolean(),
  outcome: z.enum(['CREATED', 'ARCHIVED_COPY', 'REPLACED']),
  name: z.string(),
  replacedVersions: z.number(),
  sourceName: z.string(),
  sourceStateId: z.string(),
  versions: z.number(),
  tags: z.number(),
  events: z.number(),
  resourceSpans: z.number(),
  resourceSpansDerived: z.boolean(),
  outputs: z.number(),
  rawBytes: bigintText,
  historyDigest: z.string(),
  normalisedVersions: z.number(),
  // Earlier releases looked at no signature.
  signature: z
    .object({ verified: z.boolean(), keyIds: z.array(z.string()) })
    .nullable()
    .default(null),
  warnings: z.array(
    z.object({
      code: z.enum(WARNING_CODES).nullable().catch(null),
      message: z.string(),
      serial: bigintText.nullable(),
    }),
  ),
});

/** The JSON text that a record keeps of a report. */
export function writeReport(report: RestoreReport): string {
  return JSON.stringify(report, (_key, value) => (typeof value === 'bigint' ? String(value) : value));
}

/**
 * The report that a record keeps. A replica of a later release may have written it: a warning's code that is not known here
 * is null, and so is the report when anything else in it is not what this release would have written.
 */
export function readReport(text: string): RestoreReport | null {
  return storedReport.safeParse(JSON.parse(text)).data ?? null;
}
