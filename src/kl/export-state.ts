import { randomUUID } from 'node:crypto';
import { link, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ArchiveError } from '../archive/errors.ts';
import { SEALED_FILE_EXTENSION } from '../archive/format.ts';
import { type VerifiedArchive, verified } from '../archive/reader.ts';
import { isErrno } from '../base/errno.ts';
import { flush } from '../base/flush.ts';
import { archiveMembers, named, type Reading } from './archive-input.ts';
import { DOCUMENTS, type FileAnswer, type OperationAnswer, type UserError } from './documents.ts';
import { failure, KlError } from './endings.ts';
import { findOperation, waitForEnd } from './operations.ts';
import { isSystemError, reasonOf, requirePlace, writePrivateFile } from './private-file.ts';
import type { Work } from './progress.ts';
import { fileDigest, isSealedFile } from './sealed-input.ts';
import { reach, refuseErrors, type Service, unreachable } from './service.ts';

/** What is kept beside a part of a file, so that the next call goes on with it. */
interface Begun {
  readonly endpoint: string;
  readonly environment: string | null;
  readonly operationId: string;
  readonly name: string;
}

/** What is exported, and where to. */
export interface Exported {
  readonly name: string;
  readonly path: string;
  /** Of the history as it is now; null where nobody knows. */
  readonly historyDigest: string | null;
  /** Whether a file that turns out encrypted is called so: `.age` behind its name. */
  readonly isNamedByKind: boolean;
  /** For whom it is encrypted beside the service's recipients; null: nobody was named. */
  readonly sealing: {
    readonly recipients: readonly string[];
    readonly discloseHistoryDigest: boolean;
  } | null;
}

/** What was exported. */
export interface ExportedFile extends Pick<VerifiedArchive, 'historyDigest' | 'sha256' | 'sizeBytes'> {
  readonly path: string;
  /** Null: the file is encrypted, and there is no key to look into it. It is the one that the service made. */
  readonly archive: VerifiedArchive | null;
}

/** How a state is exported. */
interface ExportOptions extends Reading {
  /** What is there under the file's name may go. */
  readonly replace: boolean;
  readonly work: Work;
}

/** A link that gives no byte for this long is given up, and asked for anew. */
const STALL_MS = 30_000;

/**
 * Exports a state to a file, which appears under its name once it has been downloaded and verified whole. What was begun and
 * cut is gone on with, where the service still has the archive and the history has not changed since.
 *
 * @throws KlError with what the service, the network, the archive or the disk failed with.
 */
export async function exportState(
  service: Service,
  exported: Exported,
  { replace, work, ...reading }: ExportOptions,
): Promise<ExportedFile> {
  const { path, isNamedByKind } = exported;
  const partial = `${path}.partial`;
  const operation = (await resumed(service, exported, work)) ?? (await begin(service, exported, work));
  const { archive: file } = operation;
  if (file === null) throw failure('UNKNOWN_ANSWER', `The operation ${operation.id} has no archive.`);
  await download(service, { id: operation.id, file, partial }, work, reading.signal);
  const isSealed = await isSealedFile(partial);
  const archive = await verify(partial, file, isSealed && reading.identity === null, work, reading);
  const placed = isSealed && isNamedByKind ? `${path}${SEALED_FILE_EXTENSION}` : path;
  await place(partial, placed, replace);
  await rm(begunPath(path), { force: true });
  const { historyDigest, sha256, sizeBytes } = file;
  return { path: placed, archive, historyDigest, sha256, sizeBytes: BigInt(sizeBytes) };
}

function begunPath(path: string): string {
  return `${path}.partial.json`;
}

async function begin(
  service: Service,
  { name, path, sealing }: Exported,
  work: Work,
): Promise<OperationAnswer> {
  // Before the service has worked for nothing.
  await requirePlace(path);
  await rm(`${path}.partial`, { force: true });
  work.show({ step: 'asking for the export' });
  const { exportStateArchive } = await service.ask<{
    exportStateArchive: {
      readonly operation: OperationAnswer | null;
      readonly userErrors: readonly UserError[];
    };
  }>(sealing === null ? DOCUMENTS.exportState : DOCUMENTS.exportSealedState, {
    name,
    key: randomUUID(),
    ...sealing,
  });
  const { operation } = exportStateArchive;
  if (operation === null) {
    refuseErrors(exportStateArchive);
    throw failure('UNKNOWN_ANSWER', 'The service began no export, and says nothing of why.');
  }
  const { endpoint, environment } = service;
  const begun: Begun = { endpoint, environment, operationId: operation.id, name };
  await writePrivateFile(begunPath(path), `${JSON.stringify(begun)}\n`, { replace: true });
  try {
    return await waitForEnd(service, operation, work);
  } catch (error) {
    // What failed is not waited for again.
    const isFailed =
      error instanceof KlError && !['INTERRUPTED', 'UNREACHABLE', 'UNAVAILABLE'].includes(error.code);
    if (isFailed) await rm(begunPath(path), { force: true });
    throw error;
  }
}

/** The export that an earlier call began, if its archive is there and is of the history as it is now. */
async function resumed(
  service: Service,
  { name, path, historyDigest }: Exported,
  work: Work,
): Promise<OperationAnswer | null> {
  const begun = await readBegun(begunPath(path));
  if (begun === null || historyDigest === null) return null;
  if (begun.endpoint !== service.endpoint || begun.environment !== service.environment) return null;
  if (begun.name !== name) return null;
  const found = await findOperation(service, begun.operationId);
  if (found === null || found.status === 'FAILED' || found.status === 'CANCELLED') return null;
  const operation = await waitForEnd(service, found, work);
  const isSame = operation.status === 'SUCCEEDED' && operation.archive?.historyDigest === historyDigest;
  return isSame ? operation : null;
}

