import { type Kysely, sql } from 'kysely';
import {
  type DatabaseSession,
  inTransaction,
  type KilolockDatabase,
  microsecondTime,
} from '../database/connection.ts';
import { isUnstorableValue, refusalText } from '../database/errors.ts';
import type { Database } from '../database/types.ts';
import { possibleNames, StateAmbiguousError, selectStates } from '../history/namespace.ts';
import { findLockHolders } from '../history/versions.ts';
import { RefusedDocumentError } from '../inspection/errors.ts';
import { type ReadSnapshot, readSnapshot, SNAPSHOT } from '../inspection/snapshot.ts';
import type { ResourceRow } from '../inspection/spooled-rows.ts';
import type { Storage } from '../inspection/storage.ts';
import { DatabaseStorage } from './database-storage.ts';
import { type Destination, hasArchivedNamesake, lockPolicyIn } from './destination.ts';
import { asRefusal, notActive, refusedState } from './errors.ts';
import { refuseOverQuota } from './quota.ts';
import { insertOutputRows, insertResourceRows } from './state-rows.ts';

/** The values Kilolock's own import endpoint takes for a version's source (data model 2.1). */
export const SNAPSHOT_SOURCES = ['import', 'apply', 'refresh', 'unknown'] as const;
export type SnapshotSource = (typeof SNAPSHOT_SOURCES)[number];

/** A raw state document to append. */
export interface Snapshot {
  /** The document's bytes. */
  readonly document: Buffer;
  readonly source: SnapshotSource;
  /** Who appends it, as the credential names them; becomes the version's `created_by`. */
  readonly actor: string;
}

/** The version a snapshot became. */
export interface AppendedVersion {
  readonly stateId: string;
  readonly serial: bigint;
}

/** What is to be done once only, however often it is asked for. Both run in the transaction that appends the version. */
export interface OnceOnly {
  /** The version appended before, or null: then nobody else appends it until the transaction has ended. */
  claim(db: Kysely<Database>): Promise<AppendedVersion | null>;
  settle(db: Kysely<Database>, appended: AppendedVersion): Promise<void>;
}

/** How a snapshot is appended. */
export interface AppendOptions {
  /** Null: each call appends. */
  readonly once?: OnceOnly | null;
  /** Reads the document; {@link readSnapshot} unless given. */
  readonly read?: (document: Buffer, storage: Storage) => Promise<ReadSnapshot>;
}

/**
 * Appends one document as the next version of a state, creating the state when it is new, the way Kilolock's own write
 * path does (data model 2.5): serial MAX + 1 in the column and in the document, lineage kept when there is one, resource
 * rows, outputs, pointer and `state_write` event, all in one transaction.
 *
 * @throws RestoreRefusedError UNSUPPORTED_STATE_DOCUMENT, STATE_NOT_ACTIVE, STATE_LOCKED or QUOTA_EXCEEDED.
 */
export async function appendSnapshot(
  database: KilolockDatabase,
  destination: Destination,
  snapshot: Snapshot,
  { once = null, read = readSnapshot }: AppendOptions = {},
): Promise<AppendedVersion> {
  const storage = new DatabaseStorage(database, destination.namespace.tenantId);
  try {
    const document = await read(snapshot.document, storage);
    return await inTransaction(database, 'restore', (session) =>
      append(session, destination, snapshot, document, once),
    );
  } catch (error) {
    throw asRefusal(
      isUnstorableValue(error)
        ? new RefusedDocumentError(SNAPSHOT, { path: '$', reason: refusalText(error) })
        : error,
    );
  }
}

async function append(
  session: DatabaseSession,
  destination: Destination,
  snapshot: Snapshot,
  document: ReadSnapshot,
  once: OnceOnly | null,
): Promise<AppendedVersion> {
  const { db } = session;
  const earlier = await once?.claim(db);
  if (earlier) return earlier;
  const stateId = await lockStateRow(db, destination, document);
  await refuseOverQuota(db, destination.namespace, document.managedInstances, stateId);
  const version = await insertVersion(db, destination, stateId, document.terraformVersion, snapshot);
  await projectVersion(session, destination, stateId, version, document);
  await insertOutputRows(session, destination.namespace.tenantId, () => version.id, document.outputs());
  await db
    .updateTable('states')
    .set({ current_version_id: version.id, updated_at: sql`now()` })
    .where('id', '=', stateId)
    .execute();
  await db
    .insertInto('events')
    .values({
      tenant_id: destination.namespace.tenantId,
      kind: 'state_write',
      state_id: stateId,
      state_version_id: version.id,
      actor: snapshot.actor,
      // A serial is a JSON number in Kilolock's events; the text keeps all of its digits.
      payload: `{"source": ${JSON.stringify(snapshot.source)}, "serial": ${version.serial}}`,
    })
    .execute();
  const appended = { stateId, serial: version.serial };
  await once?.settle(db, appended);
  return appended;
}

