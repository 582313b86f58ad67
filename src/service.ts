import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import { DEFAULT_ARCHIVE_LIMITS } from './archive/format.ts';
import { createCredentialVerifier } from './auth/credential-verifier.ts';
import { loadOrCreateDevelopmentKey } from './auth/development-key.ts';
import { createGatewayProof } from './auth/gateway-secret.ts';
import { createJwtVerifier, type JwtVerifier } from './auth/jwt-verifier.ts';
import { readKilolockCredential } from './auth/kilolock-credentials.ts';
import { linkKeysOf } from './auth/link-keys.ts';
import { createLinkSigner, type LinkSigner, loadOrCreateLinkSigner } from './auth/links.ts';
import { describeError } from './base/error-log.ts';
import { blameOperator } from './base/operator-error.ts';
import type { Config } from './config.ts';
import type { KilolockDatabase } from './database/connection.ts';
import { EnvironmentDatabases } from './database/environment-databases.ts';
import { isPrepared } from './database/prepare.ts';
import { refuseUnusableDatabase } from './database/readiness.ts';
import { createContext, type GraphqlContext } from './graphql/context.ts';
import { createSchema } from './graphql/schema.ts';
import { createHttpServer } from './http/server.ts';
import { Inspector } from './inspection/inspector.ts';
import { DownloadAccesses } from './operations/download-accesses.ts';
import { openArchive, removeExpiredArchives } from './operations/downloads.ts';
import { Environments } from './operations/environments.ts';
import { failInterrupted } from './operations/operation-lifecycle.ts';
import { OperationRunner } from './operations/operation-runner.ts';
import { removeAbandonedUploads } from './operations/received-uploads.ts';
import type { ArchiveServices } from './operations/services.ts';
import { UploadsInFlight } from './operations/uploads-in-flight.ts';
import { openArchiveStore } from './store/archive-store.ts';
import { openScratch } from './store/scratch.ts';

/** The subgraph, listening. */
export interface Service {
  /** Where it listens, such as `http://127.0.0.1:4001`. */
  readonly url: string;
  /** Where clients reach it. */
  readonly publicUrl: string;
  /**
   * Shuts down in order: readiness ends, operations at work are called off and leave nothing behind, requests at work
   * finish if they do so in time. The database is the caller's to close.
   */
  close(): Promise<void>;
}

const OPERATIONS_AT_A_TIME = 4;
const READY_THREADS = 1;
const ENVIRONMENT_DATABASES = 50;
const CONNECTIONS_AN_ENVIRONMENT = 5;
const HOUSEKEEPING_MS = 10 * 60 * 1000;
/** Six times as long as between two signs of life of a process. */
const LEFTOVERS_AGE_MS = 6 * HOUSEKEEPING_MS;
/** How long a shutdown waits for requests: a client that stands still would hold it up for ever. */
const REQUEST_GRACE_MS = 10_000;

const DATA_DIRECTORY = 'DATA_DIR cannot be used';
const ADDRESS = 'HOST and PORT cannot be listened on';

/** @throws OperatorError when the service could not listen there at this moment. */
export async function assertAddressIsFree({ host, port }: Pick<Config, 'host' | 'port'>): Promise<void> {
  const server = createServer();
  await once(server.listen(port, host), 'listening').catch(blameOperator(ADDRESS));
  server.close();
  await once(server, 'close');
}

/**
 * Starts the subgraph on a prepared database.
 *
 * @throws OperatorError when DATA_DIR, the database, or HOST and PORT cannot be used.
 */
