import { clip } from '../base/clip.ts';
import type { PlacementOutcome } from './placement.ts';

/** The stable codes of warnings: `StateArchiveWarningCode` of the schema, explained in docs/restore.md. */
export const WARNING_CODES = [
  'RESOURCE_SPANS_DERIVED',
  'RESOURCE_HASHES_KEPT',
  'RAW_STATES_NORMALISED',
  'CURRENT_IS_NOT_LAST',
  'SERIAL_MISMATCH',
  'LINEAGE_MISMATCH',
  'DEPOSED_INSTANCE',
  'ADDRESS_REPEATED',
  'LOCK_POLICY_CHANGED',
  'UNKNOWN_FIELDS',
  'ATTESTATION_NOT_VERIFIED',
] as const;
export type WarningCode = (typeof WARNING_CODES)[number];

/** Something worth knowing that did not stop a restore. */
export interface RestoreWarning {
  /** Null in a report of a later release, whose code this one does not know. */
  readonly code: WarningCode | null;
  readonly message: string;
  /** The version it was found in; null when it is about the history as a whole. */
  readonly serial: bigint | null;
}

/** What a restore wrote; for a dry run, what it would have written. */
export interface RestoreReport {
  readonly dryRun: boolean;
  readonly outcome: PlacementOutcome;
  /** The label restored under. */
  readonly name: string;
  /** How many versions the history had that was replaced. */
  readonly replacedVersions: number;
  /** The label the archive was taken from. */
  readonly sourceName: string;
  /** The id of the state the archive was taken from. */
  readonly sourceStateId: string;
  readonly versions: number;
  readonly tags: number;
  readonly events: number;
  readonly resourceSpans: number;
  /** Whether the spans were derived from the raw states, because those carried are absent or disagree with them. */
  readonly resourceSpansDerived: boolean;
  readonly outputs: number;
  /** Bytes of raw state in the archive. */
  readonly rawBytes: bigint;
  /** The digest of the history as restored; the archive's own unless raw states were normalised. */
  readonly historyDigest: string;
  /** How many raw states jsonb keeps in another spelling than the archive's. */
  readonly normalisedVersions: number;
  readonly warnings: readonly RestoreWarning[];
}

const MAX_NAME = 1024;

/** A name out of an archive as reports and events keep it: cut where it is longer than names are. */
export function nameForRecord(name: string): string {
  return clip(name, MAX_NAME);
}

const WARNINGS_KEPT_A_CODE = 50;
const MAX_MESSAGE = 500;

/**
 * Gathers warnings, so that a report has a bound whatever the archive: a code that comes up without end is counted after
 * the first fifty, and a message that names something of any length is cut.
 */
export class WarningCollector {
  readonly #kept: RestoreWarning[] = [];
  readonly #counts = new Map<WarningCode, number>();

  add(code: WarningCode, message: string, serial: bigint | null = null): void {
    const count = (this.#counts.get(code) ?? 0) + 1;
    this.#counts.set(code, count);
    if (count <= WARNINGS_KEPT_A_CODE) {
      this.#kept.push({ code, message: clip(message, MAX_MESSAGE), serial });
    }
  }

  /** The warnings in the order they were added, then a count for each code that was cut short. */
  list(): RestoreWarning[] {
    const cutShort = [...this.#counts].filter(([, count]) => count > WARNINGS_KEPT_A_CODE);
    return [
      ...this.#kept,
      ...cutShort.map(([code, count]) => ({
        code,
        message: `${count - WARNINGS_KEPT_A_CODE} more of ${code}.`,
        serial: null,
      })),
    ];
  }
}
