import { randomUUID } from 'node:crypto';
import type { DatabaseSession } from '../database/connection.ts';
import { type CopyValue, copyIntoTable } from '../database/copy.ts';
import type { OutputRow } from '../inspection/spooled-rows.ts';

/** Inserts rows of `outputs` as they come, under the ids that their versions have now; returns how many. */
export async function insertOutputRows(
  session: DatabaseSession,
  tenantId: string,
  outputs: AsyncIterable<OutputRow> | Iterable<OutputRow>,
): Promise<number> {
  return copyIntoTable(
    session,
    'public.outputs',
    [
      ['id', 'uuid'],
      ['tenant_id', 'uuid'],
      ['state_version_id', 'uuid'],
      ['name', 'text'],
      ['value', 'jsonb'],
      ['value_type', 'jsonb'],
      ['sensitive', 'boolean'],
    ],
    copyValues(tenantId, outputs),
  );
}

async function* copyValues(
  tenantId: string,
  outputs: AsyncIterable<OutputRow> | Iterable<OutputRow>,
): AsyncGenerator<CopyValue[]> {
  for await (const { versionId, name, value, type, sensitive } of outputs) {
    yield [randomUUID(), tenantId, versionId, name, value, type, sensitive];
  }
}