export async function startService(
  config: Config,
  database: KilolockDatabase,
  logger: Logger,
): Promise<Service> {
  const schema = createSchema({ gatewayProofRequired: config.auth.gatewaySecrets.length > 0 });
  const { policies } = config.auth;
  const verifier = createCredentialVerifier({
    jwt: await jwtVerifier(config, logger),
    database,
    policies,
  });
  const ownDatabases = new EnvironmentDatabases({
    maxDatabases: ENVIRONMENT_DATABASES,
    maxConnectionsEach: CONNECTIONS_AN_ENVIRONMENT,
    onOpened: (database) => failInterrupted(database.for('housekeeping')),
  });
  const environments = new Environments(database, ownDatabases);
  const runner = new OperationRunner({
    openDatabases: () => environments.openDatabases,
    logger,
    concurrency: OPERATIONS_AT_A_TIME,
  });
  const inspector = new Inspector(OPERATIONS_AT_A_TIME, READY_THREADS);
  const services: ArchiveServices = {
    environments,
    store: await openArchiveStore(config.archiveStore).catch(
      blameOperator('ARCHIVE_STORE_URL cannot be used'),
    ),
    scratch: await openScratch(join(config.dataDirectory, 'scratch')).catch(blameOperator(DATA_DIRECTORY)),
    links: await linkSigner(config),
    runner,
    inspector,
    readCredential: (token) => readKilolockCredential(database, policies, token),
    accesses: new DownloadAccesses(),
    limits: { ...DEFAULT_ARCHIVE_LIMITS, maxArchiveBytes: BigInt(config.maxArchiveBytes) },
    maxOperationsPerPrincipal: config.maxOperationsPerPrincipal,
    maxArchivesPerPrincipal: config.maxArchivesPerPrincipal,
    uploads: new UploadsInFlight(config.maxOperationsPerPrincipal),
    retentionSeconds: config.archiveRetentionSeconds,
  };
  await failInterrupted(database.for('housekeeping')).catch(blameOperator('The database cannot be used'));
  await housekeep(services, logger);
  const housekeeping = setInterval(() => void housekeep(services, logger), HOUSEKEEPING_MS);
  housekeeping.unref();

  const { maxInlineUploadBytes } = config;
  const server = await createHttpServer<GraphqlContext>({
    schema,
    authenticate: (authorization) => verifier.verify(authorization),
    isGateway: createGatewayProof(config.auth.gatewaySecrets),
    createContext: (request) => createContext({ services, maxInlineUploadBytes, logger }, request),
    openDownload: (...link) => openArchive(services, ...link),
    async isReady() {
      await refuseUnusableDatabase(database);
      return isPrepared(database);
    },
    logger,
    playground: config.playground,
    introspection: config.introspection,
    publicUrl: config.publicUrl,
    maxInlineUploadBytes,
  });
  const url = await server.listen(config).catch(blameOperator(ADDRESS));
  return {
    url,
    publicUrl: config.publicUrl ?? url,
    async close() {
      server.startDraining();
      clearInterval(housekeeping);
      // First the operations: a request may be waiting for one.
      await runner.close();
      await Promise.race([server.close(), pause(REQUEST_GRACE_MS, undefined, { ref: false })]);
      await Promise.all([ownDatabases.close(), inspector.close()]);
    },
  };
}

async function linkSigner({ linkKeys: [first, ...others], dataDirectory }: Config): Promise<LinkSigner> {
  if (first !== undefined) return createLinkSigner(linkKeysOf([first, ...others]));
  return loadOrCreateLinkSigner(dataDirectory).catch(blameOperator(DATA_DIRECTORY));
}

async function jwtVerifier({ auth, dataDirectory }: Config, logger: Logger): Promise<JwtVerifier> {
  if (auth.developmentKey) {
    logger.warn(
      'Tokens signed with the development key are accepted: whoever can read it can do anything. Set AUTH_DEV_KEY=false where states are real.',
    );
  }
  const { jwksUrl, issuer, audience } = auth;
  return createJwtVerifier({
    developmentKey: auth.developmentKey
      ? await loadOrCreateDevelopmentKey(dataDirectory).catch(blameOperator(DATA_DIRECTORY))
      : null,
    jwks: jwksUrl && issuer && audience ? { url: jwksUrl, issuer, audience } : null,
  });
}

/** Removes what is past its time, and what a process that died left half done. */
async function housekeep(services: ArchiveServices, logger: Logger): Promise<void> {
  for (const work of [
    () => removeExpiredArchives(services),
    () => removeAbandonedUploads(services),
    () => services.store.archives.removeLeftovers(LEFTOVERS_AGE_MS),
    () => services.store.uploads.removeLeftovers(LEFTOVERS_AGE_MS),
    () => services.scratch.removeLeftovers(LEFTOVERS_AGE_MS),
  ]) {
    await work().catch((error: unknown) => {
      logger.warn({ error: describeError(error) }, 'housekeeping failed; it is tried again later');
    });
  }
}
