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
import type { OutputRow, ResourceRow } from '../inspection/spooled-rows.ts';
import type { Storage } from '../inspection/storage.ts';
import { DatabaseStorage } from './database-storage.ts';
import { type Destination, hasArchivedNamesake, lockPolicyIn } from './destination.ts';
import { asRefusal, RestoreRefusedError } from './errors.ts';
import { insertOutputRows } from './outputs.ts';
import { refuseOverQuota } from './quota.ts';
import { insertResourceRows } from './resource-rows.ts';

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
  const state = await lockStateRow(db, destination, document);
  await refuseOverQuota(db, destination.namespace, document.managedInstances, state.id);
  const version = await insertVersion(db, destination, state.id, document.terraformVersion, snapshot);
  await projectVersion(session, destination, state.id, version, document);
  await insertOutputRows(session, destination.namespace.tenantId, outputsOf(document, version.id));
  await db
    .updateTable('states')
    .set({ current_version_id: version.id, updated_at: sql`now()` })
    .where('id', '=', state.id)
    .execute();
  await db
    .insertInto('events')
    .values({
      tenant_id: destination.namespace.tenantId,
      kind: 'state_write',
      state_id: state.id,
      state_version_id: version.id,
      actor: snapshot.actor,
      // A serial is a JSON number in Kilolock's events; the text keeps all of its digits.
      payload: `{"source": ${JSON.stringify(snapshot.source)}, "serial": ${version.serial}}`,
    })
    .execute();
  const appended = { stateId: state.id, serial: version.serial };
  await once?.settle(db, appended);
  return appended;
}

/** Creates the state row or locks the one there is: either way other writers wait until this one has ended. */
async function lockStateRow(
  db: Kysely<Database>,
  destination: Destination,
  document: ReadSnapshot,
): Promise<{ id: string }> {
  const { label } = destination;
  const state = await insertOrLock(db, destination, document);
  const held = state.isNew && (await hasArchivedNamesake(db, destination, state.lineage));
  if (state.lifecycleStatus !== 'active' || held) {
    throw new RestoreRefusedError(
      'STATE_NOT_ACTIVE',
      `The state ${JSON.stringify(label)} is ${held ? 'archived' : state.lifecycleStatus}; restore it in Kilolock first.`,
      { inputPath: ['name'] },
    );
  }
  const holder = (await findLockHolders(db, [state.id])).get(state.id);
  if (holder !== undefined) {
    throw new RestoreRefusedError(
      'STATE_LOCKED',
      `The state ${JSON.stringify(label)} is locked by ${holder}; try again when the lock is released.`,
      { inputPath: ['name'] },
    );
  }
  return { id: state.id };
}

interface LockedState {
  readonly id: string;
  readonly lineage: string | null;
  readonly lifecycleStatus: 'active' | 'suspended' | 'archived';
  readonly isNew: boolean;
}

async function insertOrLock(
  db: Kysely<Database>,
  destination: Destination,
  document: ReadSnapshot,
): Promise<LockedState> {
  const { namespace, label } = destination;
  const lineage = document.lineage === '' ? null : document.lineage;
  const names = await selectStates(db, namespace)
    .where('name', 'in', possibleNames(namespace, label))
    .select(['name', 'tenant_id as tenantId'])
    .execute();
  if (names.length > 1) throw new StateAmbiguousError(label);
  const policy = lockPolicyIn(namespace);
  return db
    .insertInto('states')
    .values({
      tenant_id: names[0]?.tenantId ?? namespace.tenantId,
      name: names[0]?.name ?? destination.name,
      lineage,
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
}

interface InsertedVersion {
  readonly id: string;
  readonly serial: bigint;
  readonly createdAt: string;
}

async function insertVersion(
  db: Kysely<Database>,
  { namespace }: Destination,
  stateId: string,
  terraformVersion: string | null,
  { document, source, actor }: Snapshot,
): Promise<InsertedVersion> {
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

async function* outputsOf(document: ReadSnapshot, versionId: string): AsyncGenerator<OutputRow> {
  for await (const output of document.outputs()) yield { ...output, versionId };
}
