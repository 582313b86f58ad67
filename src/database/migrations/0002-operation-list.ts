import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** The order in which operations are listed, and the idempotency keys of snapshot imports, which are no operations. */
export const operationList: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await statement.execute(db);
  },
};

const statements = [
  sql`create index operation_by_time on state_archive.operation (tenant_id, created_at desc, id desc)`,
  sql`
    create table state_archive.snapshot_import (
      tenant_id uuid not null,
      subject text not null,
      idempotency_key text not null,
      request_fingerprint bytea not null,
      state_id uuid,
      serial bigint,
      created_at timestamptz not null default clock_timestamp(),
      primary key (tenant_id, subject, idempotency_key)
    )`,
];
