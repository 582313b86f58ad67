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
 * Records an event about a state. A state or a version that was deleted meanwhile is left out of it, as Kilolock leaves
 * it out of its own (data model 6).
 */
export async function insertStateEvent(db: Kysely<Database>, event: StateEvent): Promise<void> {
  await db
    .insertInto('events')
    .values({
      tenant_id: event.tenantId,
      kind: event.kind,
      state_id: sql<string | null>`(select id from states where id = ${event.stateId}::uuid)`,
      state_version_id: sql<
        string | null
      >`(select id from state_versions where id = ${event.versionId}::uuid)`,
      actor: event.actor,
      payload: JSON.stringify(event.payload),
    })
    .execute();
}
