/**
 * @file What the tables hold that this project reads or writes: Kilolock's own (schema `public`, data model 1) and the
 * project's (schema `state_archive`). Generated from the catalogues of both; see test/database/types.test.ts.
 */

import type {
  BigIntColumn,
  BytesColumn,
  JsonTextColumn,
  Nullable,
  TimestampColumn,
  WithDefault,
} from './column-types.ts';

export type ApiTokensLifecycleStatus = 'active' | 'suspended' | 'archived';

/** Data model 7.2: one token is one environment. `token_hash` is SHA-256 of the whole token. */
export interface ApiTokensTable {
  id: WithDefault<string>;
  tenant_id: string;
  name: string;
  token_hash: BytesColumn;
  token_prefix: string;
  created_at: WithDefault<TimestampColumn>;
  revoked_at: Nullable<TimestampColumn>;
  last_used_at: Nullable<TimestampColumn>;
  environment_id: string;
  lifecycle_status: WithDefault<ApiTokensLifecycleStatus>;
  lifecycle_changed_at: Nullable<TimestampColumn>;
  lifecycle_changed_by: WithDefault<string>;
  lifecycle_reason: WithDefault<string>;
}

export type ApplyRunsStatus = 'running' | 'committed' | 'failed' | 'aborted';

/** Data model 1.9. */
export interface ApplyRunsTable {
  id: WithDefault<string>;
  state_id: string;
  from_version_id: string;
  to_version_id: Nullable<string>;
  source_serial: BigIntColumn;
  committed_serial: Nullable<BigIntColumn>;
  actor: Nullable<string>;
  started_at: WithDefault<TimestampColumn>;
  finished_at: Nullable<TimestampColumn>;
  resources_planned: Nullable<number>;
  resources_applied: Nullable<number>;
  resources_failed: Nullable<number>;
  status: WithDefault<ApplyRunsStatus>;
  error_summary: Nullable<string>;
  info: WithDefault<JsonTextColumn>;
  created_at: WithDefault<TimestampColumn>;
  tenant_id: WithDefault<string>;
}

export type EnvironmentsTier = 'shared_host' | 'dedicated_host';

export type EnvironmentsStatus = 'provisioning' | 'ready' | 'failed';

export type EnvironmentsLifecycleStatus = 'active' | 'suspended' | 'archived';

export type EnvironmentsStateLockDefaultMode = 'auto' | 'vanilla' | 'kilolock';

/** Data model 1.12. `database_dsn` and `source_database_dsn` are secrets. */
export interface EnvironmentsTable {
  id: WithDefault<string>;
  tenant_id: string;
  env_public_id: WithDefault<string>;
  slug: string;
  tier: WithDefault<EnvironmentsTier>;
  status: WithDefault<EnvironmentsStatus>;
  database_name: Nullable<string>;
  /** NULL or '' means the shared database. */
  database_dsn: Nullable<string>;
  created_at: WithDefault<TimestampColumn>;
  updated_at: WithDefault<TimestampColumn>;
  host_connection_name: Nullable<string>;
  source_database_dsn: Nullable<string>;
  provision_error: Nullable<string>;
  provision_started_at: Nullable<TimestampColumn>;
  provision_finished_at: Nullable<TimestampColumn>;
  database_instance_key: WithDefault<string>;
  last_migration_version: Nullable<number>;
  last_migration_at: Nullable<TimestampColumn>;
  last_migration_error: Nullable<string>;
  lifecycle_status: WithDefault<EnvironmentsLifecycleStatus>;
  lifecycle_changed_at: Nullable<TimestampColumn>;
  lifecycle_changed_by: WithDefault<string>;
  lifecycle_reason: WithDefault<string>;
  state_lock_default_mode: WithDefault<EnvironmentsStateLockDefaultMode>;
}

/** Data model 1.10 and 6: the audit trail. */
export interface EventsTable {
  id: WithDefault<string>;
  kind: string;
  state_id: Nullable<string>;
  state_version_id: Nullable<string>;
  actor: Nullable<string>;
  payload: WithDefault<JsonTextColumn>;
  created_at: WithDefault<TimestampColumn>;
  tenant_id: WithDefault<string>;
}

/** Data model 1.5: a full set of rows for each version. */
export interface OutputsTable {
  id: WithDefault<string>;
  state_version_id: string;
  name: string;
  value: JsonTextColumn;
  value_type: JsonTextColumn;
  sensitive: WithDefault<boolean>;
  tenant_id: WithDefault<string>;
}

export type PortalAccountsAuthSource = 'password' | 'oidc';

