import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * What lets any machine work on an operation, and only one at a time. An earlier release writes none of these columns, and
 * leaves alone what has no `lease_until`.
 *
 * `attempt` counts how often work on the operation has begun, and fences: who holds an earlier number holds nothing.
 * `heartbeat_at` is when its worker, or before it has one whoever queued it, was last heard of. `request` is what is to be done and
 * with whose rights; null where nobody else could do it: in a part of another operation, and in what an earlier release began.
 */
export const operationAttempts: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await statement.execute(db);
  },
};

const statements = [
  sql`
    alter table state_archive.operation
      add column attempt integer not null default 0,
      add column worker text,
      add column heartbeat_at timestamptz,
      add column request jsonb`,
  sql`
    create index operation_at_work on state_archive.operation (tenant_id, state_name)
      where status in ('PENDING', 'RUNNING')`,
];
