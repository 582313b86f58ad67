import type { ArchiveSignature } from '../archive/attestation.ts';
import { clip } from '../base/clip.ts';
import type { RestoreWarning } from '../inspection/warnings.ts';
import type { PlacementOutcome } from './placement.ts';

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
  /** What the archive's attestation was worth; null when it had none. */
  readonly signature: ArchiveSignature | null;
  readonly warnings: readonly RestoreWarning[];
}

const MAX_NAME = 1024;

/** A name out of an archive as reports and events keep it: cut where it is longer than names are. */
export function nameForRecord(name: string): string {
  return clip(name, MAX_NAME);
}
