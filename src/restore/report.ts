import type { PlacementOutcome } from './placement.ts';

/** Something worth knowing that did not stop a restore. */
export interface RestoreWarning {
  /** A stable code. */
  readonly code: string;
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

const WARNINGS_KEPT_A_CODE = 50;

/** Gathers warnings; a code that comes up without end is counted after the first fifty. */
export class WarningCollector {
  readonly #kept: RestoreWarning[] = [];
  readonly #counts = new Map<string, number>();

  add(code: string, message: string, serial: bigint | null = null): void {
    const count = (this.#counts.get(code) ?? 0) + 1;
    this.#counts.set(code, count);
    if (count <= WARNINGS_KEPT_A_CODE) this.#kept.push({ code, message, serial });
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
