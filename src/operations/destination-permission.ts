import { mayAddressState } from '../auth/principal.ts';
import { type Caller, may } from '../history/states.ts';
import type { ConflictPolicy } from '../restore/placement.ts';

/** The caller's credential does not cover what the caller asks for. */
export class NotPermittedError extends Error {
  override readonly name = 'NotPermittedError';
}

/** @throws NotPermittedError unless the caller may write the state, and overwrite it if that is what is asked. */
export function refuseUncovered(caller: Caller, label: string, policy: ConflictPolicy['kind']): void {
  if (!may(caller, 'state.import') || !mayAddressState(caller.principal, label)) {
    throw new NotPermittedError('Your credential does not cover a state of this name.');
  }
  if (policy === 'OVERWRITE' && !may(caller, 'state.overwrite')) {
    throw new NotPermittedError('Overwriting needs the scope state.overwrite.');
  }
}
