import { sql } from 'kysely';
import type { KilolockDatabase } from './connection.ts';
import { DatabaseUnusableError } from './errors.ts';

type Right = 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE';

/**
 * The rights that the service needs on tables; `docs/operations.md` grants them. UPDATE stands also where rows are locked
 * and not changed. A table that a database has not, because its Kilolock has no such feature, is passed over.
 */
export const NEEDED_RIGHTS: Readonly<Record<string, readonly Right[]>> = {
  'public.tenants': ['SELECT', 'INSERT'],
  'public.environments': ['SELECT'],
  'public.states': ['SELECT', 'INSERT', 'UPDATE'],
  'public.state_versions': ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  'public.state_version_tags': ['SELECT', 'INSERT', 'DELETE'],
  'public.resources': ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  'public.outputs': ['SELECT', 'INSERT'],
  'public.events': ['SELECT', 'INSERT', 'UPDATE'],
  'public.state_locks': ['SELECT'],
  'public.apply_runs': ['SELECT', 'DELETE'],
  'public.refresh_runs': ['SELECT', 'DELETE'],
  'public.resource_reservations': ['SELECT', 'DELETE'],
  'public.api_tokens': ['SELECT', 'UPDATE'],
  'public.rbac_permissions': ['SELECT'],
  'public.rbac_role_permissions': ['SELECT'],
  'public.rbac_principal_roles': ['SELECT'],
  'public.portal_accounts': ['SELECT'],
  'public.portal_personal_access_tokens': ['SELECT', 'UPDATE'],
  'public.portal_environment_pat_grants': ['SELECT'],
  'public.tenant_memberships': ['SELECT'],
  'state_archive.kysely_migration': ['SELECT'],
  'state_archive.operation': ['SELECT', 'INSERT', 'UPDATE'],
  'state_archive.version_mapping': ['SELECT', 'INSERT'],
  'state_archive.version_digest': ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  'state_archive.upload': ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  'state_archive.upload_piece': ['SELECT', 'INSERT'],
  'state_archive.housekeeping': ['SELECT', 'INSERT', 'UPDATE'],
  'state_archive.snapshot_import': ['SELECT', 'INSERT', 'UPDATE'],
  'state_archive_queue.version': ['SELECT', 'UPDATE'],
  'state_archive_queue.queue': ['SELECT', 'UPDATE'],
  'state_archive_queue.job': ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  'state_archive_queue.job_common': ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  'state_archive_queue.job_dependency': ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  'state_archive_queue.instance': ['SELECT', 'DELETE'],
};

/**
 * What keeps the service from working on a database, in one line for the operator; null when nothing does: an encoding that
 * cannot hold every text, a server that takes no writes, rows that a policy would hide, a right that is missing. One
 * statement.
 *
 * @throws DatabaseUnavailableError when the database cannot be reached, and soon: see the purpose `probe`.
 */
export async function findDatabaseProblem(database: KilolockDatabase): Promise<string | null> {
  const needed = Object.entries(NEEDED_RIGHTS).flatMap(([table, rights]) =>
    rights.map((right) => ({ table, right })),
  );
  const { rows } = await sql<Findings>`
    with needed as (
      select schema.oid as schema, schema.nspname, class.oid as table, class.relname, needed."right"
      from unnest(${needed.map(({ table }) => table)}::text[], ${needed.map(({ right }) => right)}::text[])
        as needed (name, "right")
      join pg_namespace schema on schema.nspname = split_part(needed.name, '.', 1)
      join pg_class class on class.relnamespace = schema.oid and class.relname = split_part(needed.name, '.', 2)
    ), lacking as (
      select distinct 'USAGE on schema ' || nspname as what from needed
      where not has_schema_privilege(schema, 'USAGE')
      union all
      select "right" || ' on ' || nspname || '.' || relname from needed
      where not has_table_privilege("table", "right")
    )
    select current_setting('server_encoding') as encoding, current_user as role,
      pg_is_in_recovery() as "isStandby",
      current_setting('default_transaction_read_only')::boolean as "isReadOnly",
      current_setting('session_replication_role') <> 'origin' as "isReplica",
      (select string_agg(distinct nspname || '.' || relname, ', ') from needed where row_security_active("table"))
        as "hiding",
      (select string_agg(what, ', ' order by what) from lacking) as "lacking"
  `.execute(database.for('probe'));
  return rows[0] === undefined ? null : problemOf(rows[0]);
}

interface Findings {
  readonly encoding: string;
  readonly role: string;
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
  readonly isReplica: boolean;
  readonly hiding: string | null;
  readonly lacking: string | null;
}

function problemOf(found: Findings): string | null {
  if (found.encoding !== 'UTF8') {
    return `The database is encoded in ${found.encoding}: it cannot hold every text of an archive. The service needs one in UTF8.`;
  }
  if (found.isStandby) return 'The database is a hot standby, which takes no writes: connect to the primary.';
  if (found.isReadOnly) {
    return 'default_transaction_read_only is on for the database or the role: the service has to write.';
  }
  if (found.isReplica) {
    return 'session_replication_role is not "origin" for the database or the role: PostgreSQL would not check foreign keys.';
  }
  if (found.hiding !== null) {
    return `Row-level security would hide rows of ${found.hiding} from the role ${found.role}: an archive has to hold all of them. Give it BYPASSRLS, or a policy-free role.`;
  }
  if (found.lacking !== null) {
    return `The role ${found.role} lacks ${found.lacking}. docs/rights.sql grants what the service needs.`;
  }
  return null;
}

/** @throws DatabaseUnusableError with what {@link findDatabaseProblem} finds. */
export async function refuseUnusableDatabase(database: KilolockDatabase): Promise<void> {
  const problem = await findDatabaseProblem(database);
  if (problem !== null) throw new DatabaseUnusableError(problem);
}
