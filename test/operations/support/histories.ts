import type { KilolockDatabase } from '../../../src/database/connection.ts';
import type { Caller } from '../../../src/history/states.ts';
import { destinationOf } from '../../../src/restore/destination.ts';
import { appendSnapshot } from '../../../src/restore/snapshot.ts';
import { loadTerraformHistory } from '../../support/fixtures.ts';

/** The lineage of the documents that Terraform wrote. */
export const TERRAFORM_LINEAGE = lineageOf(loadTerraformHistory()[0]?.document ?? '{}');

function lineageOf(document: string): string {
  const { lineage } = JSON.parse(document) as { lineage: string };
  return lineage;
}

/** Posts the ten documents that Terraform wrote, in order, as the versions of one state. Returns the state's id. */
export async function postTerraformHistory(
  database: KilolockDatabase,
  caller: Caller,
  label: string,
): Promise<string> {
  let stateId = '';
  for (const { document } of loadTerraformHistory()) {
    ({ stateId } = await post(database, caller, label, document));
  }
  return stateId;
}

/** The same, with what people leave beside it: {@link annotate}. */
export async function postAnnotatedHistory(
  database: KilolockDatabase,
  caller: Caller,
  label: string,
): Promise<void> {
  await annotate(database, await postTerraformHistory(database, caller, label));
}

/** Posts the first of the documents that Terraform wrote as the one version of a state. */
export function postFirstDocument(
  database: KilolockDatabase,
  caller: Caller,
  label: string,
): Promise<{ stateId: string; serial: bigint }> {
  const [{ document } = { document: '' }] = loadTerraformHistory();
  return post(database, caller, label, document);
}

/** Posts one document as the next version of a state. */
export function post(
  database: KilolockDatabase,
  caller: Caller,
  label: string,
  document: string,
  actor = 'ci@runner',
): Promise<{ stateId: string; serial: bigint }> {
  return appendSnapshot(database, destinationOf(caller.namespace, label), {
    document: Buffer.from(document),
    source: 'apply',
    actor,
  });
}

/**
 * What people leave on a history beside its versions: tags, one of them moved; the events of tags, of a rollback and of a
 * lock; a payload with a number no double holds, and one that is no object.
 */
export async function annotate({ pool }: KilolockDatabase, stateId: string): Promise<void> {
  await pool.query(
    `with version as (select * from state_versions where state_id = $1)
     insert into state_version_tags
       (tenant_id, state_id, state_version_id, tag, description, actor, created_at, updated_at)
     select tenant_id, state_id, id, tag, description, actor, created::timestamptz, updated::timestamptz
     from version join (values
       (3, 'before-resize', 'three web servers — before', 'alice@cli', '2026-03-02T10:00:00.000001Z', '2026-03-02T10:00:00.000001Z'),
       (7, 'release', null, 'ci@runner', '2026-03-03T10:00:00.123456Z', '2026-03-09T23:59:59.999999Z'),
       (7, 'Release', '', '', '2026-03-04T10:00:00Z', '2026-03-04T10:00:00Z')
     ) as tag (at, tag, description, actor, created, updated) on tag.at = version.serial`,
    [stateId],
  );
  await pool.query(
    `with version as (select * from state_versions where state_id = $1)
     insert into events (tenant_id, kind, state_id, state_version_id, actor, payload, created_at)
     select tenant_id, 'tag.set', state_id, null::uuid, 'alice@cli', jsonb_build_object('tag', 'release', 'ref', '@0',
       'resolved_serial', serial, 'resolved_version_id', id, 'description', ''), '2026-03-09T23:59:59.999999Z'::timestamptz
     from version where serial = 7
     union all
     select tenant_id, 'tag.unset', state_id, null, null, jsonb_build_object('tag', 'old', 'was_version_id', id),
       '2026-03-10T00:00:00.000001Z' from version where serial = 2
     union all
     select tenant_id, 'state_rollback', state_id, id, '', jsonb_build_object('replayed_from_version',
       (select id from version where serial = 4), 'replayed_from_serial', 4), '2026-03-11T00:00:00Z'
     from version where serial = 5
     union all
     select tenant_id, 'lock_acquire', state_id, null, 'bob', '{"lock_id": "l-1"}', '2026-03-12T00:00:00Z'
     from version where serial = 1
     union all
     select tenant_id, 'state_write', state_id, id, 'ci@runner', '{"big": 9007199254740993, "scale": 1.10}',
       '2026-03-13T00:00:00Z' from version where serial = 6
     union all
     select tenant_id, 'from_elsewhere', state_id, id, 'ci@runner', '["no", "object"]', '2026-03-14T00:00:00Z'
     from version where serial = 6`,
    [stateId],
  );
}
