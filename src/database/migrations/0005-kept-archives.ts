import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/**
 * Until when an archive is kept at the least, and the import that an export is a part of.
 *
 * An archive under a legal hold has the `expires_at` infinity, which an earlier release takes for what it is.
 */
export const keptArchives: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await statement.execute(db);
  },
};

const statements = [
  sql`
    alter table state_archive.operation
      add column retain_until timestamptz,
      add column part_of uuid`,
  sql`
    create index operation_by_whole on state_archive.operation (part_of)
      where part_of is not null and kind = 'EXPORT' and status = 'SUCCEEDED'`,
];