async function readBegun(path: string): Promise<Begun | null> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Begun;
  } catch {
    return null;
  }
}

interface Wanted {
  readonly id: string;
  readonly file: FileAnswer;
  readonly partial: string;
}

/** Downloads what is missing, with a new link whenever one has come to nothing. */
async function download(service: Service, wanted: Wanted, work: Work, signal: AbortSignal): Promise<void> {
  const size = BigInt(wanted.file.sizeBytes);
  for (;;) {
    const before = await lengthOf(wanted.partial);
    if (before === size) return;
    if (before > size) await rm(wanted.partial, { force: true });
    // A transfer that moves is not given up, however often it is cut: only one without a byte counts as a failure.
    await service.patiently(async () => {
      const { stateArchiveOperation } = await service.ask<{
        stateArchiveOperation: { readonly archive: { readonly downloadUrl: string | null } | null } | null;
      }>(DOCUMENTS.link, { id: wanted.id });
      const url = stateArchiveOperation?.archive?.downloadUrl;
      if (url === null || url === undefined) {
        throw failure(
          'ARCHIVE_GONE',
          'The service no longer has the archive; the next call exports it anew.',
        );
      }
      const at = await lengthOf(wanted.partial);
      try {
        await receive(url, wanted, work, signal);
      } catch (error) {
        if (signal.aborted || (await lengthOf(wanted.partial)) === at) throw error;
      }
    });
  }
}

async function lengthOf(path: string): Promise<bigint> {
  try {
    return (await stat(path, { bigint: true })).size;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return 0n;
    throw error;
  }
}

/** One attempt: what arrives is on disk, whatever ends it. */
async function receive(
  url: string,
  { file, partial }: Wanted,
  work: Work,
  signal: AbortSignal,
): Promise<void> {
  const from = await lengthOf(partial);
  const stall = new AbortController();
  const timer = setTimeout(() => stall.abort(new DOMException('stalled', 'TimeoutError')), STALL_MS);
  const total = Number(file.sizeBytes);
  try {
    const headers = {
      ...(from > 0n && { range: `bytes=${from}-` }),
      'if-match': `"${file.sha256}"`,
      'accept-encoding': 'identity',
    };
    const response = await reach(url, { headers, signal: AbortSignal.any([signal, stall.signal]) }, signal);
    const expected = from > 0n ? 206 : 200;
    if (response.status !== expected || response.body === null) {
      await response.body?.cancel();
      throw failure('UNREACHABLE', `The download was refused with status ${response.status}.`);
    }
    await using out = await open(partial, 'a', 0o600);
    let done = Number(from);
    for await (const chunk of response.body) {
      timer.refresh();
      if (done + chunk.length > total) {
        await out.truncate(0);
        throw failure('UNREACHABLE', 'The download gave more bytes than the archive has.');
      }
      await out.writeFile(chunk);
      done += chunk.length;
      work.show({ step: 'downloading', bytes: { done, total } });
    }
  } catch (error) {
    if (error instanceof KlError) throw error;
    if (isErrno(error, 'ENOSPC'))
      throw failure('WRITE_FAILED', `There is no room for ${partial}.`, { cause: error });
    if (isSystemError(error))
      throw failure('WRITE_FAILED', `${partial} cannot be written (${reasonOf(error)}).`, { cause: error });
    throw unreachable(url, error, signal);
  } finally {
    clearTimeout(timer);
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
  work: Work,
  reading: Reading,
): Promise<VerifiedArchive | null> {
  work.show({ step: 'verifying' });
  try {
    await flush(partial);
    if (isClosed) {
      if ((await fileDigest(partial, reading.signal)).sha256 === file.sha256) return null;
    } else {
      const archive = await verified(archiveMembers(partial, reading));
      if (archive.sha256 === file.sha256 && archive.historyDigest === file.historyDigest) return archive;
    }
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error;
    // A key that does not fit says nothing of the file.
    if (error.code === 'ARCHIVE_ENCRYPTED') throw named(partial, error);
    await rm(partial, { force: true });
    throw new KlError(error.code, `What was downloaded is no sound archive: ${error.message}.`, {
      advice: 'Run it again; it begins anew.',
      cause: error,
    });
  }
  await rm(partial, { force: true });
  throw new KlError(
    'ARCHIVE_DIGEST_MISMATCH',
    'What was downloaded is not the archive that the service made.',
    {
      advice: 'Run it again; it begins anew.',
    },
  );
}

/** Gives the file its name; one that has appeared there meanwhile is left alone unless it may be replaced. */
async function place(partial: string, path: string, replace: boolean): Promise<void> {
  if (replace) await rename(partial, path);
  else {
    try {
      await link(partial, path);
      await rm(partial);
    } catch (error) {
      if (isErrno(error, 'EEXIST')) {
        throw failure('FILE_EXISTS', `${path} is there already.`, {
          advice: 'Give another name, or --force to replace it.',
        });
      }
      // There are file systems without hard links.
      await rename(partial, path);
    }
  }
  await flush(dirname(path));
}
