import type { ColumnType, Generated } from 'kysely';

/** A `bigint` column: a decimal string when read, so that no 64-bit value is ever rounded. */
export type BigIntColumn = ColumnType<string, bigint | string, bigint | string>;

/** A `bigint` column that may be NULL. */
export type NullableBigIntColumn = ColumnType<
  string | null,
  bigint | string | null | undefined,
  bigint | string | null
>;

/** A `bigint` column with a default. */
export type GeneratedBigIntColumn = ColumnType<string, bigint | string | undefined, bigint | string>;

/**
 * A `timestamptz` column: PostgreSQL's own text when read (`2026-03-02 10:00:00.000118+00`), microseconds kept.
 * Select it through `microsecondTime` to get RFC 3339.
 */
export type TimestampColumn = ColumnType<string, string, string>;

/** A `timestamptz` column with a default. */
export type GeneratedTimestampColumn = ColumnType<string, string | undefined, string>;

/** A `timestamptz` column that may be NULL. */
export type NullableTimestampColumn = ColumnType<string | null, string | null | undefined, string | null>;

/** A `jsonb` column: PostgreSQL's text of the value when read, JSON text when written; never parsed on the way. */
export type JsonTextColumn = ColumnType<string, string, string>;

/** A `jsonb` column with a default. */
export type GeneratedJsonTextColumn = ColumnType<string, string | undefined, string>;

/** A `jsonb` column that may be NULL. */
export type NullableJsonTextColumn = ColumnType<string | null, string | null | undefined, string | null>;

/** A `bytea` column. */
export type BytesColumn = ColumnType<Buffer, Uint8Array, Uint8Array>;

/** A `bytea` column that may be NULL. */
export type NullableBytesColumn = ColumnType<Buffer | null, Uint8Array | null | undefined, Uint8Array | null>;

/** Lifecycle of a tenant, environment, state or token (data model 8). */
export type LifecycleStatus = 'active' | 'suspended' | 'archived';

interface LifecycleColumns {
  lifecycle_status: Generated<LifecycleStatus>;
  lifecycle_changed_at: NullableTimestampColumn;
  lifecycle_changed_by: Generated<string>;
  lifecycle_reason: Generated<string>;
}

/** `public.tenants` (data model 1.12): "workspace" is the public word for a tenant. */
export interface TenantsTable extends LifecycleColumns {
  id: Generated<string>;
  workspace_id: Generated<string>;
  slug: string;
  name: string;
  created_at: GeneratedTimestampColumn;
  updated_at: GeneratedTimestampColumn;
  kind: Generated<'organization' | 'personal'>;
  personal_owner_account_id: string | null;
  billing_plan: Generated<string>;
  /** 0 means unlimited, as in the two columns below. */
  max_environments: Generated<number>;
  max_state_resources: Generated<number>;
  max_environment_resources: Generated<number>;
  stripe_customer_id: string | null;
  stripe_subscription_id: string | null;
  stripe_subscription_status: string | null;
  stripe_price_id: string | null;
  stripe_current_period_end: NullableTimestampColumn;
  stripe_updated_at: NullableTimestampColumn;
}

/** `public.environments` (data model 1.12). `database_dsn` and `source_database_dsn` are secrets. */
export interface EnvironmentsTable extends LifecycleColumns {
  id: Generated<string>;
  tenant_id: string;
  env_public_id: Generated<string>;
  slug: string;
  tier: Generated<'shared_host' | 'dedicated_host'>;
  status: Generated<'provisioning' | 'ready' | 'failed'>;
  database_name: string | null;
  /** NULL or '' means the shared database. */
  database_dsn: string | null;
  created_at: GeneratedTimestampColumn;
  updated_at: GeneratedTimestampColumn;
  host_connection_name: string | null;
  source_database_dsn: string | null;
  provision_error: string | null;
  provision_started_at: NullableTimestampColumn;
  provision_finished_at: NullableTimestampColumn;
  database_instance_key: Generated<string>;
  last_migration_version: number | null;
  last_migration_at: NullableTimestampColumn;
  last_migration_error: string | null;
  state_lock_default_mode: Generated<'auto' | 'vanilla' | 'kilolock'>;
}

