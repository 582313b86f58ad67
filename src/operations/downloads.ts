import type { Readable } from 'node:stream';
import type { Caller } from '../history/states.ts';
import type { ObjectRange } from '../store/object-store.ts';
import { selectorOf } from './current-caller.ts';
import type { AccessEnd } from './download-accesses.ts';
import { isStillPermitted } from './link-permission.ts';
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
  { links }: Pick<ArchiveServices, 'links'>,
  { id, kind, status }: OperationRecord,
  caller: Caller,
  publicUrl: string,
): Promise<string | null> {
  if (kind !== 'EXPORT' || status !== 'SUCCEEDED') return null;
  const { subject, token = null, expiresAt = Number.POSITIVE_INFINITY } = caller.principal;
  const expiresInSeconds = Math.min(LINK_SECONDS, Math.floor(expiresAt - Date.now() / 1000));
  if (expiresInSeconds < 1) return null;
  const selector = selectorOf(caller);
  const link = await links.sign({
    purpose: 'download',
    resourceId: id,
    workspace: selector?.workspace ?? null,
    environment: selector?.environment ?? null,
    subject,
    token,
    expiresInSeconds,
  });
  return `${publicUrl}/archives/${id}?token=${encodeURIComponent(link)}`;
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
  const { accesses, environments, links, store } = services;
  const link = await links.verify(linkToken, 'download', operationId);
  if (link === null) return null;
  const { workspace, environment } = link;
  const opened = await environments.open(
    workspace === null || environment === null ? null : { workspace, environment },
  );
  if (opened === null || !(await isStillPermitted(services, link, 'state.export', opened.namespace)))
    return null;
  const { namespace, database } = opened;
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
        actor: link.subject,
        payload: {
          archive_id: operationId,
          archive_digest: archive.sha256,
          label: operation.label,
          principal: link.subject,
          request_id: requestId,
        },
      });
      return (end) => accesses.end(database.for('record'), event, end);
    },
  };
}
