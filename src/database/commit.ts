import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import type { DatabaseSession, KilolockDatabase } from './connection.ts';
import { isConnectionLost } from './errors.ts';

/** Nobody answered a COMMIT, and what became of the transaction cannot be found out either. */
export class CommitUndecidedError extends Error {
  override readonly name = 'CommitUndecidedError';

  constructor(cause: unknown) {
    super('The connection to the database was lost during a COMMIT, and nobody can tell what became of it.', {
      cause,
    });
  }
}

/** How long to wait before each look at what became of a transaction. */
const LOOKS_MS = [0, 100, 300, 1_000, 3_000];

/**
 * Commits the transaction of a session. When the connection is lost before the answer, PostgreSQL itself is asked on
 * another one what became of it, so that a transaction that was committed is never taken for one that failed.
 *
 * @returns the command the server says it carried out: COMMIT, or ROLLBACK when a statement had failed.
 * @throws the loss of the connection when the transaction was rolled back; CommitUndecidedError when nobody can tell.
 */
export async function commit(database: KilolockDatabase, session: DatabaseSession): Promise<string> {
  const xid = await transactionId(session);
  try {
    return (await session.answered(session.client.query('commit'))).command;
  } catch (error) {
    if (xid === null || !isConnectionLost(error)) throw error;
    if (await wasCommitted(database, xid, error)) return 'COMMIT';
    throw error;
  }
}

/** Null when nothing was written, and when a statement had failed: there is nothing to commit then. */
async function transactionId({ db }: DatabaseSession): Promise<string | null> {
  try {
    const { rows } = await sql<{ xid: string | null }>`
      select pg_current_xact_id_if_assigned()::text as xid`.execute(db);
    return rows[0]?.xid ?? null;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return null;
    throw error;
  }
}

async function wasCommitted(database: KilolockDatabase, xid: string, loss: unknown): Promise<boolean> {
  for (const milliseconds of LOOKS_MS) {
    await pause(milliseconds);
    const status = await statusOf(database, xid);
    if (status === 'committed') return true;
    if (status === 'aborted') return false;
  }
  throw new CommitUndecidedError(loss);
}

/** Null when the server cannot be asked, or does not know the transaction. */
async function statusOf(database: KilolockDatabase, xid: string): Promise<string | null> {
  try {
    const { rows } = await sql<{ status: string | null }>`
      select pg_xact_status(${xid}::xid8) as status`.execute(database.for('read'));
    return rows[0]?.status ?? null;
  } catch {
    return null;
  }
}
