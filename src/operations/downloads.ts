import type { Readable } from 'node:stream';
import { objectKeyOf, operationIdOf } from './archive-store.ts';
import {
  type ArchiveRecord,
  expireArchives,
  findArchivesToRemove,
  findFinishedExport,
  type OperationRecord,
} from './operation-records.ts';
import type { ArchiveServices } from './services.ts';
import { insertStateEvent } from './state-events.ts';

/** How long a download link is good for. */
const LINK_SECONDS = 15 * 60;

/** A link to the archive of an export, made for one principal; null when there is no archive to download. */
export async function downloadUrl(
  { links }: ArchiveServices,
  { id, kind, status, workspace, environment }: OperationRecord,
  reader: { readonly subject: string; readonly publicUrl: string },
): Promise<string | null> {
  if (kind !== 'EXPORT' || status !== 'SUCCEEDED') return null;
  const token = await links.sign({
    purpose: 'download',
    operationId: id,
    workspace,
    environment,
    subject: reader.subject,
    expiresInSeconds: LINK_SECONDS,
  });
  return `${reader.publicUrl}/archives/${id}?token=${encodeURIComponent(token)}`;
}

/** An archive ready to be read. */
export interface OpenArchive extends ArchiveRecord {
  /** The bytes from `start` to `end`, both included; all of them without a range. */
  readonly read: (range?: { start: number; end: number }) => Readable;
  /** To be called when bytes were given out, with how many: records the access. */
  readonly onServed: (bytes: bigint) => Promise<void>;
}

/** The archive a link leads to; null when the link is not good, or the archive is gone: the two are not told apart. */
export async function openArchive(
  { environments, links, store }: Pick<ArchiveServices, 'environments' | 'links' | 'store'>,
  operationId: string,
  linkToken: string,
  requestId: string,
): Promise<OpenArchive | null> {
  const link = await links.verify(linkToken, 'download', operationId);
  if (link === null) return null;
  const environment = await environments.open(link);
  if (environment === null) return null;
  const { database, namespace } = environment;
  const operation = await findFinishedExport(database.for('read'), operationId, link);
  const archive = operation?.archive;
  if (operation == null || archive?.objectKey == null) return null;
  const { objectKey } = archive;
  if (!(await store.has(objectKey))) return null;
  return {
    ...archive,
    read: (range) => store.read(objectKey, range),
    async onServed(bytes) {
      await insertStateEvent(database.for('record'), {
        tenantId: namespace.tenantId,
        kind: 'state_archive_download',
        stateId: operation.stateId,
        versionId: null,
        actor: link.subject,
        payload: {
          archive_id: operationId,
          archive_digest: archive.sha256,
          bytes: String(bytes),
          label: operation.label,
          principal: link.subject,
          request_id: requestId,
        },
      });
    },
  };
}

/**
 * Removes the archives whose time is past, and those of exports that ended otherwise than well: what a process that died
 * between two steps left is found the next time. A database that cannot be asked does not hinder the others.
 *
 * @throws AggregateError when not every open database could be asked, after all the others were.
 */
export async function removeExpiredArchives({
  environments,
  store,
}: Pick<ArchiveServices, 'environments' | 'store'>): Promise<void> {
  const operationIds = (await store.list()).map(operationIdOf);
  const failures: unknown[] = [];
  for (const database of environments.openDatabases) {
    const db = database.for('housekeeping');
    try {
      await expireArchives(db);
      for (const id of await findArchivesToRemove(db, operationIds)) await store.remove(objectKeyOf(id));
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) {
    throw new AggregateError(failures, 'Not every database could be asked.', { cause: failures[0] });
  }
}
