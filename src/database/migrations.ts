import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The migrations of the schema `state_archive`, by name, in the order of their names. A released one never changes. */
export const migrations: Readonly<Record<string, Migration>> = {
  /** Operations, the version mappings of imports, and the known digests of versions. */
  '0001-operations': script(`
    create table state_archive.version_digest (
      state_version_id uuid primary key,
      sha256 bytea not null check (octet_length(sha256) = 32),
      byte_length bigint not null check (byte_length >= 0)
    );
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
    );
    create unique index operation_idempotency_key
      on state_archive.operation (tenant_id, subject, kind, idempotency_key)
      where idempotency_key is not null;
    create index operation_by_state on state_archive.operation (tenant_id, state_id, created_at desc, id);
    create index operation_by_lease on state_archive.operation (status, lease_until);
    create table state_archive.version_mapping (
      operation_id uuid not null references state_archive.operation (id) on delete cascade,
      serial bigint not null,
      source_version_id text not null,
      state_version_id uuid not null,
      primary key (operation_id, serial)
    )`),
  /** The order in which operations are listed, and the idempotency keys of snapshot imports, which are no operations. */
  '0002-operation-list': script(`
    create index operation_by_time on state_archive.operation (tenant_id, created_at desc, id desc);
    create table state_archive.snapshot_import (
      tenant_id uuid not null,
      subject text not null,
      idempotency_key text not null,
      request_fingerprint bytea not null,
      state_id uuid,
      serial bigint,
      created_at timestamptz not null default clock_timestamp(),
      primary key (tenant_id, subject, idempotency_key)
    )`),
  /**
   * What lets any machine work on an operation, and only one at a time. An earlier release writes none of these columns, and
   * leaves alone what has no `lease_until`.
   *
   * `attempt` counts how often work on the operation has begun, and fences: who holds an earlier number holds nothing.
   * `heartbeat_at` is when its worker, or before it has one whoever queued it, was last heard of. `request` is what is to be done and
   * with whose rights; null where nobody else could do it: in a part of another operation, and in what an earlier release began.
   */
  '0003-operation-attempts': script(`
    alter table state_archive.operation
      add column attempt integer not null default 0,
      add column worker text,
      add column heartbeat_at timestamptz,
      add column request jsonb;
    create index operation_at_work on state_archive.operation (tenant_id, state_name)
      where status in ('PENDING', 'RUNNING')`),
  /** Files on their way in, and the pieces of them that are in the store. */
  '0004-uploads': script(`
    create table state_archive.upload (
      id uuid primary key,
      tenant_id uuid not null,
      workspace_id text not null,
      environment_id text not null,
      subject text not null,
      file_name text not null,
      sha256 bytea not null check (octet_length(sha256) = 32),
      byte_length bigint not null check (byte_length >= 0),
      received_bytes bigint not null default 0 check (received_bytes between 0 and byte_length),
      pieces integer not null default 0,
      operation_id uuid,
      created_at timestamptz not null default clock_timestamp(),
      expires_at timestamptz not null
    );
    create index upload_by_subject on state_archive.upload (tenant_id, subject);
    create table state_archive.upload_piece (
      upload_id uuid not null references state_archive.upload (id) on delete cascade,
      start_byte bigint not null,
      byte_length bigint not null,
      object_key text not null unique,
      primary key (upload_id, start_byte)
    )`),
  /**
   * Until when an archive is kept at the least, and the import that an export is a part of.
   *
   * An archive under a legal hold has the `expires_at` infinity, which an earlier release takes for what it is.
   */
  '0005-kept-archives': script(`
    alter table state_archive.operation
      add column retain_until timestamptz,
      add column part_of uuid;
    create index operation_by_whole on state_archive.operation (part_of)
      where part_of is not null and kind = 'EXPORT' and status = 'SUCCEEDED'`),
  /**
   * What keeps the cost of an operation what it is however many have ended: the archives that are kept of an environment, those
   * whose time is past, and an environment's operations by time. An environment is found by what its states' names begin
   * with, `{workspace}/{environment}/`.
   */
  '0006-many-operations': script(`
    create index operation_kept on state_archive.operation (tenant_id, workspace_id, environment_id, expires_at)
      where kind = 'EXPORT' and status = 'SUCCEEDED';
    create index operation_expiring on state_archive.operation (expires_at)
      where kind = 'EXPORT' and status = 'SUCCEEDED';
    create index operation_of_environment on state_archive.operation (tenant_id,
      (split_part(state_name, '/', 1) || '/' || split_part(state_name, '/', 2) || '/'), created_at desc, id desc)`),
  /** Whose turn it is to look through the store: one process at a time has it, and begins where the last one has stopped. */
  '0007-housekeeping': script(`
    create table state_archive.housekeeping (
      task text primary key,
      begun_at timestamptz not null,
      position text not null default ''
    )`),
  /** The trace of the request that asked for an operation, as a `traceparent`. */
  '0008-traces': script('alter table state_archive.operation add column traceparent text'),
};

function script(statements: string): Migration {
  return { up: async (db: Kysely<unknown>) => void (await sql.raw(statements).execute(db)) };
}