/** `public.states` (data model 1.1). `name` is the stored name; (tenant_id, name) is unique. */
export interface StatesTable extends LifecycleColumns {
  id: Generated<string>;
  name: string;
  lineage: string | null;
  current_version_id: string | null;
  created_at: GeneratedTimestampColumn;
  updated_at: GeneratedTimestampColumn;
  tenant_id: Generated<string>;
  exclusive_locks: Generated<boolean>;
  coexistence_mode: Generated<'warn' | 'strict'>;
}

/** `public.state_versions` (data model 1.2). (state_id, serial) is unique. */
export interface StateVersionsTable {
  id: Generated<string>;
  state_id: string;
  serial: BigIntColumn;
  terraform_version: string | null;
  /** Select `raw_state::text` or copy it: it may be hundreds of megabytes. */
  raw_state: JsonTextColumn;
  source: Generated<string>;
  created_at: GeneratedTimestampColumn;
  created_by: string | null;
  tenant_id: Generated<string>;
}

/** `public.state_version_tags` (data model 1.3 and 4). (tenant_id, state_id, tag) is unique. */
export interface StateVersionTagsTable {
  id: Generated<string>;
  tenant_id: Generated<string>;
  state_id: string;
  state_version_id: string;
  tag: string;
  description: string | null;
  actor: Generated<string>;
  created_at: GeneratedTimestampColumn;
  updated_at: GeneratedTimestampColumn;
}

/** `public.resources` (data model 1.4): one row per span of serials in which a resource stayed the same. */
export interface ResourcesTable {
  id: Generated<string>;
  state_id: string;
  address: string;
  mode: 'managed' | 'data';
  type: string;
  name: string;
  provider: string;
  module_path: Generated<string>;
  index_kind: Generated<'none' | 'int' | 'string'>;
  index_value: string | null;
  attributes: GeneratedJsonTextColumn;
  sensitive_paths: GeneratedJsonTextColumn;
  dependencies_raw: GeneratedJsonTextColumn;
  attributes_hash: string;
  create_serial: BigIntColumn;
  delete_serial: NullableBigIntColumn;
  created_at: GeneratedTimestampColumn;
  tenant_id: Generated<string>;
  schema_version: Generated<number>;
}

/** `public.outputs` (data model 1.5): a full set of rows for each version. */
export interface OutputsTable {
  id: Generated<string>;
  state_version_id: string;
  name: string;
  value: JsonTextColumn;
  value_type: JsonTextColumn;
  sensitive: Generated<boolean>;
  tenant_id: Generated<string>;
}

/** `public.events` (data model 1.10 and 6): the audit trail. */
export interface EventsTable {
  id: Generated<string>;
  kind: string;
  state_id: string | null;
  state_version_id: string | null;
  actor: string | null;
  payload: GeneratedJsonTextColumn;
  created_at: GeneratedTimestampColumn;
  tenant_id: Generated<string>;
}

/** `public.state_locks` (data model 1.7 and 5). */
export interface StateLocksTable {
  state_id: string;
  lock_id: string;
  info: string | null;
  who: string | null;
  version: string | null;
  created: string | null;
  path: string | null;
  acquired_at: GeneratedTimestampColumn;
  expires_at: NullableTimestampColumn;
  tenant_id: Generated<string>;
  source_serial: NullableBigIntColumn;
}

/** `public.apply_runs` (data model 1.9). */
export interface ApplyRunsTable {
  id: Generated<string>;
  state_id: string;
  from_version_id: string;
  to_version_id: string | null;
  source_serial: BigIntColumn;
  committed_serial: NullableBigIntColumn;
  actor: string | null;
  started_at: GeneratedTimestampColumn;
  finished_at: NullableTimestampColumn;
  resources_planned: number | null;
  resources_applied: number | null;
  resources_failed: number | null;
  status: Generated<'running' | 'committed' | 'failed' | 'aborted'>;
  error_summary: string | null;
  info: GeneratedJsonTextColumn;
  created_at: GeneratedTimestampColumn;
  tenant_id: Generated<string>;
}

