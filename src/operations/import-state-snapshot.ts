import { CommitUndecidedError } from '../database/commit.ts';
import { isConnectionLost } from '../database/errors.ts';
import { destinationOf } from '../restore/destination.ts';
import { appendSnapshot, SNAPSHOT_SOURCES, type SnapshotSource } from '../restore/snapshot.ts';
import { refuseUncovered } from './destination-permission.ts';
import type { CallerRequest } from './services.ts';
import { RequestRefusedError } from './user-error.ts';

/**
 * Appends one raw state document to the state the caller knows by `label`, creating it when it is new.
 *
 * @param source what Kilolock records as the version's source; null: "import".
 * @throws RequestRefusedError, RestoreRefusedError when it is refused; nothing is written then.
 * @throws NotPermittedError when the caller's state patterns do not cover the label.
 */
export async function importStateSnapshot(
  { caller }: CallerRequest,
  label: string,
  document: Buffer,
  source: string | null,
): Promise<{ stateId: string; serial: bigint }> {
  const destination = destinationOf(caller.namespace, label);
  refuseUncovered(caller, label, 'REFUSE');
  const snapshot = { document, source: snapshotSource(source), actor: caller.principal.actor };
  try {
    return await appendSnapshot(caller.database, destination, snapshot);
  } catch (error) {
    if (error instanceof CommitUndecidedError) throw interrupted(error, UNKNOWN_OUTCOME);
    if (isConnectionLost(error)) throw interrupted(error, 'Nothing was written; ask again.');
    throw error;
  }
}

const UNKNOWN_OUTCOME =
  "Whether the version was written is not known: look at the state's versions before you ask again.";

function interrupted(cause: unknown, outcome: string): RequestRefusedError {
  const error = new RequestRefusedError(
    'OPERATION_INTERRUPTED',
    `The connection to the database was lost. ${outcome}`,
  );
  error.cause = cause;
  return error;
}

function snapshotSource(given: string | null): SnapshotSource {
  const source = SNAPSHOT_SOURCES.find((known) => known === (given ?? 'import'));
  if (source === undefined) {
    throw new RequestRefusedError('INVALID_INPUT', `source is one of ${SNAPSHOT_SOURCES.join(', ')}.`, [
      'source',
    ]);
  }
  return source;
}
