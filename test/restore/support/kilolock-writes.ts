import { inTransaction, type KilolockDatabase } from '../../../src/database/connection.ts';
import type { ResourceRow } from '../../../src/inspection/spooled-rows.ts';
import { insertResourceRows } from '../../../src/restore/state-rows.ts';
import { AttributesHasher } from '../../../src/terraform/attributes-hash.ts';
import { readStateDocument } from '../../../src/terraform/document.ts';
import { type ProjectedResource, projectResources } from '../../../src/terraform/projection.ts';
import { insertHistory } from '../../support/fixtures.ts';
import { legacyAttributesHash } from './legacy-attributes-hash.ts';
import type { Dialect, RandomEvent, RandomHistory } from './random-history.ts';

/** Writes the rows of a history into a tenant: versions, tags, outputs and events, and no resource rows. */
export async function writeHistory(
  database: KilolockDatabase,
  history: RandomHistory,
  place: { readonly tenantId: string; readonly name: string },
): Promise<string> {
  const { stateId, versionIds } = await insertHistory(database, history, place);
  for (const { serial, raw_state } of history.versions) {
    await insertOutputs(database, place.tenantId, versionIds.get(serial) ?? '', raw_state);
  }
  for (const event of history.events) await insertEvent(database, place.tenantId, stateId, versionIds, event);
  return stateId;
}

async function insertOutputs(
  { pool }: KilolockDatabase,
  tenantId: string,
  versionId: string,
  document: string,
): Promise<void> {
  await pool.query(
    `insert into outputs (tenant_id, state_version_id, name, value, value_type, sensitive)
     select $1, $2, key, coalesce(value -> 'value', 'null'), coalesce(value -> 'type', '"dynamic"'),
       coalesce((value ->> 'sensitive')::boolean, false)
     from jsonb_each(coalesce($3::jsonb -> 'outputs', '{}'))`,
    [tenantId, versionId, document],
  );
}

async function insertEvent(
  { pool }: KilolockDatabase,
  tenantId: string,
  stateId: string,
  versionIds: ReadonlyMap<string, string>,
  { kind, serial, actor, payload, idKey, idOf, createdAt }: RandomEvent,
): Promise<void> {
  const named = idKey === null ? payload : withMember(payload, idKey, versionIds.get(idOf) ?? '');
  await pool.query(
    `insert into events (tenant_id, kind, state_id, state_version_id, actor, payload, created_at)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [tenantId, kind, stateId, serial === null ? null : versionIds.get(serial), actor, named, createdAt],
  );
}

function withMember(object: string, key: string, value: string): string {
  return object.replace(
    /^\{(.?)/s,
    (_all, next: string) => `{"${key}": "${value}"${next === '}' ? '' : ', '}${next}`,
  );
}

/**
 * Adds the resource rows Kilolock would have made of a history, had its versions been posted in order, each in its dialect
 * (data model 3.6 and 3.7).
 */
export async function projectHistory(
  database: KilolockDatabase,
  history: RandomHistory,
  owner: { readonly tenantId: string; readonly stateId: string },
): Promise<void> {
  const { rows: texts } = await database.pool.query<{ serial: string; text: string }>(
    'select serial, raw_state::text as text from state_versions where state_id = $1',
    [owner.stateId],
  );
  const textOf = new Map(texts.map(({ serial, text }) => [serial, text]));
  const rows: ResourceRow[] = [];
  const open = new Map<string, number>();
  for (const { serial, dialect, created_at } of history.versions) {
    const resources = projected(textOf.get(serial) ?? '', dialect);
    for (const [address, index] of open) {
      const row = rows[index];
      if (row === undefined || resources.get(address)?.attributesHash === row.resource.attributesHash)
        continue;
      rows[index] = { ...row, deleteSerial: BigInt(serial) };
      open.delete(address);
    }
    for (const [address, resource] of resources) {
      if (open.has(address)) continue;
      open.set(address, rows.length);
      rows.push({ resource, createSerial: BigInt(serial), deleteSerial: null, createdAt: created_at });
    }
  }
  await inTransaction(database, 'restore', (session) => insertResourceRows(session, owner, rows));
}

function projected(jsonbText: string, dialect: Dialect): ReadonlyMap<string, ProjectedResource> {
  const text = dialect === 'compact' ? compact(jsonbText) : jsonbText;
  const layout = dialect === 'terraform' ? 'terraform' : 'as-written';
  const resources = [
    ...projectResources(readStateDocument(Buffer.from(text)), new AttributesHasher(layout)).rows(),
  ];
  return new Map(
    resources.map((resource) => [
      resource.address,
      dialect === 'before schema versions'
        ? { ...resource, attributesHash: legacyAttributesHash(resource), schemaVersion: 0 }
        : resource,
    ]),
  );
}

/** JSON without white space between its tokens. */
function compact(json: string): string {
  return json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
}
