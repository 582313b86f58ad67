import { DEFAULT_ARCHIVE_LIMITS } from '../../../src/archive/format.ts';
import { TRUST_NOBODY } from '../../../src/archive/signing-keys.ts';
import type { KilolockDatabase } from '../../../src/database/connection.ts';
import { DigestBudget } from '../../../src/history/digest-budget.ts';
import { digestHistory, readDigestedHistories } from '../../../src/history/history.ts';
import type { Caller } from '../../../src/history/states.ts';
import { applyRestore, type RestoreRecord } from '../../../src/restore/apply.ts';
import { destinationOf } from '../../../src/restore/destination.ts';
import { planRestore, type RestorePlan } from '../../../src/restore/plan.ts';
import type { Backend } from '../../operations/support/backend.ts';

/** The plan of an overwrite that its caller confirmed, all checks passed. */
export function planOverwrite(
  { database, services }: Pick<Backend, 'database' | 'services'>,
  caller: Caller,
  path: string,
  label: string,
  expectedCurrentSerial: bigint,
): Promise<RestorePlan> {
  const request = {
    archivePath: path,
    limits: DEFAULT_ARCHIVE_LIMITS,
    trust: TRUST_NOBODY,
    destination: destinationOf(caller.namespace, label),
    onConflict: { kind: 'OVERWRITE' as const, confirmName: label, expectedCurrentSerial },
    allowSharedLineage: false,
    dryRun: false,
    signal: new AbortController().signal,
  };
  return planRestore(database, services.inspector, request, () => {});
}

/** Carries an overwrite out under a recorded operation; the old history is digested, and not exported unless `steps` does it. */
export function applyOverwrite(
  database: KilolockDatabase,
  plan: RestorePlan,
  operationId: string,
  steps: Partial<Pick<RestoreRecord, 'archiveReplaced' | 'beforeCommit'>> = {},
): Promise<void> {
  return applyRestore(database, plan, {
    operationId,
    actor: 'somebody',
    eventDetails: {},
    onProgress: () => {},
    archiveReplaced: async (id) => {
      const history = (await readDigestedHistories(database, [id], new DigestBudget())).get(id);
      return history === undefined ? '' : digestHistory(history).historyDigest;
    },
    beforeCommit: async () => {},
    ...steps,
  });
}