/** The person behind a personal access token (data model 7.3). */
export interface PortalAccountsTable {
  id: WithDefault<string>;
  email: string;
  company: WithDefault<string>;
  plan: WithDefault<string>;
  password_salt: string;
  password_hash: string;
  password_login_enabled: WithDefault<boolean>;
  auth_source: WithDefault<PortalAccountsAuthSource>;
  oidc_provider: WithDefault<string>;
  created_at: WithDefault<TimestampColumn>;
  updated_at: WithDefault<TimestampColumn>;
}

export interface PortalEnvironmentPatGrantsTable {
  id: WithDefault<string>;
  account_id: string;
  environment_id: string;
  granted_by: WithDefault<string>;
  created_at: WithDefault<TimestampColumn>;
  revoked_at: Nullable<TimestampColumn>;
  revoked_by: WithDefault<string>;
}

/** Data model 7.3. */
export interface PortalPersonalAccessTokensTable {
  id: WithDefault<string>;
  account_id: string;
  token_hash: BytesColumn;
  token_prefix: string;
  created_at: WithDefault<TimestampColumn>;
  last_used_at: Nullable<TimestampColumn>;
  revoked_at: Nullable<TimestampColumn>;
  revoked_by: WithDefault<string>;
  replaced_by_token_id: Nullable<string>;
}

export interface RbacPermissionsTable {
  id: WithDefault<string>;
  key: string;
  description: WithDefault<string>;
  created_at: WithDefault<TimestampColumn>;
}

export type RbacPrincipalRolesScopeKind = 'global' | 'tenant' | 'environment';

/** Data model 7.5. */
export interface RbacPrincipalRolesTable {
  id: WithDefault<string>;
  subject_kind: string;
  subject_id: string;
  role_id: string;
  scope_kind: WithDefault<RbacPrincipalRolesScopeKind>;
  scope_ref: WithDefault<string>;
  granted_by: WithDefault<string>;
  granted_at: WithDefault<TimestampColumn>;
  revoked_at: Nullable<TimestampColumn>;
}

export interface RbacRolePermissionsTable {
  role_id: string;
  permission_id: string;
  created_at: WithDefault<TimestampColumn>;
}

export interface RbacRolesTable {
  id: WithDefault<string>;
  key: string;
  name: string;
  description: WithDefault<string>;
  created_at: WithDefault<TimestampColumn>;
}

export type RefreshRunsStatus = 'running' | 'succeeded' | 'failed' | 'cancelled';

/** Data model 1.9. */
export interface RefreshRunsTable {
  id: WithDefault<string>;
  state_id: string;
  from_version_id: string;
  to_version_id: Nullable<string>;
  started_at: WithDefault<TimestampColumn>;
  finished_at: Nullable<TimestampColumn>;
  resources_checked: Nullable<number>;
  resources_changed: Nullable<number>;
  resources_failed: Nullable<number>;
  status: WithDefault<RefreshRunsStatus>;
  error_summary: Nullable<string>;
  actor: Nullable<string>;
  created_at: WithDefault<TimestampColumn>;
  tenant_id: WithDefault<string>;
}

export type ResourceReservationsMode = 'read' | 'write';

/** Data model 1.8. `tenant_id` is the zero tenant on every row Kilolock writes. */
export interface ResourceReservationsTable {
  id: WithDefault<string>;
  state_id: string;
  apply_id: string;
  address_glob: string;
  mode: ResourceReservationsMode;
  holder: string;
  info: WithDefault<JsonTextColumn>;
  acquired_at: WithDefault<TimestampColumn>;
  expires_at: TimestampColumn;
  tenant_id: WithDefault<string>;
}

export type ResourcesMode = 'managed' | 'data';

export type ResourcesIndexKind = 'none' | 'int' | 'string';

/** Data model 1.4: one row per span of serials in which a resource stayed the same. */
export interface ResourcesTable {
  id: WithDefault<string>;
  state_id: string;
  address: string;
  mode: ResourcesMode;
  type: string;
  name: string;
  provider: string;
  module_path: WithDefault<string>;
  index_kind: WithDefault<ResourcesIndexKind>;
  index_value: Nullable<string>;
  attributes: WithDefault<JsonTextColumn>;
  sensitive_paths: WithDefault<JsonTextColumn>;
  dependencies_raw: WithDefault<JsonTextColumn>;
  attributes_hash: string;
  create_serial: BigIntColumn;
  delete_serial: Nullable<BigIntColumn>;
  created_at: WithDefault<TimestampColumn>;
  tenant_id: WithDefault<string>;
  schema_version: WithDefault<number>;
}

export interface HousekeepingTable {
  task: string;
  begun_at: TimestampColumn;
  position: WithDefault<string>;
}

export type OperationKind = 'EXPORT' | 'IMPORT';

