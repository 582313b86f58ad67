import { randomUUID } from 'node:crypto';
import { access, constants, open, readFile, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { readArchiveFile } from '../archive/archive-file.ts';
import { ArchiveError } from '../archive/errors.ts';
import { SEALED_FILE_EXTENSION } from '../archive/format.ts';
import { type VerifiedArchive, verified } from '../archive/reader.ts';
import { Digested } from '../base/digested.ts';
import { isErrno } from '../base/errno.ts';
import { flush } from '../base/flush.ts';
import { archiveMembers, isSealedFile, named, type Reading } from './archive-input.ts';
import { DOCUMENTS, type FileAnswer, type OperationAnswer } from './documents.ts';
import { failure, KlError } from './endings.ts';
import { isSystemError, place, unwritable, writePrivateFile } from './files.ts';
import { isUndecided, waitForEnd } from './operations.ts';
import type { Work } from './progress.ts';
import { type Service, unexplained } from './service.ts';
import { type Connection, transfer } from './transfer.ts';

/** What is exported, and where to. */
export interface Exported {
  readonly name: string;
  readonly path: string;
  /** Of the history as it is now; null where nobody knows. */
  readonly historyDigest: string | null;
  /** What is there under the file's name may go. */
  readonly replace: boolean;
  /** The file with the keys of encrypted archives; null: there is none. */
  readonly identity: string | null;
  /** A file that turns out encrypted is called so: `.age` behind its name. */
  readonly isNamedByKind?: boolean;
  /** For whom it is encrypted beside the service's recipients; nobody unless given. */
  readonly sealing?: { readonly recipients: readonly string[]; readonly discloseHistoryDigest: boolean };
}

/** What was exported. */
export interface ExportedFile extends Pick<VerifiedArchive, 'historyDigest' | 'sha256' | 'sizeBytes'> {
  readonly path: string;
  /** Null: the file is encrypted, and there is no key to look into it. It is the one that the service made. */
  readonly archive: VerifiedArchive | null;
}

/** A link that gives no byte for this long is given up, and asked for anew. */
const STALL_MS = 30_000;

/**
 * Exports a state to a file, which appears under its name once it has been downloaded and verified whole. What was begun and
 * cut is gone on with, where the service still has the archive and the history has not changed since.
 *
 * @throws KlError with what the service, the network, the archive or the disk failed with.
 */
export async function exportState(service: Service, exported: Exported, work: Work): Promise<ExportedFile> {
  const { path, replace, identity } = exported;
  const partial = `${path}.partial`;
  const operation = (await resumed(service, exported, work)) ?? (await begin(service, exported, work));
  const { archive: file } = operation;
  if (file === null) throw failure('UNKNOWN_ANSWER', `The operation ${operation.id} has no archive.`);
  await download(service, operation.id, file, partial, work);
  const isSealed = await isSealedFile(partial);
  work.show({ step: 'verifying' });
  const reading = { signal: service.signal, identity };
  const archive = await verify(partial, file, isSealed && identity === null, reading);
  const placed = isSealed && exported.isNamedByKind ? `${path}${SEALED_FILE_EXTENSION}` : path;
  await place(partial, placed, { replace });
  await flush(dirname(placed));
  await rm(begunPath(path), { force: true });
  const { historyDigest, sha256, sizeBytes } = file;
  return { path: placed, archive, historyDigest, sha256, sizeBytes: BigInt(sizeBytes) };
}

/** Where it is kept, beside a part of a file, what that is a part of, so that the next call goes on with it. */
function begunPath(path: string): string {
  return `${path}.partial.json`;
}

/** Of which history the parts are that go together. */
function originOf({ endpoint, environment }: Service, { name }: Exported) {
  return { endpoint, environment, name };
}

/** What is kept beside a part of a file. */
type Begun = ReturnType<typeof originOf> & { readonly operationId: string };

async function begin(service: Service, exported: Exported, work: Work): Promise<OperationAnswer> {
  const { name, path, sealing } = exported;
  // Before the service has worked for nothing.
  await access(dirname(path), constants.W_OK).catch((error: unknown) => {
    throw unwritable(path, error);
  });
  await rm(`${path}.partial`, { force: true });
  work.show({ step: 'asking for the export' });
  const input = { name, ...sealing, waitSeconds: 1, idempotencyKey: randomUUID() };
  const asked = await service.change(DOCUMENTS.exportState, input);
  const operation = asked.operation ?? unexplained('began no export');
  const begun: Begun = { ...originOf(service, exported), operationId: operation.id };
  await writePrivateFile(begunPath(path), `${JSON.stringify(begun)}\n`, { replace: true });
  try {
    return await waitForEnd(service, operation, work);
  } catch (error) {
    // What failed is not waited for again.
    if (!isUndecided(error)) await rm(begunPath(path), { force: true });
    throw error;
  }
}

/** The export that an earlier call began, if its archive is there and is of the history as it is now. */
async function resumed(service: Service, exported: Exported, work: Work): Promise<OperationAnswer | null> {
  const { path, historyDigest } = exported;
  const begun = await readFile(begunPath(path), 'utf8')
    .then((text) => JSON.parse(text) as Begun)
    .catch(() => null);
  if (begun === null || historyDigest === null) return null;
  const { operationId, ...origin } = begun;
  if (!isDeepStrictEqual(origin, originOf(service, exported))) return null;
  const found = await service.ask(DOCUMENTS.operation, { id: operationId });
  if (found === null || found.status === 'FAILED' || found.status === 'CANCELLED') return null;
  const operation = await waitForEnd(service, found, work);
  const isSame = operation.status === 'SUCCEEDED' && operation.archive?.historyDigest === historyDigest;
  return isSame ? operation : null;
}

/** Downloads what is missing, with a new link whenever one has come to nothing. */
async function download(
  service: Service,
  id: string,
  file: FileAnswer,
  partial: string,
  work: Work,
): Promise<void> {
  const size = Number(file.sizeBytes);
  if ((await lengthOf(partial)) > size) await rm(partial);
  await transfer(
    service,
    {
      step: 'downloading',
      size,
      stallMs: STALL_MS,
      arrived: () => lengthOf(partial),
      async attempt(connection) {
        const found = await service.ask(DOCUMENTS.link, { id });
        const url = found?.archive?.downloadUrl;
        if (url) return receive(service, url, file, partial, connection);
        throw failure(
          'ARCHIVE_GONE',
          'The service no longer has the archive; the next call exports it anew.',
        );
      },
    },
    work,
  );
}

async function lengthOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return 0;
    throw error;
  }
}

