import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { chmod, copyFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { DEFAULT_ARCHIVE_LIMITS } from '../../../src/archive/format.ts';
import { TRUST_NOBODY } from '../../../src/archive/signing-keys.ts';
import { type CredentialPolicies, readKilolockCredential } from '../../../src/auth/kilolock-credentials.ts';
import { loadOrCreateLinkSigner } from '../../../src/auth/links.ts';
import { type Principal, SCOPES } from '../../../src/auth/principal.ts';
import type { KilolockDatabase } from '../../../src/database/connection.ts';
import { EnvironmentDatabases } from '../../../src/database/environment-databases.ts';
import { findNamespace, type NamespaceSelector } from '../../../src/history/namespace.ts';
import type { Caller } from '../../../src/history/states.ts';
import { Inspector } from '../../../src/inspection/inspector.ts';
import { USUAL_RETENTION } from '../../../src/operations/archive-retention.ts';
import { DownloadAccesses } from '../../../src/operations/downloads.ts';
import { Environments, type OpenEnvironment } from '../../../src/operations/environments.ts';
import { type ExportOptions, exportStateArchive } from '../../../src/operations/export-state-archive.ts';
import { type ImportRequest, importStateArchive } from '../../../src/operations/import-state-archive.ts';
import { type ArchiveQuota, insertOperation } from '../../../src/operations/operation-admission.ts';
import { type Job, OperationQueue } from '../../../src/operations/operation-queue.ts';
import { findOperations, type OperationRecord } from '../../../src/operations/operation-records.ts';
import { openWorkshop } from '../../../src/operations/operation-work.ts';
import { OperationWorker } from '../../../src/operations/operation-worker.ts';
import type { ArchiveServices } from '../../../src/operations/services.ts';
import { type OperationOptions, waitForEnd } from '../../../src/operations/start-operation.ts';
import { UploadsInFlight } from '../../../src/operations/uploads-in-flight.ts';
import { toUserError, type UserError } from '../../../src/operations/user-error.ts';
import { type ArchiveStoreLocation, openArchiveStore } from '../../../src/store/archive-store.ts';
import { openScratch } from '../../../src/store/scratch.ts';
import { createTestDatabase } from '../../support/database.ts';
import { filesBelow, noFilesBelow } from '../../support/files-below.ts';
import { until } from '../../support/until.ts';

/** A database and the operations on it, without the HTTP in front. */
export interface Backend {
  readonly database: KilolockDatabase;
  readonly connectionString: string;
  readonly services: ArchiveServices;
  /** Where archives are kept, and files on their way in. */
  readonly storeDirectory: string;
  /** What is being worked on. */
  readonly scratchDirectory: string;
  /** The rows of a statement of the test's own; unchecked. */
  // biome-ignore lint/suspicious/noExplicitAny: rows of every shape
  query(text: string, values?: readonly unknown[]): Promise<any[]>;
  /** Gives nothing of the queue out until what it returns is called. */
  holdQueue(): () => void;
  /** Ends the worker, as a shutdown does, and has another take its place when what it returns is called. */
  closeWorker(): Promise<() => void>;
  /** Stops the worker, drops the database and removes the files. Call it in `afterAll`. */
  close(): Promise<void>;
}

/** What Kilolock's own tokens may do: everything in their environment. */
export const POLICIES: CredentialPolicies = {
  token: { export: true, import: true },
  owner: { export: true, import: true },
};

/**
 * Opens a backend on a database of its own, without states.
 *
 * @param queueOn the database that the queue is asked on, with its faults.
 * @param quota what an environment may keep, when it is not as much as it likes.
 * @param store where archives and uploads are kept, when it is not a directory.
 */
export async function openBackend(
  queueOn: (database: KilolockDatabase) => KilolockDatabase = (database) => database,
  quota: Partial<ArchiveQuota> = {},
  store: ArchiveStoreLocation | null = null,
): Promise<Backend> {
  const directory = await mkdtemp(join(tmpdir(), 'state-archive-'));
  const given = await createTestDatabase();
  const storeDirectory = join(directory, 'store');
  const scratchDirectory = join(directory, 'scratch');
  const { database } = given;
  const environments = new GivenEnvironments(
    database,
    new EnvironmentDatabases({ maxDatabases: 2, maxConnectionsEach: 2, onOpened: async () => {} }),
  );
  const queue = new HeldQueue(queueOn(database));
  let worker = newWorker(queue, environments);
  const services: ArchiveServices = {
    environments,
    store: await openArchiveStore(store ?? { kind: 'file', directory: storeDirectory }),
    scratch: await openScratch(scratchDirectory),
    links: await loadOrCreateLinkSigner(directory),
    queue,
    get worker() {
      return worker;
    },
    logger: SILENT,
    inspector: new Inspector(4, 0),
    readCredential: (token) => readKilolockCredential(database, POLICIES, token),
    accesses: new DownloadAccesses(),
    limits: DEFAULT_ARCHIVE_LIMITS,
    trust: TRUST_NOBODY,
    signer: null,
    recipients: [],
    maxOperationsPerPrincipal: 100,
    maxArchivesPerPrincipal: 100,
    maxArchives: 10_000,
    maxArchiveBytesKept: 1e12,
    ...quota,
    maxUploadsPerPrincipal: 100,
    maxUploadBytesPerPrincipal: 1e12,
    uploads: new UploadsInFlight(100),
    retentionSeconds: 3600,
  };
  worker.start(openWorkshop(services));
  return {
    database,
    connectionString: given.connectionString,
    services,
    storeDirectory,
    scratchDirectory,
    query: async (text, values = []) => (await database.pool.query(text, [...values])).rows,
    holdQueue() {
      queue.isHeld = true;
      return () => {
        queue.isHeld = false;
        worker.nudge();
      };
    },
    async closeWorker() {
      await worker.close(60_000);
      return () => {
        worker = newWorker(queue, environments);
        worker.start(openWorkshop(services));
      };
    },
    async close() {
      await worker.close(60_000);
      await services.inspector.close();
      await given.drop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const SILENT = pino({ level: 'silent' });

/** A queue that can be kept from giving anything out. */
class HeldQueue extends OperationQueue {
  isHeld = false;

  override async take(count: number): Promise<Job[]> {
    return this.isHeld ? [] : super.take(count);
  }
}

/** Environments whose work is done on the database that whoever asked for it last was given, with its faults. */
class GivenEnvironments extends Environments {
  readonly #given = new Map<string, KilolockDatabase>();

  give({ namespace, database }: Caller): void {
    this.#given.set(`${namespace.workspace}/${namespace.environment}`, database);
  }

  override async open(selector: NamespaceSelector): Promise<OpenEnvironment | null> {
    const found = await super.open(selector);
    const given = this.#given.get(`${selector?.workspace}/${selector?.environment}`);
    return found && given ? { ...found, database: given } : found;
  }
}

/** A worker that logs nothing. */
function newWorker(queue: OperationQueue, environments: Environments): OperationWorker {
  return new OperationWorker({
    queue,
    databaseOf: (environment) => environments.databaseOf(environment),
    logger: SILENT,
    concurrency: 4,
    maxRunning: 100,
  });
}

/** What a new workspace is made with. */
export interface WorkspaceOptions {
  readonly maxStateResources?: number;
  readonly maxEnvironmentResources?: number;
  readonly lockDefault?: 'auto' | 'vanilla' | 'kilolock';
}

/** A new workspace with one environment, and somebody in it who may do everything. */
export async function createCaller(
  { database }: Pick<Backend, 'database'>,
  options: WorkspaceOptions = {},
): Promise<Caller> {
  const workspace = `ws_${randomBytes(6).toString('hex')}`;
  await database.pool.query(
    `insert into tenants (workspace_id, slug, name, max_state_resources, max_environment_resources)
     values ($1, $1, $1, $2, $3)`,
    [workspace, options.maxStateResources ?? 0, options.maxEnvironmentResources ?? 0],
  );
  return createEnvironment({ database }, workspace, options);
}

/** Another environment of a workspace, and somebody in it who may do everything. */
export async function createEnvironment(
  { database }: Pick<Backend, 'database'>,
  workspace: string,
  options: Pick<WorkspaceOptions, 'lockDefault'> & { environment?: string } = {},
): Promise<Caller> {
  const environment = options.environment ?? `env_${randomBytes(6).toString('hex')}`;
  await database.pool.query(
    `insert into environments (tenant_id, env_public_id, slug, state_lock_default_mode)
     select id, $2, $2, $3 from tenants where workspace_id = $1`,
    [workspace, environment, options.lockDefault ?? 'auto'],
  );
  const namespace = await findNamespace(database.for('record'), { workspace, environment });
  if (namespace === null) throw new Error('The new environment is not there.');
  return {
    namespace,
    database,
    supportReason: null,
    principal: {
      subject: `user@${workspace}`,
      actor: 'Zoë Öst',
      scopes: new Set(SCOPES),
      workspace,
      environment,
      statePatterns: null,
    },
  };
}

/** The same caller, with another credential. */
export function withPrincipal(caller: Caller, changes: Partial<Principal>): Caller {
  return { ...caller, principal: { ...caller.principal, ...changes } };
}

const REQUEST_ID = 'request-1';
const DEFAULTS: OperationOptions = { waitSeconds: 25, idempotencyKey: null };
/** Longer than anything takes, however busy the machine. */
const PATIENCE_MS = 300_000;

/** Exports a state and waits for the end, unless the options say otherwise. Refusals are thrown. */
export async function runExport(
  { services }: Pick<Backend, 'services'>,
  caller: Caller,
  label: string,
  options: Partial<ExportOptions> = {},
): Promise<OperationRecord> {
  giveDatabase(services, caller);
  const request = { caller, requestId: REQUEST_ID };
  const id = await exportStateArchive(services, request, label, {
    ...DEFAULTS,
    ...USUAL_RETENTION,
    ...options,
  });
  if (options.waitSeconds === undefined) await ended(services, caller, id);
  return operationOf({ services }, caller, id);
}

/** Records an export that nobody queues, and gives its id. */
export async function recordExport(
  { database }: Pick<Backend, 'database'>,
  caller: Caller,
  label: string,
): Promise<string> {
  const id = randomUUID();
  await insertOperation(database.for('record'), caller, {
    id,
    kind: 'EXPORT',
    label,
    stateName: caller.namespace.namePrefix + label,
    stateId: null,
    archiveSha256: null,
    requestId: REQUEST_ID,
    idempotency: null,
    order: { kind: 'EXPORT' },
  });
  return id;
}

/** The archive of an export that succeeded. */
export function archivePath(
  { storeDirectory }: Pick<Backend, 'storeDirectory'>,
  operation: OperationRecord,
): string {
  if (operation.archive?.objectKey == null) {
    throw new Error(`The export ${operation.status}: ${operation.error?.message}`);
  }
  return join(storeDirectory, 'archives', operation.archive.objectKey);
}

/**
 * The path of an archive of a state in a workspace of its own.
 *
 * @param fill posts its versions.
 */
export async function archiveOfOthers(
  backend: Backend,
  label: string,
  fill: (database: KilolockDatabase, owner: Caller, label: string) => Promise<unknown>,
): Promise<string> {
  const owner = await createCaller(backend);
  await fill(backend.database, owner, label);
  return archivePath(backend, await runExport(backend, owner, label));
}

/** Imports a copy of the file at `path` and waits for the end, unless the input says otherwise. Refusals are thrown. */
export async function runImport(
  { services }: Pick<Backend, 'services'>,
  caller: Caller,
  path: string,
  input: Partial<ImportRequest> = {},
): Promise<OperationRecord> {
  const staged = services.scratch.path();
  await copyFile(path, staged);
  await chmod(staged, 0o600);
  const bytes = await readFile(staged);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const file = { path: staged, sha256, sizeBytes: BigInt(bytes.length), fileName: 'upload.klstate' };
  giveDatabase(services, caller);
  const id = await importStateArchive(services, { caller, requestId: REQUEST_ID }, file, {
    ...DEFAULTS,
    label: null,
    onConflict: { kind: 'REFUSE' },
    allowSharedLineage: false,
    dryRun: false,
    expectedSha256: null,
    ...input,
  });
  if (input.waitSeconds === undefined) await ended(services, caller, id);
  return operationOf({ services }, caller, id);
}

/** Has operations of the caller's environment worked on with the caller's database, and the faults it has. */
function giveDatabase({ environments }: ArchiveServices, caller: Caller): void {
  if (environments instanceof GivenEnvironments) environments.give(caller);
}

/**
 * Waits until an operation has ended, however long that takes, and until nobody is at it any more: its files, and the record of
 * what was received for it, go when its end is on record, and its job goes behind them.
 */
export async function ended(services: ArchiveServices, caller: Caller, id: string): Promise<void> {
  await waitForEnd(services, caller, id, PATIENCE_MS);
  const [control] = services.environments.openDatabases;
  const jobs = () => control?.pool.query('select from state_archive_queue.job where id = $1', [id]);
  await until(async () => (await jobs())?.rowCount === 0);
}

/** An operation as its caller reads it. */
export async function operationOf(
  _backend: Pick<Backend, 'services'>,
  caller: Caller,
  id: string,
): Promise<OperationRecord> {
  const operation = (await findOperations(caller.database.for('read'), caller, [id])).get(id);
  if (operation === undefined) throw new Error(`There is no operation ${id}.`);
  return operation;
}

/** The id of the state an operation exported or restored. */
export function stateIdOf(operation: OperationRecord): string {
  if (operation.stateId === null) {
    throw new Error(
      `The operation ${operation.status}: ${operation.error?.code} ${operation.error?.message}`,
    );
  }
  return operation.stateId;
}

/** Why something was refused, whether before there was an operation or in it. */
export async function refusalOf(outcome: Promise<OperationRecord>): Promise<UserError> {
  let operation: OperationRecord;
  try {
    operation = await outcome;
  } catch (error) {
    const told = toUserError(error);
    if (told === null) throw error;
    return told;
  }
  if (operation.error === null) throw new Error(`It was not refused: ${operation.status}.`);
  return operation.error;
}

/** The names of all files a backend keeps, those of archives and those of work that is not over. */
export async function storedFiles({
  storeDirectory,
  scratchDirectory,
}: Pick<Backend, 'storeDirectory' | 'scratchDirectory'>) {
  return {
    archives: (await readdir(join(storeDirectory, 'archives'))).sort(),
    underWay: [
      ...(await filesBelow(join(storeDirectory, 'uploads'))),
      ...(await filesBelow(scratchDirectory)),
    ],
  };
}

/** Waits until nothing that was received, or is worked on, lies anywhere. */
export function nothingUnderWay({
  storeDirectory,
  scratchDirectory,
}: Pick<Backend, 'storeDirectory' | 'scratchDirectory'>): Promise<void> {
  return noFilesBelow(join(storeDirectory, 'uploads'), scratchDirectory);
}
