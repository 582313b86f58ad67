import { type RawBuilder, sql } from 'kysely';
import type { KilolockDatabase } from '../database/connection.ts';

type TokenTable = 'api_tokens' | 'portal_personal_access_tokens';

/** Whether the last use of a token was noted so long ago that this one should be: once a minute is enough. */
export function isUseWorthNoting(table: TokenTable): RawBuilder<boolean> {
  const lastUsedAt = sql.ref(`${table}.last_used_at`);
  return sql<boolean>`(${lastUsedAt} is null or ${lastUsedAt} < now() - interval '1 minute')`;
}

/**
 * Notes that a token is used now. It is for people to see which tokens are still in use: nobody waits for a lock on the
 * row, and no request fails because it cannot be written.
 */
export async function noteUse(database: KilolockDatabase, table: TokenTable, id: string): Promise<void> {
  const tokens = sql.table(`public.${table}`);
  await sql`
    update ${tokens} set last_used_at = now() where id = (
      select id from ${tokens} where id = ${id} and ${isUseWorthNoting(table)} for no key update skip locked
    )`
    .execute(database.for('housekeeping'))
    .catch(() => {});
}
