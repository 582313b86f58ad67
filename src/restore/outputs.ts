import { randomUUID } from 'node:crypto';
import type { DatabaseSession } from '../database/connection.ts';
import { type CopyValue, copyIntoTable } from '../database/copy.ts';
import type { StateOutput } from '../terraform/document.ts';

/** A row of `outputs` before it has an id (data model 3.8). */
export interface VersionOutput extends StateOutput {
  readonly versionId: string;
}

/** Inserts rows of `outputs` as they come; returns how many. */
export async function insertOutputRows(
  session: DatabaseSession,
  tenantId: string,
  outputs: AsyncIterable<VersionOutput> | Iterable<VersionOutput>,
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
  outputs: AsyncIterable<VersionOutput> | Iterable<VersionOutput>,
): AsyncGenerator<CopyValue[]> {
  for await (const { versionId, name, value, type, sensitive } of outputs) {
    yield [randomUUID(), tenantId, versionId, name, value, type, sensitive];
  }
}
