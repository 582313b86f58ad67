import { setTimeout as pause } from 'node:timers/promises';
import { download } from './graphql-client.ts';
import type { BenchService } from './service.ts';

/** An export or import did not succeed. */
export class JobFailedError extends Error {
  override readonly name = 'JobFailedError';
}

/** What the bench wants to know of an operation. */
interface Operation {
  readonly id: string;
  readonly status: string;
  readonly error: Problem | null;
  readonly archive: {
    readonly sizeBytes: string;
    readonly historyDigest: string;
    readonly downloadUrl: string | null;
  } | null;
}

interface Problem {
  readonly code: string;
  readonly message: string;
}

interface Payload {
  readonly operation: Operation | null;
  readonly userErrors: readonly Problem[];
}

const POLL_MS = 50;
const OPERATION = 'id status error { code message } archive { sizeBytes historyDigest downloadUrl }';
const PAYLOAD = `{ operation { ${OPERATION} } userErrors { code message } }`;

const EXPORT = `mutation ($name: String!) { started: exportStateArchive(input: { name: $name, waitSeconds: 25 }) ${PAYLOAD} }`;

const IMPORT = `mutation ($file: Upload!, $name: String!, $dryRun: Boolean!) {
  started: importStateArchive(
    input: { file: $file, name: $name, dryRun: $dryRun, allowSharedLineage: true, waitSeconds: 25 }
  ) ${PAYLOAD}
}`;

const PROGRESS = `query ($id: ID!) { stateArchiveOperation(id: $id) { ${OPERATION} } }`;

const PREVIEW = `query ($name: String!) {
  stateArchive(name: $name) {
    lineage
    manifest {
      currentSerial currentVersionId firstSerial lastSerial versionCount tagCount eventCount resourceSpanCount rawBytes
      historyDigest sources terraformVersions firstCreatedAt lastCreatedAt
    }
  }
}`;

/** What an export made. */
export interface ExportedArchive {
  readonly sizeBytes: number;
  readonly historyDigest: string;
  /** Saves it. */
  save(path: string): Promise<void>;
}

/**
 * Exports a state and waits for the end.
 *
 * @throws JobFailedError when there is no archive in the end.
 */
export async function exportArchive(service: BenchService, name: string): Promise<ExportedArchive> {
  const { started } = await service.client.run<{ started: Payload }>(EXPORT, { name });
  const { archive } = await finished(service, started);
  if (archive === null) throw new JobFailedError('The export made no archive.');
  const { sizeBytes, historyDigest, downloadUrl } = archive;
  return {
    sizeBytes: Number(sizeBytes),
    historyDigest,
    async save(path) {
      if (downloadUrl === null) throw new JobFailedError('The archive cannot be downloaded.');
      await download(downloadUrl, path);
    },
  };
}

/**
 * Imports an archive under a name, or tries whether it could be, and waits for the end.
 *
 * @throws JobFailedError when it was not imported.
 */
export async function importArchive(
  service: BenchService,
  path: string,
  { name, dryRun = false }: { readonly name: string; readonly dryRun?: boolean },
): Promise<void> {
  const file = { path, name: 'history.klstate' };
  const { started } = await service.client.run<{ started: Payload }>(IMPORT, { name, dryRun }, file);
  await finished(service, started);
}

/** Asks for what an archive of a state would say of itself; the history's digest. */
export async function preview(service: BenchService, name: string): Promise<string> {
  const { stateArchive } = await service.client.run<{
    stateArchive: { manifest: { historyDigest: string } } | null;
  }>(PREVIEW, { name });
  if (stateArchive === null) throw new JobFailedError(`There is no state ${name}.`);
  return stateArchive.manifest.historyDigest;
}

/** Asks for the names of the states: about the least one can ask for. */
export async function listStates(service: BenchService): Promise<void> {
  await service.client.run('{ stateArchives { nodes { name } } }', {});
}

async function finished(service: BenchService, { operation, userErrors }: Payload): Promise<Operation> {
  const [refusal] = userErrors;
  if (operation === null || refusal !== undefined) throw failure(refusal ?? null);
  let last = operation;
  while (last.status === 'PENDING' || last.status === 'RUNNING') {
    await pause(POLL_MS);
    const { stateArchiveOperation } = await service.client.run<{ stateArchiveOperation: Operation }>(
      PROGRESS,
      {
        id: operation.id,
      },
    );
    last = stateArchiveOperation;
  }
  if (last.status !== 'SUCCEEDED') throw failure(last.error);
  return last;
}

function failure(problem: Problem | null): JobFailedError {
  return new JobFailedError(
    problem === null ? 'It failed without a reason.' : `${problem.code}: ${problem.message}`,
  );
}
