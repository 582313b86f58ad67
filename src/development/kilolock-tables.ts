import { readFile } from 'node:fs/promises';
import { inTransaction, type KilolockDatabase } from '../database/connection.ts';

/** Any number of our own, the same in every process: the lock under which Kilolock's tables are created. */
const CREATION_LOCK = 7_403_224_190_518_663n;

/**
 * Gives a database of our own what a fully migrated Kilolock database holds: Kilolock's tables and views (data model 1 and
 * "Minimal table set"), and the self-hosted tenant with its `default` environment (data model 0.4). Safely run by several
 * processes at once. A database with any table in `public` is left as it is.
 */
export async function createKilolockTables(database: KilolockDatabase): Promise<void> {
  const schema = await readFile(new URL('./kilolock-schema.sql', import.meta.url), 'utf8');
  await inTransaction(database, 'migration', async ({ client }) => {
    await client.query('select pg_advisory_xact_lock($1)', [CREATION_LOCK]);
    const { rowCount } = await client.query(
      "select from pg_class where relnamespace = to_regnamespace('public') and relkind in ('r', 'p') limit 1",
    );
    if (rowCount === 0) await client.query(`set local search_path to public; ${schema}`);
  });
}