export type OperationStatus = 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELLED' | 'EXPIRED';

/** One export or import, from request to outcome. */
export interface OperationTable {
  id: WithDefault<string>;
  kind: OperationKind;
  status: OperationStatus;
  tenant_id: string;
  workspace_id: string;
  environment_id: string;
  /** The stored name, the one in `states.name`. */
  state_name: string;
  state_label: string;
  state_id: Nullable<string>;
  actor: string;
  subject: string;
  request_id: Nullable<string>;
  idempotency_key: Nullable<string>;
  request_fingerprint: Nullable<BytesColumn>;
  versions_done: WithDefault<BigIntColumn>;
  versions_total: Nullable<BigIntColumn>;
  bytes_done: WithDefault<BigIntColumn>;
  bytes_total: Nullable<BigIntColumn>;
  created_at: WithDefault<TimestampColumn>;
  started_at: Nullable<TimestampColumn>;
  finished_at: Nullable<TimestampColumn>;
  expires_at: Nullable<TimestampColumn>;
  /** Until when the process of an earlier release that runs it may be believed alive; null for all others. */
  lease_until: Nullable<TimestampColumn>;
  archive_sha256: Nullable<BytesColumn>;
  archive_size_bytes: Nullable<BigIntColumn>;
  archive_history_digest: Nullable<BytesColumn>;
  archive_file_name: Nullable<string>;
  archive_object_key: Nullable<string>;
  report: Nullable<JsonTextColumn>;
  /** The export that was taken of the history this import replaced. */
  replaced_operation_id: Nullable<string>;
  /** Why support asked for it in an environment that is not its own. */
  support_reason: Nullable<string>;
  error_code: Nullable<string>;
  error_message: Nullable<string>;
  error_path: Nullable<string[]>;
  /** How often work on it has begun; who holds an earlier number holds nothing. */
  attempt: WithDefault<number>;
  /** The process that works on it, or did last. */
  worker: Nullable<string>;
  /** When its worker, or whoever queued it, was last heard of; null: it was never queued, or an earlier release began it. */
  heartbeat_at: Nullable<TimestampColumn>;
  /** What is to be done and with whose rights; null where nobody else could do it. */
  request: Nullable<JsonTextColumn>;
  retain_until: Nullable<TimestampColumn>;
  part_of: Nullable<string>;
}

/** The version that a caller's idempotency key stands for. */
export interface SnapshotImportTable {
  tenant_id: string;
  subject: string;
  idempotency_key: string;
  /** The digest of the request the key was first used with. */
  request_fingerprint: BytesColumn;
  /** Null, like the serial, within the transaction that writes the version. */
  state_id: Nullable<string>;
  serial: Nullable<BigIntColumn>;
  created_at: WithDefault<TimestampColumn>;
}

export interface UploadTable {
  id: string;
  tenant_id: string;
  workspace_id: string;
  environment_id: string;
  subject: string;
  file_name: string;
  sha256: BytesColumn;
  byte_length: BigIntColumn;
  received_bytes: WithDefault<BigIntColumn>;
  pieces: WithDefault<number>;
  operation_id: Nullable<string>;
  created_at: WithDefault<TimestampColumn>;
  expires_at: TimestampColumn;
}

export interface UploadPieceTable {
  upload_id: string;
  start_byte: BigIntColumn;
  byte_length: BigIntColumn;
  object_key: string;
}

/** SHA-256 and length of the UTF-8 of `raw_state::text`, facts that never change. */
export interface VersionDigestTable {
  state_version_id: string;
  sha256: BytesColumn;
  byte_length: BigIntColumn;
}

/** Which version of the archive became which row. */
export interface VersionMappingTable {
  operation_id: string;
  serial: BigIntColumn;
  source_version_id: string;
  state_version_id: string;
}

/** Data model 1.7 and 5. */
export interface StateLocksTable {
  state_id: string;
  lock_id: string;
  info: Nullable<string>;
  who: Nullable<string>;
  version: Nullable<string>;
  created: Nullable<string>;
  path: Nullable<string>;
  acquired_at: WithDefault<TimestampColumn>;
  expires_at: Nullable<TimestampColumn>;
  tenant_id: WithDefault<string>;
  source_serial: Nullable<BigIntColumn>;
}

/** Data model 1.3 and 4. (tenant_id, state_id, tag) is unique. */
export interface StateVersionTagsTable {
  id: WithDefault<string>;
  tenant_id: WithDefault<string>;
  state_id: string;
  state_version_id: string;
  tag: string;
  description: Nullable<string>;
  actor: WithDefault<string>;
  created_at: WithDefault<TimestampColumn>;
  updated_at: WithDefault<TimestampColumn>;
}

