import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Files on their way in, and the pieces of them that are in the store. */
export const uploads: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await statement.execute(db);
  },
};

const statements = [
  sql`
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
    )`,
  sql`create index upload_by_subject on state_archive.upload (tenant_id, subject)`,
  sql`
    create table state_archive.upload_piece (
      upload_id uuid not null references state_archive.upload (id) on delete cascade,
      start_byte bigint not null,
      byte_length bigint not null,
      object_key text not null unique,
      primary key (upload_id, start_byte)
    )`,
];
