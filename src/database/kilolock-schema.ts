/** The self-hosted tenant: the default of every `tenant_id` (data model 0.4). */
export const SELF_HOSTED_TENANT_ID = '00000000-0000-0000-0000-000000000000';

/** A column this project cannot work without. */
export interface RequiredColumn {
  readonly table: string;
  readonly column: string;
}

/**
 * One late column of each table, which only a fully migrated Kilolock database has: `schema_migrations` cannot be trusted
 * (data model 0.3).
 */
export const requiredColumns: readonly RequiredColumn[] = [
  { table: 'tenants', column: 'max_environment_resources' },
  { table: 'environments', column: 'state_lock_default_mode' },
  { table: 'states', column: 'lifecycle_status' },
  { table: 'states', column: 'coexistence_mode' },
  { table: 'state_versions', column: 'tenant_id' },
  { table: 'state_version_tags', column: 'tenant_id' },
  { table: 'resources', column: 'schema_version' },
  { table: 'outputs', column: 'tenant_id' },
  { table: 'events', column: 'tenant_id' },
  { table: 'state_locks', column: 'source_serial' },
  { table: 'apply_runs', column: 'tenant_id' },
  { table: 'refresh_runs', column: 'tenant_id' },
  { table: 'resource_reservations', column: 'tenant_id' },
  { table: 'api_tokens', column: 'environment_id' },
];
