import type { Readable } from 'node:stream';
import type { ArchiveRecord } from './operation-records.ts';
import { expireArchives, findArchive, type OperationRecord } from './operation-records.ts';
import type { ArchiveServices } from './services.ts';

/** How long a download link is good for. */
const LINK_SECONDS = 15 * 60;

/** A link to the archive of an export, made for one principal; null when there is no archive to download. */
export async function downloadUrl(
  { links }: ArchiveServices,
  operation: OperationRecord,
  reader: { readonly subject: string; readonly publicUrl: string },
): Promise<string | null> {
  if (operation.kind !== 'EXPORT' || operation.status !== 'SUCCEEDED') return null;
  const token = await links.sign({
    purpose: 'download',
    operationId: operation.id,
    subject: reader.subject,
    expiresInSeconds: LINK_SECONDS,
  });
  return `${reader.publicUrl}/archives/${operation.id}?token=${encodeURIComponent(token)}`;
}

/** An archive ready to be read. */
export interface OpenArchive extends ArchiveRecord {
  /** The bytes from `start` to `end`, both included; all of them without a range. */
  readonly read: (range?: { start: number; end: number }) => Readable;
}

/** The archive a link leads to; null when the link is not good, or the archive is gone: the two are not told apart. */
export async function openArchive(
  { database, links, store }: ArchiveServices,
  operationId: string,
  linkToken: string,
): Promise<OpenArchive | null> {
  if ((await links.verify(linkToken, 'download', operationId)) === null) return null;
  const archive = await findArchive(database.db, operationId);
  if (archive === null || archive.objectKey === null) return null;
  const { objectKey } = archive;
  if (!(await store.has(objectKey))) return null;
  return { ...archive, read: (range) => store.read(objectKey, range) };
}

/** Removes the archives whose time is past. */
export async function removeExpiredArchives({ database, store }: ArchiveServices): Promise<void> {
  for (const objectKey of await expireArchives(database.db)) await store.remove(objectKey);
}
