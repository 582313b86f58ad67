import { readdirSync, readFileSync } from 'node:fs';
import { sql } from 'kysely';
import type { KilolockDatabase } from '../database/connection.ts';
import { findNamespace } from '../history/namespace.ts';
import { destinationOf } from '../restore/destination.ts';
import { appendSnapshot } from '../restore/snapshot.ts';

/** The label the sample is loaded under. */
export const SAMPLE_LABEL = 'demo/network';

const DOCUMENTS = new URL('./terraform-history/', import.meta.url);

const TAGS = [
  { tag: 'before-resize', serial: 3n, description: 'three web servers, before they became one' },
  { tag: 'release-2026-03', serial: 7n, description: null },
];

/**
 * Posts ten state documents that Terraform wrote (applies, a move, a removal, a taint) to an empty self-hosted
 * database, in order, and tags two versions. Does nothing when the database has states.
 *
 * @returns whether the sample was loaded.
 */
export async function loadSampleHistory(database: KilolockDatabase): Promise<boolean> {
  const db = database.for('read');
  const [existing, namespace] = await Promise.all([
    db.selectFrom('states').select('id').limit(1).executeTakeFirst(),
    findNamespace(db, null),
  ]);
  if (existing !== undefined || namespace === null) return false;
  const destination = destinationOf(namespace, SAMPLE_LABEL);
  const names = readdirSync(DOCUMENTS).filter((name) => name.endsWith('.tfstate'));
  let stateId = '';
  for (const [index, name] of names.sort().entries()) {
    const appended = await appendSnapshot(database, destination, {
      document: readFileSync(new URL(name, DOCUMENTS)),
      source: 'apply',
      actor: index % 3 === 0 ? 'alice@cli' : 'ci@runner',
    });
    stateId = appended.stateId;
  }
  for (const { tag, serial, description } of TAGS) await setTag(database, stateId, tag, serial, description);
  return true;
}

/** Tags a version and records it, as `kl tag set` does (data model 4). */
async function setTag(
  database: KilolockDatabase,
  stateId: string,
  tag: string,
  serial: bigint,
  description: string | null,
): Promise<void> {
  await sql`
    with version as (
      select id, tenant_id, state_id, serial from public.state_versions
      where state_id = ${stateId} and serial = ${String(serial)}
    ), tagged as (
      insert into public.state_version_tags (tenant_id, state_id, state_version_id, tag, description, actor)
      select tenant_id, state_id, id, ${tag}, ${description}::text, 'alice@cli' from version
    )
    insert into public.events (tenant_id, kind, state_id, actor, payload)
    select tenant_id, 'tag.set', state_id, 'alice@cli', jsonb_build_object(
      'tag', ${tag}::text, 'ref', serial::text, 'resolved_serial', serial, 'resolved_version_id', id,
      'description', coalesce(${description}::text, ''))
    from version
  `.execute(database.for('record'));
}
