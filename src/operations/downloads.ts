import type { Readable } from 'node:stream';
import { type Kysely, sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import type { Database } from '../database/types.ts';
import type { Caller } from '../history/states.ts';
import type { ObjectRange } from '../store/object-store.ts';
import { followLink, linkFor, linkSeconds } from './links.ts';
import { type ArchiveRecord, findFinishedExport, type OperationRecord } from './operation-records.ts';
import type { ArchiveServices } from './services.ts';
import { insertStateEvent, type StateEvent, stateUnlocked } from './state-events.ts';

/** How long an address in the store is good for: long enough to begin a download. */
const ADDRESS_SECONDS = 60;

/** How long a download link is good for. */
const LINK_SECONDS = 15 * 60;

/**
 * A link to the archive of an export, made for one caller and good as long as the caller's credential, a quarter of an
 * hour at most; null when there is no archive to download.
 */
export async function downloadUrl(
  services: Pick<ArchiveServices, 'links'>,
  { id, kind, status }: OperationRecord,
  caller: Caller,
  publicUrl: string,
): Promise<string | null> {
  if (kind !== 'EXPORT' || status !== 'SUCCEEDED') return null;
  const seconds = linkSeconds(caller, LINK_SECONDS);
  return seconds < 1
    ? null
    : linkFor(services, caller, { purpose: 'download', resourceId: id }, seconds, publicUrl);
}

/** What is known of an access when its response has ended. */
interface AccessEnd {
  /** How many bytes were handed on. */
  readonly bytes: bigint;
  /** Whether that was all that was asked for. */
  readonly isWhole: boolean;
}

/** An archive ready to be read. */
export interface OpenArchive extends Pick<ArchiveRecord, 'fileName' | 'sizeBytes' | 'sha256'> {
  /** An address in the store that gives the archive out for a short while; null where this service does it. */
  readonly address: (() => Promise<string>) | null;
  /** The bytes from `start` to `end`, both included; all of them without a range. */
  read(range?: ObjectRange): Promise<Readable>;
  /**
   * To be called once before the first byte is given out: puts the access on record. When it fails, none may be.
   *
   * @returns what to call once when the response has ended.
   */
  begin(): Promise<(end: AccessEnd) => Promise<void>>;
}

/**
 * The archive a link leads to; null when the link is not good, the credential it was made with permits it no longer, or the
 * archive is gone: they are not told apart.
 */
export async function openArchive(
  services: Pick<ArchiveServices, 'accesses' | 'environments' | 'links' | 'readCredential' | 'store'>,
  operationId: string,
  linkToken: string,
  requestId: string,
): Promise<OpenArchive | null> {
  const { accesses, store } = services;
  const opened = await followLink(services, { purpose: 'download', resourceId: operationId }, linkToken);
  if (opened === null) return null;
  const { namespace, database, subject } = opened;
  const operation = await findFinishedExport(database.for('read'), operationId, namespace);
  const archive = operation?.archive;
  if (operation == null || archive?.objectKey == null) return null;
  const { objectKey, fileName, sizeBytes, sha256 } = archive;
  if ((await store.archives.sizeOf(objectKey)) === null) return null;
  const { addressOf } = store.archives;
  return {
    fileName,
    sizeBytes,
    sha256,
    address: addressOf && (() => addressOf(objectKey, fileName, ADDRESS_SECONDS)),
    read: (range) => store.archives.read(objectKey, range),
    async begin() {
      const event = await accesses.begin(database.for('record'), linkToken, {
        tenantId: namespace.tenantId,
        kind: 'state_archive_download',
        stateId: operation.stateId,
        versionId: null,
        actor: subject,
        payload: {
          archive_id: operationId,
          archive_digest: sha256,
          label: operation.label,
          principal: subject,
          request_id: requestId,
        },
      });
      return (end) => accesses.end(database.for('record'), event, end);
    },
  };
}

/**
 * The record of who was given an archive: one event for each link, however many requests a client makes of it, written
 * before the first byte leaves. What came of it is added to the event afterwards: until then, and for ever when the
 * process dies first, it says that the download has begun.
 */
export class DownloadAccesses {
  /** The events of links that are good still, by link. */
  readonly #begun = new LRUCache<string, Promise<string>>({ ttl: LINK_SECONDS * 1000, ttlAutopurge: true });

  /**
   * Puts an access on record, unless one by this link is.
   *
   * @returns the id of the event.
   */
  async begin(db: Kysely<Database>, link: string, event: StateEvent): Promise<string> {
    const begun = this.#begun.get(link) ?? recordBegin(db, event);
    this.#begun.set(link, begun, { noUpdateTTL: true });
    try {
      return await begun;
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
}

async function recordBegin(db: Kysely<Database>, event: StateEvent): Promise<string> {
  if (event.stateId !== null) await stateUnlocked(db, event.stateId);
  return insertStateEvent(db, { ...event, payload: { ...event.payload, outcome: 'begun', bytes: '0' } });
}
