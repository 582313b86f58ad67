import type { Readable } from 'node:stream';
import type { Caller } from '../history/states.ts';
import type { ObjectRange } from '../store/object-store.ts';
import { operationIdOf } from './archive-keys.ts';
import { removeArchive } from './archive-retention.ts';
import { selectorOf } from './current-caller.ts';
import type { AccessEnd } from './download-accesses.ts';
import { isStillPermitted } from './link-permission.ts';
import { OpenDatabases } from './open-databases.ts';
import { expireArchives, findExports } from './operation-lifecycle.ts';
import { type ArchiveRecord, findFinishedExport, type OperationRecord } from './operation-records.ts';
import { removeEach } from './remove-each.ts';
import type { ArchiveServices } from './services.ts';
import type { Part } from './store-parts.ts';

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

/** How much longer than it is kept a file is left alone that nobody who could be asked knows. */
const UNKNOWN_GRACE_MS = 3_600_000;
/** So many files are asked about at a time. */
const PAGE = 1_000;

/**
 * Removes the archives whose time is past by their records.
 *
 * @throws AggregateError when not every open database could be asked, after all the others were.
 */
export async function removeExpiredArchives(
  services: Pick<ArchiveServices, 'environments' | 'logger' | 'store'>,
): Promise<void> {
  const databases = new OpenDatabases(services.environments);
  for (;;) {
    const keys: string[] = [];
    await databases.ask(async (db) => void keys.push(...(await expireArchives(db, PAGE))));
    if (keys.length === 0) break;
    await removeEach(services, 'archives', keys, (key) => removeArchive(services.store, key));
  }
  databases.end();
}

/**
 * Removes from a part of the store the archives whose time is past, those of exports that ended otherwise than well, and those of
 * attempts that do not count: what a process that died between two steps left is found the next time. An archive that no
 * open database knows, when all have been asked, may be another's: it goes when it is older than an archive is kept.
 *
 * @returns where the next part begins.
 * @throws AggregateError when not every open database could be asked, after all the others were.
 */
export async function sweepArchives(
  services: Pick<ArchiveServices, 'environments' | 'logger' | 'store' | 'retentionSeconds'>,
  part: Part,
): Promise<string> {
  const { environments, store, retentionSeconds } = services;
  const databases = new OpenDatabases(environments);
  for await (const page of pagesOf(part.objects, PAGE)) {
    const unknown = new Map(page.map((object) => [object.key, object]));
    const uncounted: string[] = [];
    await databases.ask(async (db) => {
      const ids = [...unknown.keys()].map(operationIdOf);
      const known = new Map((await findExports(db, ids)).map((record) => [record.id, record]));
      for (const key of unknown.keys()) {
        const record = known.get(operationIdOf(key));
        if (record === undefined) continue;
        unknown.delete(key);
        if (!record.mayKeep(key)) uncounted.push(key);
      }
    });
    await removeEach(services, 'archives', uncounted, (key) => removeArchive(store, key));
    // What one knows that did not answer nobody else can tell.
    if (!databases.haveAnswered) continue;
    const old = [...unknown.values()]
      .filter(({ ageMs }) => ageMs >= retentionSeconds * 1000 + UNKNOWN_GRACE_MS)
      .map(({ key }) => key);
    await removeEach(services, 'archives', old, (key) => store.archives.remove(key));
  }
  databases.end();
  return part.next();
}

async function* pagesOf<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<Item[], void, void> {
  let page: Item[] = [];
  for await (const item of items) {
    if (page.push(item) < size) continue;
    yield page;
    page = [];
  }
  yield page;
}
