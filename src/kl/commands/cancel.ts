import { isUuid } from '../../base/uuid.ts';
import type { CommonOptions, Context } from '../context.ts';
import { DOCUMENTS } from '../documents.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { isGoingOn } from '../operations.ts';
import { connect, unexplained } from '../service.ts';
import { operationText } from './status.ts';

const PAUSE_MS = 200;

/** `kl cancel`: calls an operation off, and waits until it has ended, however that is. */
export async function run(context: Context, _options: CommonOptions, id: string): Promise<Exit> {
  if (!isUuid(id))
    throw failure('USAGE', `${JSON.stringify(id)} is no id of an operation: kl operations lists them.`);
  const service = await connect(context);
  const asked = await service.change(DOCUMENTS.cancel, { id });
  let operation = asked.operation ?? unexplained('called nothing off');
  while (isGoingOn(operation)) {
    await service.pause(PAUSE_MS);
    operation = (await service.ask(DOCUMENTS.operation, { id })) ?? { ...operation, status: 'CANCELLED' };
  }
  context.terminal.result(operation, () => operationText(operation));
  // A commit may have been on its way.
  return operation.status === 'CANCELLED' ? EXIT.done : EXIT.refused;
}
