import { readdirSync, readFileSync } from 'node:fs';
import { sql } from 'kysely';
import { present } from '../base/invariant.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { findNamespace } from '../history/namespace.ts';
import { destinationOf } from '../restore/destination.ts';
import { appendSnapshot } from '../restore/snapshot.ts';

/** The label the sample is loaded under. */
export const SAMPLE_LABEL = 'demo/network';

const DOCUMENTS = new URL('./terraform-history/', import.meta.url);

/** When each document was posted, and by whom: people by day, the pipeline by night. */
const POSTED = [
  ['2026-02-16T09:12:41.318204Z', 'alice@example.com'],
  ['2026-02-18T15:47:03.902117Z', 'alice@example.com'],
  ['2026-02-23T10:05:56.044873Z', 'bob@example.com'],
  ['2026-02-23T10:21:19.667530Z', 'bob@example.com'],
  ['2026-03-02T03:00:12.250961Z', 'ci/deploy'],
  ['2026-03-05T13:38:27.519046Z', 'alice@example.com'],
  ['2026-03-09T03:00:11.873302Z', 'ci/deploy'],
  ['2026-03-11T16:54:40.130795Z', 'carol@example.com'],
  ['2026-03-16T03:00:12.407618Z', 'ci/deploy'],
  ['2026-03-20T11:29:08.735249Z', 'alice@example.com'],
] as const;

const TAGS = [
  {
    tag: 'before-resize',
    serial: 3n,
    description: 'three web servers, before they became one',
    setAt: '2026-02-23T10:17:32.481650Z',
    actor: 'bob@example.com',
  },
  {
    tag: 'release-2026-03',
    serial: 7n,
    description: null,
    setAt: '2026-03-09T08:31:54.006127Z',
    actor: 'alice@example.com',
  },
];

/**
 * Posts ten state documents that Terraform wrote (applies, a move, a removal, a taint) to an empty self-hosted
 * database, in order, and tags two versions: five weeks of the work of three people and a pipeline. Does nothing when the
 * database has states.
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
      actor: present(POSTED[index], 'every document was posted')[1],
    });
    stateId = appended.stateId;
  }
  for (const tag of TAGS) await setTag(database, stateId, tag);
  await spreadOverTime(database, stateId);
  return true;
}

/** Tags a version and records it, as `kl tag set` does (data model 4). */
async function setTag(
  database: KilolockDatabase,
  stateId: string,
  { tag, serial, description, actor, setAt }: (typeof TAGS)[number],
): Promise<void> {
  await sql`
    with version as (
      select id, tenant_id, state_id, serial from public.state_versions
      where state_id = ${stateId} and serial = ${String(serial)}
    ), tagged as (
      insert into public.state_version_tags
        (tenant_id, state_id, state_version_id, tag, description, actor, created_at, updated_at)
      select tenant_id, state_id, id, ${tag}, ${description}::text, ${actor}, ${setAt}, ${setAt} from version
    )
    insert into public.events (tenant_id, kind, state_id, actor, created_at, payload)
    select tenant_id, 'tag.set', state_id, ${actor}, ${setAt}, jsonb_build_object(
      'tag', ${tag}::text, 'ref', serial::text, 'resolved_serial', serial, 'resolved_version_id', id,
      'description', coalesce(${description}::text, ''))
    from version
  `.execute(database.for('record'));
}

/** Gives what was posted within a second the times at which it is said to have been posted. */
async function spreadOverTime(database: KilolockDatabase, stateId: string): Promise<void> {
  const times = POSTED.map(([time]) => time);
  await sql`
    with posted as (
      update public.state_versions version set created_at = posted.at
      from (
        select id, (${times}::timestamptz[])[row_number() over (order by serial)] as at
        from public.state_versions where state_id = ${stateId}
      ) posted
      where version.id = posted.id
      returning version.id, version.serial, version.created_at
    ), events as (
      update public.events event set created_at = posted.created_at
      from posted where event.state_version_id = posted.id
    ), resources as (
      update public.resources resource set created_at = posted.created_at
      from posted where resource.state_id = ${stateId} and resource.create_serial = posted.serial
    )
    update public.states set created_at = ${times.at(0)}, updated_at = ${times.at(-1)} where id = ${stateId}
  `.execute(database.for('record'));
}
