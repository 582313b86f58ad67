import { randomUUID } from 'node:crypto';
import type { DatabaseSession } from '../database/connection.ts';
import { copyIntoTable } from '../database/copy.ts';
import type { ResourceRow } from '../inspection/spooled-rows.ts';
import type { StateOutput } from '../terraform/document.ts';

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

/** Likewise rows of `outputs`; `versionIdOf` gives the id that the version of one has now. */
export function insertOutputRows<Row extends StateOutput>(
  session: DatabaseSession,
  tenantId: string,
  versionIdOf: (row: Row) => string,
  outputs: AsyncIterable<Row> | Iterable<Row>,
): Promise<number> {
  return copyIntoTable(
    session,
    'public.outputs',
    [
      ['id', 'uuid', () => randomUUID()],
      ['tenant_id', 'uuid', () => tenantId],
      ['state_version_id', 'uuid', versionIdOf],
      ['name', 'text', ({ name }) => name],
      ['value', 'jsonb', ({ value }) => value],
      ['value_type', 'jsonb', ({ type }) => type],
      ['sensitive', 'boolean', ({ sensitive }) => sensitive],
    ],
    outputs,
  );
}
