import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Operations, the version mappings of imports, and the known digests of versions. */
export const operations: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await statement.execute(db);
  },
};

const statements = [
  sql`
    create table state_archive.version_digest (
      state_version_id uuid primary key,
      sha256 bytea not null check (octet_length(sha256) = 32),
      byte_length bigint not null check (byte_length >= 0)
    )`,
  sql`
    create table state_archive.operation (
      id uuid primary key default gen_random_uuid(),
      kind text not null check (kind in ('EXPORT', 'IMPORT')),
      status text not null check (status in ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED', 'EXPIRED')),
      tenant_id uuid not null,
      workspace_id text not null,
      environment_id text not null,
      state_name text not null,
      state_label text not null,
      state_id uuid,
      actor text not null,
      subject text not null,
      request_id text,
      idempotency_key text,
      request_fingerprint bytea,
      versions_done bigint not null default 0,
      versions_total bigint,
      bytes_done bigint not null default 0,
      bytes_total bigint,
      created_at timestamptz not null default clock_timestamp(),
      started_at timestamptz,
      finished_at timestamptz,
      expires_at timestamptz,
      lease_until timestamptz,
      archive_sha256 bytea,
      archive_size_bytes bigint,
      archive_history_digest bytea,
      archive_file_name text,
      archive_object_key text,
      report jsonb,
      replaced_operation_id uuid,
      support_reason text,
      error_code text,
      error_message text,
      error_path text[]
    )`,
  sql`
    create unique index operation_idempotency_key
      on state_archive.operation (tenant_id, subject, kind, idempotency_key)
      where idempotency_key is not null`,
  sql`create index operation_by_state on state_archive.operation (tenant_id, state_id, created_at desc, id)`,
  sql`create index operation_by_lease on state_archive.operation (status, lease_until)`,
  sql`
    create table state_archive.version_mapping (
      operation_id uuid not null references state_archive.operation (id) on delete cascade,
      serial bigint not null,
      source_version_id text not null,
      state_version_id uuid not null,
      primary key (operation_id, serial)
    )`,
];
