import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { CommitUndecidedError } from '../database/commit.ts';
import { DatabaseUnavailableError } from '../database/errors.ts';
import { destinationOf } from '../restore/destination.ts';
import {
  type AppendedVersion,
  appendSnapshot,
  SNAPSHOT_SOURCES,
  type SnapshotSource,
} from '../restore/snapshot.ts';
import { refuseUncovered } from './destination-permission.ts';
import { idempotencyOf, onceForKey } from './idempotency.ts';
import type { ArchiveServices, CallerRequest } from './services.ts';
import { RequestRefusedError } from './user-error.ts';

/** A document to append, and how. */
export interface SnapshotRequest {
  /** The label of the state, which is created when it is new. */
  readonly label: string;
  readonly document: Buffer;
  /** What Kilolock records as the version's source; null: "import". */
  readonly source: string | null;
  /** The caller's name for this request: asking again with it gives the same version. */
  readonly idempotencyKey: string | null;
}

/**
 * Appends one raw state document to the state the caller knows by a label.
 *
 * @throws RequestRefusedError, RestoreRefusedError when it is refused; nothing is written then.
 * @throws NotPermittedError when the caller's state patterns do not cover the label.
 */
export async function importStateSnapshot(
  { inspector, scratch }: Pick<ArchiveServices, 'inspector' | 'scratch'>,
  { caller }: CallerRequest,
  { label, document, source: given, idempotencyKey }: SnapshotRequest,
): Promise<AppendedVersion> {
  const destination = destinationOf(caller.namespace, label);
  refuseUncovered(caller, label, 'REFUSE');
  const source = snapshotSource(given);
  const once =
    idempotencyKey === null
      ? null
      : onceForKey(
          caller,
          idempotencyOf(caller, idempotencyKey, {
            label,
            source,
            sha256: createHash('sha256').update(document).digest('hex'),
          }),
        );
  const snapshot = { document, source, actor: caller.principal.actor };
  const rows = { resources: scratch.path(), outputs: scratch.path() };
  try {
    return await appendSnapshot(caller.database, destination, snapshot, {
      once,
      read: (bytes, storage) => inspector.readSnapshot(bytes, storage, rows),
    });
  } catch (error) {
    if (error instanceof CommitUndecidedError) {
      throw interrupted(
        error,
        once === null
          ? "Whether the version was written is not known: look at the state's versions before you ask again."
          : 'Whether the version was written is not known: ask again with the same idempotencyKey.',
      );
    }
    if (error instanceof DatabaseUnavailableError)
      throw interrupted(error, 'Nothing was written; ask again.');
    throw error;
  } finally {
    for (const path of Object.values(rows)) await rm(path, { force: true });
  }
}

function interrupted(cause: unknown, outcome: string): RequestRefusedError {
  const error = new RequestRefusedError(
    'OPERATION_INTERRUPTED',
    `The database could not be reached, or not in time. ${outcome}`,
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
