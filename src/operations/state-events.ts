import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import type { Database } from '../database/types.ts';

/** A row for Kilolock's `events` (data model 1.10). */
export interface StateEvent {
  readonly tenantId: string;
  readonly kind: string;
  readonly stateId: string | null;
  readonly versionId: string | null;
  readonly actor: string;
  readonly payload: Readonly<Record<string, string | number>>;
}

/**
 * Records an event about a state, and waits for no lock: an event that refers to a state needs a lock on its row, which
 * whoever holds it FOR UPDATE would keep from it. A state or a version that is locked so, or was deleted meanwhile, is
 * left out of the event, as Kilolock leaves a deleted one out of its own (data model 6); the payload then names the state
 * as `state_id`. {@link stateUnlocked} makes that rare.
 *
 * @returns the event's id.
 */
export async function insertStateEvent(db: Kysely<Database>, event: StateEvent): Promise<string> {
  const { rows } = await sql<{ id: string }>`
    with state as (select id from public.states where id = ${event.stateId}::uuid for key share skip locked),
      version as (select id from public.state_versions where id = ${event.versionId}::uuid for key share skip locked)
    insert into public.events (tenant_id, kind, state_id, state_version_id, actor, payload)
    select ${event.tenantId}::uuid, ${event.kind}, (select id from state), (select id from version), ${event.actor},
      ${JSON.stringify(event.payload)}::jsonb || case
        when ${event.stateId}::uuid is null or exists (select from state) then '{}'::jsonb
        else jsonb_build_object('state_id', ${event.stateId}::uuid)
      end
    returning id
  `.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('PostgreSQL recorded no event.');
  return row.id;
}

const LOCK_PATIENCE_MS = 2_000;
const LOCK_POLL_MS = 100;

/**
 * Waits a moment for a state's row that somebody holds locked, so that an event can refer to it. No connection is held
 * meanwhile: many who wait take nothing from the others.
 */
export async function stateUnlocked(db: Kysely<Database>, stateId: string): Promise<void> {
  for (let waited = 0; waited < LOCK_PATIENCE_MS; waited += LOCK_POLL_MS) {
    const { rows } = await sql`
      select from public.states where id = ${stateId}
        and not exists (select from (select from public.states where id = ${stateId} for key share skip locked) free)
    `.execute(db);
    if (rows.length === 0) return;
    await pause(LOCK_POLL_MS);
  }
}
