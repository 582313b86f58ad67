import { isUuid } from '../../base/uuid.ts';
import type { CommonOptions, Context } from '../context.ts';
import { DOCUMENTS, type ImportAnswer, type UserError } from '../documents.ts';
import { EXIT, type Exit, failure, KlError } from '../endings.ts';
import { isGoingOn, waitForCancellation } from '../operations.ts';
import { connect, refuseErrors } from '../service.ts';
import { operationText } from './status.ts';

/** `kl cancel`: calls an operation off, and waits until it has ended without effect. */
export async function run(context: Context, _options: CommonOptions, id: string): Promise<Exit> {
  const { terminal } = context;
  if (!isUuid(id))
    throw failure('USAGE', `${JSON.stringify(id)} is no id of an operation: kl operations lists them.`);
  const service = await connect(context);
  const { cancelStateArchiveOperation } = await service.ask<{
    cancelStateArchiveOperation: {
      readonly operation: ImportAnswer | null;
      readonly userErrors: readonly UserError[];
    };
  }>(DOCUMENTS.cancel, { id });
  refuseErrors(cancelStateArchiveOperation);
  const { operation } = cancelStateArchiveOperation;
  if (operation === null) {
    throw new KlError('OPERATION_NOT_FOUND', `There is no operation ${id} that this credential may see.`);
  }
  const ended = isGoingOn(operation) ? await waitForCancellation(service, operation) : operation;
  terminal.result(ended, () => operationText(ended));
  // A commit may have been on its way.
  return ended.status === 'CANCELLED' ? EXIT.done : EXIT.refused;
}
