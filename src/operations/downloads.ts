import type { Readable } from 'node:stream';
import type { Caller } from '../history/states.ts';
import type { ObjectRange } from '../store/object-store.ts';
import type { AccessEnd } from './download-accesses.ts';
import { followLink, linkFor, linkSeconds } from './links.ts';
import { type ArchiveRecord, findFinishedExport, type OperationRecord } from './operation-records.ts';
import type { ArchiveServices } from './services.ts';

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

/** An archive ready to be read. */
export interface OpenArchive extends ArchiveRecord {
  /** An address in the store that gives the archive out for a short while; null where this service does it. */
  readonly address: (() => Promise<string>) | null;
  /** The bytes from `start` to `end`, both included; all of them without a range. */
  readonly read: (range?: ObjectRange) => Promise<Readable>;
  /**
   * To be called before the first byte is given out: puts the access on record.
   *
   * @returns what to call when the response has ended.
   */
  readonly begin: () => Promise<(end: AccessEnd) => Promise<void>>;
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
  const { objectKey } = archive;
  if ((await store.archives.sizeOf(objectKey)) === null) return null;
  const { addressOf } = store.archives;
  return {
    ...archive,
    address: addressOf && (() => addressOf(objectKey, archive.fileName, ADDRESS_SECONDS)),
    read: (range) => store.archives.read(objectKey, range),
    async begin() {
      const event = await accesses.begin(database.for('record'), linkToken, LINK_SECONDS, {
        tenantId: namespace.tenantId,
        kind: 'state_archive_download',
        stateId: operation.stateId,
        versionId: null,
        actor: subject,
        payload: {
          archive_id: operationId,
          archive_digest: archive.sha256,
          label: operation.label,
          principal: subject,
          request_id: requestId,
        },
      });
      return (end) => accesses.end(database.for('record'), event, end);
    },
  };
}
