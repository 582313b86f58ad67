import type { KilolockDatabase } from '../../../src/database/connection.ts';

/**
 * Records operations that have ended in the environments of all workspaces, as if so many had been asked for within 30 days, in every
 * environment as many: 6 exports in 10, the archives of the last week kept, and one operation in 10 failed.
 */
export async function recordEnded({ pool }: Pick<KilolockDatabase, 'pool'>, count: number): Promise<void> {
  await pool.query(
    `with places as materialized (
       select row_number() over (order by env_public_id) - 1 as place, tenants.id as tenant, workspace_id as workspace, env_public_id as environment
       from environments join tenants on tenants.id = tenant_id where env_public_id <> 'env_000000000000'
     ), counted as (
       select count(*) as places from places
     ), asked as (
       select n, tenant, workspace, environment, 'app-' || (n / counted.places) % 100 as label,
         case when (n / counted.places) % 10 < 6 then 'EXPORT' else 'IMPORT' end as kind,
         now() - interval '30 days' * (1 - n::double precision / $1::int) as at
       from generate_series(1, $1::int) n cross join counted join places on place = n % counted.places
     )
     insert into state_archive.operation (kind, status, tenant_id, workspace_id, environment_id, state_name, state_label,
       state_id, actor, subject, created_at, started_at, finished_at, expires_at, archive_size_bytes, archive_object_key,
       archive_sha256, archive_history_digest, archive_file_name, attempt, heartbeat_at, request, idempotency_key)
     select kind,
       case when n % 10 = 9 then 'FAILED' when kind = 'EXPORT' and at < now() - interval '7 days' then 'EXPIRED' else 'SUCCEEDED' end,
       tenant, workspace, environment, workspace || '/' || environment || '/' || label, label,
       -- The same state for a label each time.
       md5(environment || label)::uuid, 'somebody', 'subject-' || n % 7, at, at, at + interval '2 seconds',
       case when kind = 'EXPORT' then at + interval '7 days' end, 100000, n || '.1', '\\x00', '\\x00', label || '.klstate', 1, at,
       jsonb_build_object('order', jsonb_build_object('kind', kind), 'principal', repeat('x', 300)), 'key-' || n
     from asked`,
    [count],
  );
  await pool.query('analyze state_archive.operation');
}
