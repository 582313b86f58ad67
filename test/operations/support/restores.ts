import { randomUUID } from 'node:crypto';
import { DEFAULT_ARCHIVE_LIMITS } from '../../../src/archive/format.ts';
import { TRUST_NOBODY } from '../../../src/archive/signing-keys.ts';
import type { DatabaseSession, KilolockDatabase } from '../../../src/database/connection.ts';
import type { Caller } from '../../../src/history/states.ts';
import { insertOperation } from '../../../src/operations/operation-admission.ts';
import { beginPart } from '../../../src/operations/operation-lifecycle.ts';
import { applyRestore } from '../../../src/restore/apply.ts';
import { destinationOf } from '../../../src/restore/destination.ts';
import { planRestore, type RestorePlan } from '../../../src/restore/plan.ts';
import type { Backend } from './backend.ts';

/** The plan of a restore into the caller's environment, all checks passed. */
export async function planOf(
  { database, services }: Pick<Backend, 'database' | 'services'>,
  caller: Caller,
  path: string,
  label: string,
  options: { readonly allowSharedLineage?: boolean } = {},
): Promise<RestorePlan> {
  const request = {
    archivePath: path,
    limits: DEFAULT_ARCHIVE_LIMITS,
    trust: TRUST_NOBODY,
    destination: destinationOf(caller.namespace, label),
    onConflict: { kind: 'REFUSE' as const },
    allowSharedLineage: options.allowSharedLineage ?? false,
    dryRun: false,
    signal: new AbortController().signal,
  };
  return planRestore(database, services.inspector, request, () => {});
}

/** Records an operation for a restore to belong to, and returns its id. */
export async function recordImport(
  database: KilolockDatabase,
  caller: Caller,
  label: string,
): Promise<string> {
  const db = database.for('record');
  const id = randomUUID();
  await insertOperation(db, caller, {
    id,
    kind: 'IMPORT',
    label,
    stateName: caller.namespace.namePrefix + label,
    stateId: null,
    archiveSha256: null,
    requestId: 'request-1',
    idempotency: null,
    order: null,
  });
  await beginPart(db, id, 'a test');
  return id;
}

/** Carries a plan out under a recorded operation. Returns the id of the restored state. */
export async function apply(
  database: KilolockDatabase,
  plan: RestorePlan,
  operationId: string,
  beforeCommit: (session: DatabaseSession) => Promise<void> = async () => {},
): Promise<{ stateId: string }> {
  await applyRestore(database, plan, {
    operationId,
    actor: 'somebody',
    eventDetails: {},
    onProgress: () => {},
    archiveReplaced: async () => '',
    beforeCommit,
  });
  return { stateId: plan.placement.stateId };
}