/** Data model 1.2. (state_id, serial) is unique. */
export interface StateVersionsTable {
  id: WithDefault<string>;
  state_id: string;
  serial: BigIntColumn;
  terraform_version: Nullable<string>;
  /** Select `raw_state::text` or copy it: it may be hundreds of megabytes. */
  raw_state: JsonTextColumn;
  source: WithDefault<string>;
  created_at: WithDefault<TimestampColumn>;
  created_by: Nullable<string>;
  tenant_id: WithDefault<string>;
}

export type StatesLifecycleStatus = 'active' | 'suspended' | 'archived';

export type StatesCoexistenceMode = 'warn' | 'strict';

/** Data model 1.1. `name` is the stored name; (tenant_id, name) is unique. */
export interface StatesTable {
  id: WithDefault<string>;
  name: string;
  lineage: Nullable<string>;
  current_version_id: Nullable<string>;
  lifecycle_status: WithDefault<StatesLifecycleStatus>;
  lifecycle_changed_at: Nullable<TimestampColumn>;
  lifecycle_changed_by: WithDefault<string>;
  lifecycle_reason: WithDefault<string>;
  created_at: WithDefault<TimestampColumn>;
  updated_at: WithDefault<TimestampColumn>;
  tenant_id: WithDefault<string>;
  exclusive_locks: WithDefault<boolean>;
  coexistence_mode: WithDefault<StatesCoexistenceMode>;
}

export type TenantMembershipsRole = 'owner' | 'tenant_admin' | 'billing_admin' | 'member';

export interface TenantMembershipsTable {
  id: WithDefault<string>;
  tenant_slug: string;
  account_id: string;
  role: WithDefault<TenantMembershipsRole>;
  created_at: WithDefault<TimestampColumn>;
  updated_at: WithDefault<TimestampColumn>;
  revoked_at: Nullable<TimestampColumn>;
  revoked_by: WithDefault<string>;
}

export type TenantsLifecycleStatus = 'active' | 'suspended' | 'archived';

export type TenantsKind = 'organization' | 'personal';

/** Data model 1.12: "workspace" is the public word for a tenant. */
export interface TenantsTable {
  id: WithDefault<string>;
  workspace_id: WithDefault<string>;
  slug: string;
  name: string;
  created_at: WithDefault<TimestampColumn>;
  updated_at: WithDefault<TimestampColumn>;
  lifecycle_status: WithDefault<TenantsLifecycleStatus>;
  lifecycle_changed_at: Nullable<TimestampColumn>;
  lifecycle_changed_by: WithDefault<string>;
  lifecycle_reason: WithDefault<string>;
  kind: WithDefault<TenantsKind>;
  personal_owner_account_id: Nullable<string>;
  billing_plan: WithDefault<string>;
  /** 0 means unlimited, as in the two columns below. */
  max_environments: WithDefault<number>;
  max_state_resources: WithDefault<number>;
  max_environment_resources: WithDefault<number>;
  stripe_customer_id: Nullable<string>;
  stripe_subscription_id: Nullable<string>;
  stripe_subscription_status: Nullable<string>;
  stripe_price_id: Nullable<string>;
  stripe_current_period_end: Nullable<TimestampColumn>;
  stripe_updated_at: Nullable<TimestampColumn>;
}

/** Every table, by the name statements use. */
export interface Database {
  api_tokens: ApiTokensTable;
  apply_runs: ApplyRunsTable;
  environments: EnvironmentsTable;
  events: EventsTable;
  outputs: OutputsTable;
  portal_accounts: PortalAccountsTable;
  portal_environment_pat_grants: PortalEnvironmentPatGrantsTable;
  portal_personal_access_tokens: PortalPersonalAccessTokensTable;
  rbac_permissions: RbacPermissionsTable;
  rbac_principal_roles: RbacPrincipalRolesTable;
  rbac_role_permissions: RbacRolePermissionsTable;
  rbac_roles: RbacRolesTable;
  refresh_runs: RefreshRunsTable;
  resource_reservations: ResourceReservationsTable;
  resources: ResourcesTable;
  'state_archive.housekeeping': HousekeepingTable;
  'state_archive.operation': OperationTable;
  'state_archive.snapshot_import': SnapshotImportTable;
  'state_archive.upload': UploadTable;
  'state_archive.upload_piece': UploadPieceTable;
  'state_archive.version_digest': VersionDigestTable;
  'state_archive.version_mapping': VersionMappingTable;
  state_locks: StateLocksTable;
  state_version_tags: StateVersionTagsTable;
  state_versions: StateVersionsTable;
  states: StatesTable;
  tenant_memberships: TenantMembershipsTable;
  tenants: TenantsTable;
}
