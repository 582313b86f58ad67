import { randomUUID } from 'node:crypto';
import type { DatabaseSession } from '../database/connection.ts';
import { copyIntoTable } from '../database/copy.ts';
import type { OutputRow, ResourceRow } from '../inspection/spooled-rows.ts';

/** Inserts rows of `resources` as they come; returns how many. */
export function insertResourceRows(
  session: DatabaseSession,
  { tenantId, stateId }: { readonly tenantId: string; readonly stateId: string },
  rows: AsyncIterable<ResourceRow> | Iterable<ResourceRow>,
): Promise<number> {
  return copyIntoTable(
    session,
    'public.resources',
    [
      ['id', 'uuid', () => randomUUID()],
      ['tenant_id', 'uuid', () => tenantId],
      ['state_id', 'uuid', () => stateId],
      ['address', 'text', ({ resource }) => resource.address],
      ['mode', 'text', ({ resource }) => resource.mode],
      ['type', 'text', ({ resource }) => resource.type],
      ['name', 'text', ({ resource }) => resource.name],
      ['provider', 'text', ({ resource }) => resource.provider],
      ['module_path', 'text', ({ resource }) => resource.modulePath],
      ['index_kind', 'text', ({ resource }) => resource.indexKind],
      ['index_value', 'text', ({ resource }) => resource.indexValue],
      ['attributes', 'jsonb', ({ resource }) => resource.attributes],
      ['sensitive_paths', 'jsonb', ({ resource }) => resource.sensitivePaths],
      ['dependencies_raw', 'jsonb', ({ resource }) => resource.dependencies],
      ['attributes_hash', 'text', ({ resource }) => resource.attributesHash],
      ['schema_version', 'integer', ({ resource }) => resource.schemaVersion],
      ['create_serial', 'bigint', ({ createSerial }) => createSerial],
      ['delete_serial', 'bigint', ({ deleteSerial }) => deleteSerial],
      ['created_at', 'timestamptz', ({ createdAt }) => createdAt],
    ],
    rows,
  );
}

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
