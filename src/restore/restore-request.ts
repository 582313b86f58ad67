import type { ArchiveLimits } from '../archive/format.ts';
import type { SignatureTrust } from '../archive/signing-keys.ts';
import type { HistoryRowPaths } from '../inspection/spooled-rows.ts';
import type { PlacementRequest } from './placement.ts';

/** What is to be restored, and where. */
export interface RestoreRequest extends PlacementRequest {
  /** The archive; the file must not change until the restore is over. */
  readonly archivePath: string;
  /** What the archive may cost to read. */
  readonly limits: ArchiveLimits;
  /** Whose signatures count. */
  readonly trust: SignatureTrust;
  readonly dryRun: boolean;
  /** Ends the work early; nothing is left behind. */
  readonly signal: AbortSignal;
}

/** Where a restore puts its rows aside between plan and apply. */
export function rowPathsOf({ archivePath }: Pick<RestoreRequest, 'archivePath'>): HistoryRowPaths {
  return {
    resources: `${archivePath}.resources`,
    outputs: `${archivePath}.outputs`,
    versions: `${archivePath}.versions`,
    tags: `${archivePath}.tags`,
    events: `${archivePath}.events`,
  };
}
