import { type Kysely, sql } from 'kysely';
import type { Database } from '../database/types.ts';
import { insertStateEvent, type StateEvent, stateUnlocked } from './state-events.ts';

/** What is known of an access when its response has ended. */
export interface AccessEnd {
  /** How many bytes were handed on. */
  readonly bytes: bigint;
  /** Whether that was all that was asked for. */
  readonly isWhole: boolean;
}

/** Beyond so many, those of links that have run out are forgotten. */
const MANY = 1_000;

/**
 * The record of who was given an archive: one event for each link, however many requests a client makes of it, written
 * before the first byte leaves. What came of it is added to the event afterwards: until then, and for ever when the
 * process dies first, it says that the download has begun.
 */
export class DownloadAccesses {
  /** The events of links that are good still, by link. */
  readonly #begun = new Map<string, { readonly event: Promise<string>; readonly until: number }>();

  /**
   * Puts an access on record, unless one by this link is.
   *
   * @param linkSeconds how long the link can be used.
   * @returns the id of the event.
   */
  async begin(db: Kysely<Database>, link: string, linkSeconds: number, event: StateEvent): Promise<string> {
    this.#forget();
    const begun = this.#begun.get(link) ?? {
      event: recordBegin(db, event),
      until: performance.now() + linkSeconds * 1000,
    };
    this.#begun.set(link, begun);
    try {
      return await begun.event;
    } catch (error) {
      this.#begun.delete(link);
      throw error;
    }
  }

  /** Adds to the event of an access what came of it. */
  async end(db: Kysely<Database>, eventId: string, { bytes, isWhole }: AccessEnd): Promise<void> {
    await sql`
      update public.events set payload = payload || jsonb_build_object(
        'outcome', ${isWhole ? 'completed' : 'cut'}::text,
        'bytes', ((payload ->> 'bytes')::bigint + ${String(bytes)}::bigint)::text)
      where id = ${eventId}
    `.execute(db);
  }

  #forget(): void {
    if (this.#begun.size < MANY) return;
    for (const [link, { until }] of this.#begun) {
      if (until < performance.now()) this.#begun.delete(link);
    }
  }
}

async function recordBegin(db: Kysely<Database>, event: StateEvent): Promise<string> {
  if (event.stateId !== null) await stateUnlocked(db, event.stateId);
  return insertStateEvent(db, { ...event, payload: { ...event.payload, outcome: 'begun', bytes: '0' } });
}
