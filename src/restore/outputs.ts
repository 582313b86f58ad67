import { randomUUID } from 'node:crypto';
import type { DatabaseSession } from '../database/connection.ts';
import { copyIntoTable } from '../database/copy.ts';
import type { OutputRow } from '../inspection/spooled-rows.ts';

/** Inserts rows of `outputs` as they come, under the ids that their versions have now; returns how many. */
export function insertOutputRows(
  session: DatabaseSession,
  tenantId: string,
  outputs: AsyncIterable<OutputRow> | Iterable<OutputRow>,
): Promise<number> {
  return copyIntoTable(
    session,
    'public.outputs',
    [
      ['id', 'uuid', () => randomUUID()],
      ['tenant_id', 'uuid', () => tenantId],
      ['state_version_id', 'uuid', ({ versionId }) => versionId],
      ['name', 'text', ({ name }) => name],
      ['value', 'jsonb', ({ value }) => value],
      ['value_type', 'jsonb', ({ type }) => type],
      ['sensitive', 'boolean', ({ sensitive }) => sensitive],
    ],
    outputs,
  );
}