/** Creates the state row or locks the one there is: either way other writers wait until this one has ended. */
async function lockStateRow(
  db: Kysely<Database>,
  destination: Destination,
  document: ReadSnapshot,
): Promise<string> {
  const { namespace, label } = destination;
  const names = await selectStates(db, namespace)
    .where('name', 'in', possibleNames(namespace, label))
    .select(['name', 'tenant_id as tenantId'])
    .execute();
  if (names.length > 1) throw new StateAmbiguousError(label);
  const policy = lockPolicyIn(namespace);
  const state = await db
    .insertInto('states')
    .values({
      tenant_id: names[0]?.tenantId ?? namespace.tenantId,
      name: names[0]?.name ?? destination.name,
      lineage: document.lineage === '' ? null : document.lineage,
      exclusive_locks: policy.exclusiveLocks,
      coexistence_mode: policy.coexistenceMode,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['tenant_id', 'name'])
        .doUpdateSet((row) => ({ lineage: row.fn.coalesce('states.lineage', 'excluded.lineage') })),
    )
    .returning(['id', 'lineage', 'lifecycle_status as lifecycleStatus', sql<boolean>`xmax = 0`.as('isNew')])
    .executeTakeFirstOrThrow();
  if (state.isNew && (await hasArchivedNamesake(db, destination, state.lineage))) {
    throw notActive(label, 'archived');
  }
  if (state.lifecycleStatus !== 'active') throw notActive(label, state.lifecycleStatus);
  const holder = (await findLockHolders(db, [state.id])).get(state.id);
  if (holder !== undefined) {
    const how = `is locked by ${holder}; try again when the lock is released.`;
    throw refusedState('STATE_LOCKED', label, how);
  }
  return state.id;
}

async function insertVersion(
  db: Kysely<Database>,
  { namespace }: Destination,
  stateId: string,
  terraformVersion: string | null,
  { document, source, actor }: Snapshot,
) {
  const { rows } = await sql<{ id: string; serial: string; createdAt: string }>`
    insert into public.state_versions (tenant_id, state_id, serial, terraform_version, raw_state, source, created_by)
    select ${namespace.tenantId}, ${stateId}, next.serial, ${terraformVersion ?? ''},
      jsonb_set(pg_catalog.convert_from(${document}, 'UTF8')::jsonb, '{serial}', to_jsonb(next.serial)), ${source}, ${actor}
    from (
      select coalesce(max(serial), 0) + 1 as serial from public.state_versions where state_id = ${stateId}
    ) next
    returning id, serial, ${microsecondTime('created_at')} as "createdAt"
  `.execute(db);
  const row = rows[0];
  if (row === undefined) throw new Error('PostgreSQL inserted no version.');
  return { ...row, serial: BigInt(row.serial) };
}

type InsertedVersion = Awaited<ReturnType<typeof insertVersion>>;

/** Ends the rows that the version does not continue, and adds those it begins (data model 3.7). */
async function projectVersion(
  session: DatabaseSession,
  { namespace }: Destination,
  stateId: string,
  version: InsertedVersion,
  document: ReadSnapshot,
): Promise<void> {
  const { db } = session;
  const rows = await db
    .selectFrom('resources')
    .where('state_id', '=', stateId)
    .where('delete_serial', 'is', null)
    .select(['address', 'attributes_hash as hash'])
    .execute();
  const open = new Map(rows.map(({ address, hash }) => [address, hash]));
  const ended = new Set(open.keys());
  for await (const { address, attributesHash } of document.resources()) {
    if (open.get(address) === attributesHash) ended.delete(address);
  }
  if (ended.size > 0) {
    await db
      .updateTable('resources')
      .set({ delete_serial: version.serial })
      .where('state_id', '=', stateId)
      .where('delete_serial', 'is', null)
      .where(sql<boolean>`address = any(${[...ended]}::text[])`)
      .execute();
  }
  await insertResourceRows(
    session,
    { tenantId: namespace.tenantId, stateId },
    begun(document, open, version),
  );
}

async function* begun(
  document: ReadSnapshot,
  open: ReadonlyMap<string, string>,
  { serial, createdAt }: InsertedVersion,
): AsyncGenerator<ResourceRow> {
  for await (const resource of document.resources()) {
    if (open.get(resource.address) === resource.attributesHash) continue;
    yield { resource, createSerial: serial, deleteSerial: null, createdAt };
  }
}
