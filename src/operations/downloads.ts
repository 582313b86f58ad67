import type { Readable } from 'node:stream';
import type { Environment } from '../auth/principal.ts';
import { objectKeyOf, operationIdOf } from './archive-store.ts';
import type { ArchiveRecord } from './operation-records.ts';
import {
  expireArchives,
  findArchive,
  findArchivesToRemove,
  type OperationRecord,
} from './operation-records.ts';
import type { ArchiveServices } from './services.ts';

/** How long a download link is good for. */
const LINK_SECONDS = 15 * 60;

/** A link to the archive of an export, made for one principal; null when there is no archive to download. */
export async function downloadUrl(
  { database, links }: ArchiveServices,
  operation: OperationRecord,
  reader: { readonly subject: string; readonly publicUrl: string },
): Promise<string | null> {
  if (operation.kind !== 'EXPORT' || operation.status !== 'SUCCEEDED') return null;
  const environment = await findEnvironment(database, operation.id);
  if (environment === null) return null;
  const token = await links.sign({
    purpose: 'download',
    operationId: operation.id,
    ...environment,
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
  const link = await links.verify(linkToken, 'download', operationId);
  if (link === null) return null;
  // A link leads to the environment it was made for, whatever the operation's row says by now.
  const environment = await findEnvironment(database, operationId);
  if (environment?.workspace !== link.workspace || environment.environment !== link.environment) return null;
  const archive = await findArchive(database.db, operationId);
  if (archive === null || archive.objectKey === null) return null;
  const { objectKey } = archive;
  if (!(await store.has(objectKey))) return null;
  return { ...archive, read: (range) => store.read(objectKey, range) };
}

/** The workspace and environment an operation belongs to. */
async function findEnvironment(
  { db }: ArchiveServices['database'],
  operationId: string,
): Promise<Environment | null> {
  const row = await db
    .selectFrom('state_archive.operation')
    .select(['workspace_id as workspace', 'environment_id as environment'])
    .where('id', '=', operationId)
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Removes the archives whose time is past, and those of exports that ended otherwise than well: what a process that died
 * between two steps left is found the next time.
 */
export async function removeExpiredArchives({ database, store }: ArchiveServices): Promise<void> {
  await expireArchives(database.db);
  const operationIds = (await store.list()).map(operationIdOf);
  for (const id of await findArchivesToRemove(database.db, operationIds)) await store.remove(objectKeyOf(id));
}
