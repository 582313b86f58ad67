import { join } from 'node:path';
import type { Logger } from 'pino';
import { DEFAULT_ARCHIVE_LIMITS } from './archive/format.ts';
import { readKilolockCredential } from './auth/kilolock-credentials.ts';
import { linkKeysOf } from './auth/link-keys.ts';
import { createLinkSigner, type LinkSigner, loadOrCreateLinkSigner } from './auth/links.ts';
import { describeError } from './base/error-log.ts';
import { blameOperator } from './base/operator-error.ts';
import type { Config } from './config.ts';
import type { KilolockDatabase } from './database/connection.ts';
import { EnvironmentDatabases } from './database/environment-databases.ts';
import type { Listener } from './database/notifications.ts';
import type { Lane } from './database/purposes.ts';
import { Inspector } from './inspection/inspector.ts';
import type { PoolUse } from './observability/metrics.ts';
import { startObservability } from './observability/observability.ts';
import { DownloadAccesses } from './operations/downloads.ts';
import { Environments } from './operations/environments.ts';
import { HOUSEKEEPING_MS, housekeep } from './operations/housekeeping.ts';
import { OperationQueue } from './operations/operation-queue.ts';
import { startSweep, sweepOperations } from './operations/operation-sweep.ts';
import { openWorkshop } from './operations/operation-work.ts';
import { OperationWorker } from './operations/operation-worker.ts';
import { type ArchiveServices, TOOL } from './operations/services.ts';
import { UploadsInFlight } from './operations/uploads-in-flight.ts';
import { openArchiveStore } from './store/archive-store.ts';
import { openScratch } from './store/scratch.ts';

/** A request may hold a snapshot up to the thread it is inspected in. */
const MIN_INSPECTIONS = 4;
const READY_THREADS = 1;
const ENVIRONMENT_DATABASES = 50;
const CONNECTIONS_AN_ENVIRONMENT = 5;
/** How long a shutdown waits until the record says that operations were handed back. */
const HAND_BACK_MS = 10_000;

const LANES: readonly Lane[] = ['reads', 'writes', 'streams', 'queue'];

const DATA_DIRECTORY = 'DATA_DIR cannot be used';

/**
 * Begins to work on operations, on a prepared control database.
 *
 * @returns what works on operations in this process, and what operations are worked on with.
 * @throws OperatorError when DATA_DIR or the database cannot be used.
 */
export async function startOperating(config: Config, database: KilolockDatabase, logger: Logger) {
  const queue = new OperationQueue(database);
  const ownDatabases = new EnvironmentDatabases({
    maxDatabases: ENVIRONMENT_DATABASES,
    maxConnectionsEach: CONNECTIONS_AN_ENVIRONMENT,
    onOpened: (database) => sweepOperations(database, queue),
  });
  const environments = new Environments(database, ownDatabases);
  const observability = await startObservability(
    { ...config.observability, host: config.host, service: TOOL, logger },
    {
      pools: () => poolUse(database, ownDatabases.opened),
      queueDepth: () => queue.depth(),
    },
  );
  const worker = new OperationWorker({
    queue,
    databaseOf: (environment) => environments.databaseOf(environment),
    logger,
    concurrency: config.workerConcurrency,
    maxRunning: config.maxOperationsPerEnvironment,
  });
  const inspector = new Inspector(Math.max(MIN_INSPECTIONS, config.workerConcurrency), READY_THREADS);
  const services: ArchiveServices = {
    environments,
    store: await openArchiveStore(config.archiveStore).catch(
      blameOperator('ARCHIVE_STORE_URL cannot be used'),
    ),
    scratch: await openScratch(join(config.dataDirectory, 'scratch')).catch(blameOperator(DATA_DIRECTORY)),
    links: await linkSigner(config),
    queue,
    worker,
    logger,
    inspector,
    readCredential: (token) => readKilolockCredential(database, config.auth.policies, token),
    accesses: new DownloadAccesses(),
    limits: { ...DEFAULT_ARCHIVE_LIMITS, maxArchiveBytes: BigInt(config.maxArchiveBytes) },
    trust: config.archiveTrust,
    signer: config.archiveSigner,
    recipients: config.archiveRecipients,
    ...config.quotas,
    uploads: new UploadsInFlight(config.quotas.maxOperationsPerPrincipal),
    retentionSeconds: config.archiveRetentionSeconds,
  };
  await sweepOperations(database, queue).catch(blameOperator('The database cannot be used'));
  await housekeep(services);
  const housekeeping = setInterval(() => void housekeep(services), HOUSEKEEPING_MS);
  housekeeping.unref();
  const endSweep = startSweep({ queue, openDatabases: () => environments.openDatabases, logger });
  worker.start(openWorkshop(services));
  const listener = listenToOthers(config, queue, worker, logger);
  return {
    services,
    observability,
    /** Takes no new operations up. Those at work go on. */
    stopTaking: () => worker.stopTaking(),
    /** Hands back what is at work, for others to take up; nothing of it is left behind. */
    handBack: () => worker.close(HAND_BACK_MS),
    /** Closes the rest. The control database is the caller's to close. */
    async close(): Promise<void> {
      clearInterval(housekeeping);
      endSweep();
      await Promise.all([listener?.close(), ownDatabases.close(), inspector.close(), observability.close()]);
    },
  };
}

/** Has the worker told at once of what other processes put into the queue, where there is a way to hear of it. */
function listenToOthers(
  { databaseDirectUrl, workerConcurrency }: Config,
  queue: OperationQueue,
  worker: OperationWorker,
  logger: Logger,
): Listener | null {
  if (databaseDirectUrl === null || workerConcurrency === 0) return null;
  return queue.listen(databaseDirectUrl, {
    onHeard: () => worker.nudge(),
    onDeaf: (error) =>
      logger.warn(
        { error: describeError(error) },
        'nothing is heard on DATABASE_DIRECT_URL; operations that other processes record are found by asking, every two seconds',
      ),
  });
}

/** The pools of the control database, each by itself, and those of environments that have their own, together. */
function poolUse(control: KilolockDatabase, own: readonly KilolockDatabase[]): PoolUse[] {
  return LANES.flatMap((lane) => [
    sumOf(`control.${lane}`, [control.pools[lane]]),
    sumOf(
      `environments.${lane}`,
      own.map(({ pools }) => pools[lane]),
    ),
  ]);
}

function sumOf(name: string, pools: readonly KilolockDatabase['pool'][]): PoolUse {
  const sum = (of: (pool: KilolockDatabase['pool']) => number) =>
    pools.reduce((total, pool) => total + of(pool), 0);
  return {
    name,
    used: sum(({ totalCount, idleCount }) => totalCount - idleCount),
    idle: sum(({ idleCount }) => idleCount),
    waiting: sum(({ waitingCount }) => waitingCount),
    max: sum(({ options }) => options.max),
  };
}

async function linkSigner({ linkKeys: [first, ...others], dataDirectory }: Config): Promise<LinkSigner> {
  if (first !== undefined) return createLinkSigner(linkKeysOf([first, ...others]));
  return loadOrCreateLinkSigner(dataDirectory).catch(blameOperator(DATA_DIRECTORY));
}
