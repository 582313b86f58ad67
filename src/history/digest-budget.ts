import { type Kysely, sql } from 'kysely';
import { CallerError } from '../base/caller-error.ts';
import { Turns } from '../base/turns.ts';
import type { KilolockDatabase } from '../database/connection.ts';
import { isUnstorableValue } from '../database/errors.ts';
import type { Database } from '../database/types.ts';
import { unarchivable } from './inconsistent.ts';

/** The most bytes of raw states that are digested for one request. */
const MAX_DIGESTED_BYTES = 512 * 1024 * 1024;
/** The most versions that one statement digests. */
const VERSIONS_A_STATEMENT = 50;
/** How many bytes, as PostgreSQL stores them, end a statement's share of versions. */
const STORED_BYTES_A_STATEMENT = 4 * 1024 * 1024;

const digests = new Turns<KilolockDatabase>();

/** Digests of a history are missing that the request may not have made any more, or that nobody waits for. */
export class DigestsMissingError extends CallerError {
  override readonly name = 'DigestsMissingError';
  override readonly code = 'DIGESTS_INCOMPLETE';

  constructor() {
    super(
      'The history is not digested yet, and digesting it goes beyond what one request may cause. Ask again for this state alone: what was digested is kept, and the next request goes on from there.',
    );
  }
}

/**
 * What one request may have digested: reading raw states is the only work of a preview that grows with what a history
 * holds, and happens once in the life of a version. It ends with the request.
 */
export class DigestBudget {
  readonly #signal: AbortSignal | undefined;
  #bytes: number;

  /**
   * @param signal aborts when nobody waits for the digests any more.
   * @param bytes of raw states, as they are printed.
   */
  constructor(signal?: AbortSignal, bytes: number = MAX_DIGESTED_BYTES) {
    this.#signal = signal;
    this.#bytes = bytes;
  }

  /** Whether nothing more may be digested. */
  get isSpent(): boolean {
    return this.#bytes <= 0 || this.#signal?.aborted === true;
  }

  spend(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/**
 * Digests raw states inside the database and keeps the result: versions are append-only, so that their digests are
 * facts. It goes in statements of bounded size, one at a time in each database, whoever asks: what two requests ask for
 * at the same moment is made once, and neither waits for the whole of the other's.
 *
 * @param versionIds those that had no digest a moment ago, the most wanted first. When the budget is spent the rest is
 *   left as it is.
 * @throws HistoryInconsistentError for a raw state that PostgreSQL cannot print.
 */
export async function digestVersions(
  database: KilolockDatabase,
  versionIds: readonly string[],
  budget: DigestBudget,
): Promise<void> {
  let missing = versionIds;
  let most = VERSIONS_A_STATEMENT;
  while (missing.length > 0) {
    const share = missing.slice(0, most);
    const left = await digests.run(database, async () => {
      if (budget.isSpent) return null;
      try {
        const { left, bytes } = await digestShare(database.for('digest'), share);
        budget.spend(bytes);
        return left;
      } catch (error) {
        if (!isUnstorableValue(error)) throw error;
        if (share.length === 1) {
          throw unarchivable(`The version ${share[0]}`, 'its raw state is too long for PostgreSQL to print');
        }
        // One of them cannot be printed; one at a time they tell which.
        most = 1;
        return share;
      }
    });
    if (left === null) return;
    missing = [...left, ...missing.slice(share.length)];
  }
}

/**
 * Digests versions that the transaction of `db` has written itself, and keeps the result with them. In statements of bounded
 * size: one over a large history would be silent for longer than anybody waits for a sign of PostgreSQL.
 */
export async function digestOwnVersions(db: Kysely<Database>, versionIds: readonly string[]): Promise<void> {
  let missing = versionIds;
  while (missing.length > 0) {
    const share = missing.slice(0, VERSIONS_A_STATEMENT);
    const { left } = await digestShare(db, share);
    missing = [...left, ...missing.slice(share.length)];
  }
}

async function digestShare(
  db: Kysely<Database>,
  versionIds: readonly string[],
): Promise<{ left: string[]; bytes: number }> {
  const { rows } = await sql<{ id: string; byteLength: string | null }>`
    with missing as materialized (
      select version.id, coalesce(
        sum(pg_column_size(version.raw_state)) over (
          order by wanted.place rows between unbounded preceding and 1 preceding
        ), 0) < ${STORED_BYTES_A_STATEMENT} as fits
      from unnest(${[...versionIds]}::uuid[]) with ordinality as wanted (id, place)
      join public.state_versions version on version.id = wanted.id
      where not exists (
        select from state_archive.version_digest known where known.state_version_id = version.id
      )
    ), digest as materialized (
      select text.id, sha256(text.bytes) as sha256, octet_length(text.bytes) as byte_length
      from (
        select version.id, convert_to(version.raw_state::text, 'UTF8') as bytes
        from missing
        join public.state_versions version on version.id = missing.id
        where missing.fits
        offset 0
      ) text
    ), kept as (
      insert into state_archive.version_digest (state_version_id, sha256, byte_length)
      select id, sha256, byte_length from digest
      on conflict (state_version_id) do nothing
    )
    select missing.id, digest.byte_length as "byteLength"
    from missing
    left join digest on digest.id = missing.id
  `.execute(db);
  return {
    left: rows.filter((row) => row.byteLength === null).map((row) => row.id),
    bytes: rows.reduce((sum, row) => sum + Number(row.byteLength ?? 0), 0),
  };
}
