/**
 * @file What the tables hold that statements built by Kysely read or write: Kilolock's own (schema `public`, data model 1) and
 * the project's (schema `state_archive`). Generated from the catalogues of both; see test/database/types.test.ts.
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
    revoked_at: Nullable<TimestampColumn>;
    environment_id: string;
    lifecycle_status: WithDefault<'active' | 'suspended' | 'archived'>;
  };
  /** Data model 1.9. */
  apply_runs: {
    state_id: string;
  };
  /** Data model 1.12. */
  environments: {
    id: WithDefault<string>;
    tenant_id: string;
    env_public_id: WithDefault<string>;
    slug: string;
    status: WithDefault<'provisioning' | 'ready' | 'failed'>;
    /** A secret. NULL or '' means the shared database. */
    database_dsn: Nullable<string>;
    lifecycle_status: WithDefault<'active' | 'suspended' | 'archived'>;
    state_lock_default_mode: WithDefault<'auto' | 'vanilla' | 'kilolock'>;
  };
  /** Data model 1.10 and 6: the audit trail. */
  events: {
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
    state_version_id: string;
    name: string;
  };
  /** The person behind a personal access token (data model 7.3). */
  portal_accounts: {
    id: WithDefault<string>;
    email: string;
  };
  portal_environment_pat_grants: {
    id: WithDefault<string>;
    account_id: string;
    environment_id: string;
    revoked_at: Nullable<TimestampColumn>;
  };
  /** Data model 7.3. */
  portal_personal_access_tokens: {
    id: WithDefault<string>;
    account_id: string;
    token_hash: BytesColumn;
    revoked_at: Nullable<TimestampColumn>;
  };
  rbac_permissions: {
    id: WithDefault<string>;
    key: string;
  };
  /** Data model 7.5. */
  rbac_principal_roles: {
    subject_kind: string;
    subject_id: string;
    role_id: string;
    scope_kind: WithDefault<'global' | 'tenant' | 'environment'>;
    scope_ref: WithDefault<string>;
    revoked_at: Nullable<TimestampColumn>;
  };
  rbac_role_permissions: {
    role_id: string;
    permission_id: string;
  };
  /** Data model 1.9. */
  refresh_runs: {
    state_id: string;
  };
  /** Data model 1.8. `tenant_id` is the zero tenant on every row Kilolock writes. */
  resource_reservations: {
    state_id: string;
  };
  /** Data model 1.4: one row per span of serials in which a resource stayed the same. */
  resources: {
    state_id: string;
    address: string;
    mode: 'managed' | 'data';
    attributes_hash: string;
    create_serial: BigIntColumn;
    delete_serial: Nullable<BigIntColumn>;
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
    acquired_at: WithDefault<TimestampColumn>;
  };
  /** Data model 1.3 and 4. (tenant_id, state_id, tag) is unique. */
  state_version_tags: {
    tenant_id: WithDefault<string>;
    state_id: string;
    state_version_id: string;
    tag: string;
  };
  /** Data model 1.2. (state_id, serial) is unique. */
  state_versions: {
    id: WithDefault<string>;
    state_id: string;
    serial: BigIntColumn;
  };
  /** Data model 1.1. `name` is the stored name; (tenant_id, name) is unique. */
  states: {
    id: WithDefault<string>;
    name: string;
    lineage: Nullable<string>;
    current_version_id: Nullable<string>;
    lifecycle_status: WithDefault<'active' | 'suspended' | 'archived'>;
    created_at: WithDefault<TimestampColumn>;
    updated_at: WithDefault<TimestampColumn>;
    tenant_id: WithDefault<string>;
    exclusive_locks: WithDefault<boolean>;
    coexistence_mode: WithDefault<'warn' | 'strict'>;
  };
  tenant_memberships: {
    tenant_slug: string;
    account_id: string;
    role: WithDefault<'owner' | 'tenant_admin' | 'billing_admin' | 'member'>;
    revoked_at: Nullable<TimestampColumn>;
  };
  /** Data model 1.12: "workspace" is the public word for a tenant. */
  tenants: {
    id: WithDefault<string>;
    workspace_id: WithDefault<string>;
    slug: string;
    name: string;
    lifecycle_status: WithDefault<'active' | 'suspended' | 'archived'>;
    kind: WithDefault<'organization' | 'personal'>;
    personal_owner_account_id: Nullable<string>;
    /** 0 means unlimited, as in the column below. */
    max_state_resources: WithDefault<number>;
    max_environment_resources: WithDefault<number>;
  };
}
