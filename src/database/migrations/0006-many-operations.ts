import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * What keeps the cost of an operation what it is however many have ended: the archives that are kept of an environment, those
 * whose time is past, and an environment's operations by time. An environment is found by what its states' names begin
 * with, `{workspace}/{environment}/`.
 */
export const manyOperations: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await statement.execute(db);
  },
};

const statements = [
  sql`
    create index operation_kept on state_archive.operation (tenant_id, workspace_id, environment_id, expires_at)
      where kind = 'EXPORT' and status = 'SUCCEEDED'`,
  sql`
    create index operation_expiring on state_archive.operation (expires_at)
      where kind = 'EXPORT' and status = 'SUCCEEDED'`,
  sql`
    create index operation_of_environment on state_archive.operation (tenant_id,
      (split_part(state_name, '/', 1) || '/' || split_part(state_name, '/', 2) || '/'), created_at desc, id desc)`,
];