/** One attempt: what arrives is on disk, whatever ends it. */
async function receive(
  service: Service,
  url: string,
  { sha256, sizeBytes }: FileAnswer,
  partial: string,
  { from, reach, moved }: Connection,
): Promise<number> {
  try {
    const headers = {
      ...(from > 0 && { range: `bytes=${from}-` }),
      'if-match': `"${sha256}"`,
      'accept-encoding': 'identity',
    };
    const response = await reach(url, { headers });
    const expected = from > 0 ? 206 : 200;
    if (response.status !== expected || response.body === null) {
      await response.body?.cancel();
      throw failure('UNREACHABLE', `The download was refused with status ${response.status}.`);
    }
    await using out = await open(partial, 'a', 0o600);
    let done = from;
    for await (const chunk of response.body) {
      done += chunk.length;
      if (done > Number(sizeBytes)) {
        await out.truncate(0);
        throw failure('UNREACHABLE', 'The download gave more bytes than the archive has.');
      }
      await out.writeFile(chunk);
      moved(done);
    }
    return done;
  } catch (error) {
    if (error instanceof KlError) throw error;
    throw isSystemError(error) ? unwritable(partial, error) : service.unreachable(url, error);
  }
}

/**
 * Reads the file from the first byte to the last. One that is not what the service made is removed: nothing of it is of use.
 *
 * @param isClosed whether it is encrypted, and nobody has a key here: that it is the service's file is all that can be told.
 */
async function verify(
  partial: string,
  file: FileAnswer,
  isClosed: boolean,
  reading: Reading,
): Promise<VerifiedArchive | null> {
  const refusal = (code: string, message: string, cause?: unknown) =>
    new KlError(code, message, { advice: 'Run it again; it begins anew.', cause });
  let fault = refusal(
    'ARCHIVE_DIGEST_MISMATCH',
    'What was downloaded is not the archive that the service made.',
  );
  try {
    await flush(partial);
    if (isClosed) {
      const bytes = new Digested(readArchiveFile(partial, reading));
      for await (const _ of bytes);
      if (bytes.sha256() === file.sha256) return null;
    } else {
      const archive = await verified(archiveMembers(partial, reading));
      if (archive.sha256 === file.sha256 && archive.historyDigest === file.historyDigest) return archive;
    }
  } catch (error) {
    // A key that does not fit says nothing of the file.
    if (!(error instanceof ArchiveError) || error.code === 'ARCHIVE_ENCRYPTED') throw named(partial, error);
    fault = refusal(error.code, `What was downloaded is no sound archive: ${error.message}.`, error);
  }
  await rm(partial, { force: true });
  throw fault;
}
