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

/** Every table, by the name statements use. */
export interface Database {
  /** Data model 7.2: one token is one environment. `token_hash` is SHA-256 of the whole token. */
  api_tokens: {
    id: WithDefault<string>;
    tenant_id: string;
    name: string;
    token_hash: BytesColumn;
    token_prefix: string;
    created_at: WithDefault<TimestampColumn>;
    revoked_at: Nullable<TimestampColumn>;
    last_used_at: Nullable<TimestampColumn>;
    environment_id: string;
    lifecycle_status: WithDefault<'active' | 'suspended' | 'archived'>;
    lifecycle_changed_at: Nullable<TimestampColumn>;
    lifecycle_changed_by: WithDefault<string>;
    lifecycle_reason: WithDefault<string>;
  };
  /** Data model 1.9. */
  apply_runs: {
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
    status: WithDefault<'running' | 'committed' | 'failed' | 'aborted'>;
    error_summary: Nullable<string>;
    info: WithDefault<JsonTextColumn>;
    created_at: WithDefault<TimestampColumn>;
    tenant_id: WithDefault<string>;
  };
  /** Data model 1.12. `database_dsn` and `source_database_dsn` are secrets. */
  environments: {
    id: WithDefault<string>;
    tenant_id: string;
    env_public_id: WithDefault<string>;
    slug: string;
    tier: WithDefault<'shared_host' | 'dedicated_host'>;
    status: WithDefault<'provisioning' | 'ready' | 'failed'>;
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
    lifecycle_status: WithDefault<'active' | 'suspended' | 'archived'>;
    lifecycle_changed_at: Nullable<TimestampColumn>;
    lifecycle_changed_by: WithDefault<string>;
    lifecycle_reason: WithDefault<string>;
    state_lock_default_mode: WithDefault<'auto' | 'vanilla' | 'kilolock'>;
  };
  /** Data model 1.10 and 6: the audit trail. */
  events: {
    id: WithDefault<string>;
    kind: string;
    state_id: Nullable<string>;
    state_version_id: Nullable<string>;
    actor: Nullable<string>;
    payload: WithDefault<JsonTextColumn>;
    created_at: WithDefault<TimestampColumn>;
    tenant_id: WithDefault<string>;
  };
  /** Data model 1.5: a full set of rows for each version. */
  outputs: {
    id: WithDefault<string>;
    state_version_id: string;
    name: string;
    value: JsonTextColumn;
    value_type: JsonTextColumn;
    sensitive: WithDefault<boolean>;
    tenant_id: WithDefault<string>;
  };
  /** The person behind a personal access token (data model 7.3). */
  portal_accounts: {
    id: WithDefault<string>;
    email: string;
    company: WithDefault<string>;
    plan: WithDefault<string>;
    password_salt: string;
    password_hash: string;
    password_login_enabled: WithDefault<boolean>;
    auth_source: WithDefault<'password' | 'oidc'>;
    oidc_provider: WithDefault<string>;
    created_at: WithDefault<TimestampColumn>;
    updated_at: WithDefault<TimestampColumn>;
  };
  portal_environment_pat_grants: {
    id: WithDefault<string>;
    account_id: string;
    environment_id: string;
    granted_by: WithDefault<string>;
    created_at: WithDefault<TimestampColumn>;
    revoked_at: Nullable<TimestampColumn>;
    revoked_by: WithDefault<string>;
  };
  /** Data model 7.3. */
  portal_personal_access_tokens: {
    id: WithDefault<string>;
    account_id: string;
    token_hash: BytesColumn;
    token_prefix: string;
    created_at: WithDefault<TimestampColumn>;
    last_used_at: Nullable<TimestampColumn>;
    revoked_at: Nullable<TimestampColumn>;
    revoked_by: WithDefault<string>;
    replaced_by_token_id: Nullable<string>;
  };
  rbac_permissions: {
    id: WithDefault<string>;
    key: string;
    description: WithDefault<string>;
    created_at: WithDefault<TimestampColumn>;
  };
  /** Data model 7.5. */
  rbac_principal_roles: {
    id: WithDefault<string>;
    subject_kind: string;
    subject_id: string;
    role_id: string;
    scope_kind: WithDefault<'global' | 'tenant' | 'environment'>;
    scope_ref: WithDefault<string>;
    granted_by: WithDefault<string>;
    granted_at: WithDefault<TimestampColumn>;
    revoked_at: Nullable<TimestampColumn>;
  };
  rbac_role_permissions: {
    role_id: string;
    permission_id: string;
    created_at: WithDefault<TimestampColumn>;
  };
  rbac_roles: {
    id: WithDefault<string>;
    key: string;
    name: string;
    description: WithDefault<string>;
    created_at: WithDefault<TimestampColumn>;
  };
  /** Data model 1.9. */
  refresh_runs: {
    id: WithDefault<string>;
    state_id: string;
    from_version_id: string;
    to_version_id: Nullable<string>;
    started_at: WithDefault<TimestampColumn>;
    finished_at: Nullable<TimestampColumn>;
    resources_checked: Nullable<number>;
    resources_changed: Nullable<number>;
    resources_failed: Nullable<number>;
    status: WithDefault<'running' | 'succeeded' | 'failed' | 'cancelled'>;
    error_summary: Nullable<string>;
    actor: Nullable<string>;
    created_at: WithDefault<TimestampColumn>;
    tenant_id: WithDefault<string>;
  };
  /** Data model 1.8. `tenant_id` is the zero tenant on every row Kilolock writes. */
  resource_reservations: {
    id: WithDefault<string>;
    state_id: string;
    apply_id: string;
    address_glob: string;
    mode: 'read' | 'write';
    holder: string;
    info: WithDefault<JsonTextColumn>;
    acquired_at: WithDefault<TimestampColumn>;
    expires_at: TimestampColumn;
    tenant_id: WithDefault<string>;
  };
  /** Data model 1.4: one row per span of serials in which a resource stayed the same. */
  resources: {
    id: WithDefault<string>;
    state_id: string;
    address: string;
    mode: 'managed' | 'data';
    type: string;
    name: string;
    provider: string;
    module_path: WithDefault<string>;
    index_kind: WithDefault<'none' | 'int' | 'string'>;
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
  };
  'state_archive.housekeeping': {
    task: string;
    begun_at: TimestampColumn;
    position: WithDefault<string>;
  };
  /** One export or import, from request to outcome. */
  'state_archive.operation': {
    id: WithDefault<string>;
    kind: 'EXPORT' | 'IMPORT';
    status: 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELLED' | 'EXPIRED';
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
    traceparent: Nullable<string>;
  };
  /** The version that a caller's idempotency key stands for. */
  'state_archive.snapshot_import': {
    tenant_id: string;
    subject: string;
    idempotency_key: string;
    /** The digest of the request the key was first used with. */
    request_fingerprint: BytesColumn;
    /** Null, like the serial, within the transaction that writes the version. */
    state_id: Nullable<string>;
    serial: Nullable<BigIntColumn>;
    created_at: WithDefault<TimestampColumn>;
  };
  'state_archive.upload': {
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
  };
  'state_archive.upload_piece': {
    upload_id: string;
    start_byte: BigIntColumn;
    byte_length: BigIntColumn;
    object_key: string;
  };
  /** SHA-256 and length of the UTF-8 of `raw_state::text`, facts that never change. */
  'state_archive.version_digest': {
    state_version_id: string;
    sha256: BytesColumn;
    byte_length: BigIntColumn;
  };
  /** Which version of the archive became which row. */
  'state_archive.version_mapping': {
    operation_id: string;
    serial: BigIntColumn;
    source_version_id: string;
    state_version_id: string;
  };
  /** Data model 1.7 and 5. */
  state_locks: {
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
  };
  /** Data model 1.3 and 4. (tenant_id, state_id, tag) is unique. */
  state_version_tags: {
    id: WithDefault<string>;
    tenant_id: WithDefault<string>;
    state_id: string;
    state_version_id: string;
    tag: string;
    description: Nullable<string>;
    actor: WithDefault<string>;
    created_at: WithDefault<TimestampColumn>;
    updated_at: WithDefault<TimestampColumn>;
  };
  /** Data model 1.2. (state_id, serial) is unique. */
  state_versions: {
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
  };
  /** Data model 1.1. `name` is the stored name; (tenant_id, name) is unique. */
  states: {
    id: WithDefault<string>;
    name: string;
    lineage: Nullable<string>;
    current_version_id: Nullable<string>;
    lifecycle_status: WithDefault<'active' | 'suspended' | 'archived'>;
    lifecycle_changed_at: Nullable<TimestampColumn>;
    lifecycle_changed_by: WithDefault<string>;
    lifecycle_reason: WithDefault<string>;
    created_at: WithDefault<TimestampColumn>;
    updated_at: WithDefault<TimestampColumn>;
    tenant_id: WithDefault<string>;
    exclusive_locks: WithDefault<boolean>;
    coexistence_mode: WithDefault<'warn' | 'strict'>;
  };
  tenant_memberships: {
    id: WithDefault<string>;
    tenant_slug: string;
    account_id: string;
    role: WithDefault<'owner' | 'tenant_admin' | 'billing_admin' | 'member'>;
    created_at: WithDefault<TimestampColumn>;
    updated_at: WithDefault<TimestampColumn>;
    revoked_at: Nullable<TimestampColumn>;
    revoked_by: WithDefault<string>;
  };
  /** Data model 1.12: "workspace" is the public word for a tenant. */
  tenants: {
    id: WithDefault<string>;
    workspace_id: WithDefault<string>;
    slug: string;
    name: string;
    created_at: WithDefault<TimestampColumn>;
    updated_at: WithDefault<TimestampColumn>;
    lifecycle_status: WithDefault<'active' | 'suspended' | 'archived'>;
    lifecycle_changed_at: Nullable<TimestampColumn>;
    lifecycle_changed_by: WithDefault<string>;
    lifecycle_reason: WithDefault<string>;
    kind: WithDefault<'organization' | 'personal'>;
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
  };
}