/** `public.refresh_runs` (data model 1.9). */
export interface RefreshRunsTable {
  id: Generated<string>;
  state_id: string;
  from_version_id: string;
  to_version_id: string | null;
  started_at: GeneratedTimestampColumn;
  finished_at: NullableTimestampColumn;
  resources_checked: number | null;
  resources_changed: number | null;
  resources_failed: number | null;
  status: Generated<'running' | 'succeeded' | 'failed' | 'cancelled'>;
  error_summary: string | null;
  actor: string | null;
  created_at: GeneratedTimestampColumn;
  tenant_id: Generated<string>;
}

/** `public.resource_reservations` (data model 1.8). Its `tenant_id` is the zero tenant on every row Kilolock writes. */
export interface ResourceReservationsTable {
  id: Generated<string>;
  state_id: string;
  apply_id: string;
  address_glob: string;
  mode: 'read' | 'write';
  holder: string;
  info: GeneratedJsonTextColumn;
  acquired_at: GeneratedTimestampColumn;
  expires_at: TimestampColumn;
  tenant_id: Generated<string>;
}

/** `public.api_tokens` (data model 7.2): one token is one environment. `token_hash` is SHA-256 of the whole token. */
export interface ApiTokensTable extends LifecycleColumns {
  id: Generated<string>;
  tenant_id: string;
  name: string;
  token_hash: BytesColumn;
  token_prefix: string;
  created_at: GeneratedTimestampColumn;
  revoked_at: NullableTimestampColumn;
  last_used_at: NullableTimestampColumn;
  environment_id: string;
}

/** `public.rbac_roles` (data model 7.5). */
export interface RbacRolesTable {
  id: Generated<string>;
  key: string;
  name: string;
  description: Generated<string>;
  created_at: GeneratedTimestampColumn;
}

/** `public.rbac_permissions` (data model 7.5). */
export interface RbacPermissionsTable {
  id: Generated<string>;
  key: string;
  description: Generated<string>;
  created_at: GeneratedTimestampColumn;
}

/** `public.rbac_role_permissions` (data model 7.5). */
export interface RbacRolePermissionsTable {
  role_id: string;
  permission_id: string;
  created_at: GeneratedTimestampColumn;
}

/** `public.rbac_principal_roles` (data model 7.5). */
export interface RbacPrincipalRolesTable {
  id: Generated<string>;
  subject_kind: string;
  subject_id: string;
  role_id: string;
  scope_kind: Generated<'global' | 'tenant' | 'environment'>;
  scope_ref: Generated<string>;
  granted_by: Generated<string>;
  granted_at: GeneratedTimestampColumn;
  revoked_at: NullableTimestampColumn;
}

/** `public.portal_accounts`: the person behind a personal access token (data model 7.3). */
export interface PortalAccountsTable {
  id: Generated<string>;
  email: string;
  company: Generated<string>;
  plan: Generated<string>;
  password_salt: string;
  password_hash: string;
  password_login_enabled: Generated<boolean>;
  auth_source: Generated<'password' | 'oidc'>;
  oidc_provider: Generated<string>;
  created_at: GeneratedTimestampColumn;
  updated_at: GeneratedTimestampColumn;
}

/** `public.portal_personal_access_tokens` (data model 7.3). */
export interface PortalPersonalAccessTokensTable {
  id: Generated<string>;
  account_id: string;
  token_hash: BytesColumn;
  token_prefix: string;
  created_at: GeneratedTimestampColumn;
  last_used_at: NullableTimestampColumn;
  revoked_at: NullableTimestampColumn;
  revoked_by: Generated<string>;
  replaced_by_token_id: string | null;
}

/** `public.portal_environment_pat_grants` (data model 7.3). */
export interface PortalEnvironmentPatGrantsTable {
  id: Generated<string>;
  account_id: string;
  environment_id: string;
  granted_by: Generated<string>;
  created_at: GeneratedTimestampColumn;
  revoked_at: NullableTimestampColumn;
  revoked_by: Generated<string>;
}

/** `public.tenant_memberships` (data model 7.3). */
export interface TenantMembershipsTable {
  id: Generated<string>;
  tenant_slug: string;
  account_id: string;
  role: Generated<'owner' | 'tenant_admin' | 'billing_admin' | 'member'>;
  created_at: GeneratedTimestampColumn;
  updated_at: GeneratedTimestampColumn;
  revoked_at: NullableTimestampColumn;
  revoked_by: Generated<string>;
}

