import { clip } from '../base/clip.ts';

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
