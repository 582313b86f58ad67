import { randomUUID } from 'node:crypto';
import type { DatabaseSession } from '../database/connection.ts';
import { type CopyValue, copyIntoTable } from '../database/copy.ts';
import type { ResourceRow } from '../inspection/spooled-rows.ts';

/** Inserts rows of `resources` as they come; returns how many. */
export async function insertResourceRows(
  session: DatabaseSession,
  owner: { readonly tenantId: string; readonly stateId: string },
  rows: AsyncIterable<ResourceRow> | Iterable<ResourceRow>,
): Promise<number> {
  return copyIntoTable(
    session,
    'public.resources',
    [
      ['id', 'uuid'],
      ['tenant_id', 'uuid'],
      ['state_id', 'uuid'],
      ['address', 'text'],
      ['mode', 'text'],
      ['type', 'text'],
      ['name', 'text'],
      ['provider', 'text'],
      ['module_path', 'text'],
      ['index_kind', 'text'],
      ['index_value', 'text'],
      ['attributes', 'jsonb'],
      ['sensitive_paths', 'jsonb'],
      ['dependencies_raw', 'jsonb'],
      ['attributes_hash', 'text'],
      ['schema_version', 'integer'],
      ['create_serial', 'bigint'],
      ['delete_serial', 'bigint'],
      ['created_at', 'timestamptz'],
    ],
    copyValues(owner, rows),
  );
}

async function* copyValues(
  owner: { readonly tenantId: string; readonly stateId: string },
  rows: AsyncIterable<ResourceRow> | Iterable<ResourceRow>,
): AsyncGenerator<CopyValue[]> {
  for await (const { resource, createSerial, deleteSerial, createdAt } of rows) {
    yield [
      randomUUID(),
      owner.tenantId,
      owner.stateId,
      resource.address,
      resource.mode,
      resource.type,
      resource.name,
      resource.provider,
      resource.modulePath,
      resource.indexKind,
      resource.indexValue,
      resource.attributes,
      resource.sensitivePaths,
      resource.dependencies,
      resource.attributesHash,
      resource.schemaVersion,
      createSerial,
      deleteSerial,
      createdAt,
    ];
  }
}