/** What an operation does. */
export type OperationKind = 'EXPORT' | 'IMPORT';

/** Where an operation stands. The last four are final. */
export type OperationStatus = 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELLED' | 'EXPIRED';

/** `state_archive.operation`: one export or import, from request to outcome. */
export interface OperationTable {
  id: Generated<string>;
  kind: OperationKind;
  status: OperationStatus;
  tenant_id: string;
  workspace_id: string;
  environment_id: string;
  /** The stored name, the one in `states.name`. */
  state_name: string;
  state_label: string;
  state_id: string | null;
  actor: string;
  subject: string;
  request_id: string | null;
  idempotency_key: string | null;
  request_fingerprint: NullableBytesColumn;
  versions_done: GeneratedBigIntColumn;
  versions_total: NullableBigIntColumn;
  bytes_done: GeneratedBigIntColumn;
  bytes_total: NullableBigIntColumn;
  created_at: GeneratedTimestampColumn;
  started_at: NullableTimestampColumn;
  finished_at: NullableTimestampColumn;
  expires_at: NullableTimestampColumn;
  /** Until when the worker that runs it may be believed alive. */
  lease_until: NullableTimestampColumn;
  archive_sha256: NullableBytesColumn;
  archive_size_bytes: NullableBigIntColumn;
  archive_history_digest: NullableBytesColumn;
  archive_file_name: string | null;
  archive_object_key: string | null;
  report: NullableJsonTextColumn;
  /** The export that was taken of the history this import replaced. */
  replaced_operation_id: string | null;
  /** Why support asked for it in an environment that is not its own. */
  support_reason: string | null;
  error_code: string | null;
  error_message: string | null;
  error_path: string[] | null;
}

/** `state_archive.snapshot_import`: the version that a caller's idempotency key stands for. */
export interface SnapshotImportTable {
  tenant_id: string;
  subject: string;
  idempotency_key: string;
  /** The digest of the request the key was first used with. */
  request_fingerprint: BytesColumn;
  /** Null, like the serial, within the transaction that writes the version. */
  state_id: string | null;
  serial: BigIntColumn | null;
  created_at: Generated<string>;
}

/** `state_archive.version_mapping`: which version of the archive became which row. */
export interface VersionMappingTable {
  operation_id: string;
  serial: BigIntColumn;
  source_version_id: string;
  state_version_id: string;
}

/** `state_archive.version_digest`: SHA-256 and length of the UTF-8 of `raw_state::text`, facts that never change. */
export interface VersionDigestTable {
  state_version_id: string;
  sha256: BytesColumn;
  byte_length: BigIntColumn;
}

/**
 * Every table this project reads or writes: Kilolock's own (schema `public`, data model 1) and the project's
 * (schema `state_archive`).
 */
export interface Database {
  tenants: TenantsTable;
  environments: EnvironmentsTable;
  states: StatesTable;
  state_versions: StateVersionsTable;
  state_version_tags: StateVersionTagsTable;
  resources: ResourcesTable;
  outputs: OutputsTable;
  events: EventsTable;
  state_locks: StateLocksTable;
  apply_runs: ApplyRunsTable;
  refresh_runs: RefreshRunsTable;
  resource_reservations: ResourceReservationsTable;
  api_tokens: ApiTokensTable;
  rbac_roles: RbacRolesTable;
  rbac_permissions: RbacPermissionsTable;
  rbac_role_permissions: RbacRolePermissionsTable;
  rbac_principal_roles: RbacPrincipalRolesTable;
  portal_accounts: PortalAccountsTable;
  portal_personal_access_tokens: PortalPersonalAccessTokensTable;
  portal_environment_pat_grants: PortalEnvironmentPatGrantsTable;
  tenant_memberships: TenantMembershipsTable;
  'state_archive.operation': OperationTable;
  'state_archive.snapshot_import': SnapshotImportTable;
  'state_archive.version_mapping': VersionMappingTable;
  'state_archive.version_digest': VersionDigestTable;
}
