import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** Whose turn it is to look through the store: one process at a time has it, and begins where the last one has stopped. */
export const housekeeping: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`
      create table state_archive.housekeeping (
        task text primary key,
        begun_at timestamptz not null,
        position text not null default ''
      )`.execute(db);
  },
};
