import type { CommonOptions, Context } from '../context.ts';
import { DOCUMENTS } from '../documents.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { connect } from '../service.ts';
import { table } from '../tables.ts';

interface Options extends CommonOptions {
  readonly limit: string;
}

/** What one request gives. */
const MOST = 100;

/** `kl operations`: exports and imports, newest first. */
export async function run(context: Context, options: Options, pattern: string | undefined): Promise<Exit> {
  const limit = Number(options.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST) {
    throw failure('USAGE', `--limit: expected a number from 1 to ${MOST}.`);
  }
  const service = await connect(context);
  const filter = pattern === undefined ? null : { namePrefix: pattern.replace(/\*$/, '') };
  const page = await service.ask(DOCUMENTS.operations, { first: limit, filter });
  const nodes = page.nodes.filter(
    ({ name }) => pattern === undefined || pattern.endsWith('*') || name === pattern,
  );
  context.terminal.result(nodes, () =>
    nodes.length === 0
      ? 'There is no operation that this credential may see.'
      : table(nodes, {
          OPERATION: 'id',
          KIND: 'kind',
          STATE: 'name',
          STATUS: 'status',
          'ASKED FOR': 'createdAt',
          BY: 'actor',
          ERROR: ({ error }) => error?.code ?? '',
        }),
  );
  return EXIT.done;
}
