import { setTimeout as pause } from 'node:timers/promises';
import { type Caller, may } from '../history/states.ts';
import { NotPermittedError } from './destination-permission.ts';
import { markCancelled, readStatus } from './operation-lifecycle.ts';
import { findOperations, type OperationRecord } from './operation-records.ts';
import { RequestRefusedError } from './user-error.ts';

/** How long to wait before each try: a record that is being settled is locked for a moment. */
const PAUSES_MS = [0, 100, 300, 1_000, 2_000];

/**
 * Cancels an operation that waits or is worked on. To whoever cancels one twice, the second time is as good as the first.
 *
 * @throws RequestRefusedError OPERATION_NOT_FOUND, or OPERATION_NOT_CANCELLABLE when it has ended otherwise, is being committed,
 *   or is a part of another one.
 * @throws NotPermittedError when it is another's, and the caller may not start one like it.
 */
export async function cancelOperation(caller: Caller, id: string): Promise<void> {
  const { database, principal } = caller;
  const operation = (await findOperations(database.for('read'), caller, [id])).get(id);
  if (operation === undefined) throw operationNotFound();
  if (!mayCancel(caller, operation)) {
    throw new NotPermittedError("The operation is another's, and your credential does not permit its like.");
  }
  const db = database.for('record');
  for (const milliseconds of PAUSES_MS) {
    await pause(milliseconds);
    if (await markCancelled(db, id, principal)) return;
    const status = await readStatus(db, id);
    if (status === 'CANCELLED') return;
    if (status !== 'PENDING' && status !== 'RUNNING') throw notCancellable('has ended already');
  }
  throw notCancellable(
    'is being committed at this moment, or is a part of another one that has to be cancelled instead',
  );
}

/** The refusal of an operation that is not there, or not visible: the two are told in the same words. */
export function operationNotFound(): RequestRefusedError {
  return new RequestRefusedError(
    'OPERATION_NOT_FOUND',
    'There is no such operation in this environment, or none you may see.',
    ['id'],
  );
}

/** Whoever started it may, and whoever may start the like. */
function mayCancel(caller: Caller, { kind, subject }: OperationRecord): boolean {
  return (
    subject === caller.principal.subject || may(caller, kind === 'EXPORT' ? 'state.export' : 'state.import')
  );
}

function notCancellable(why: string): RequestRefusedError {
  return new RequestRefusedError('OPERATION_NOT_CANCELLABLE', `The operation ${why}. It stays as it is.`, [
    'id',
  ]);
}
