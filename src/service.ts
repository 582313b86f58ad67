import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from 'pino';
import { verifyCredential } from './auth/credential-verifier.ts';
import { loadOrCreateDevelopmentKey } from './auth/development-key.ts';
import { createJwtVerifier, type JwtVerifier } from './auth/jwt-verifier.ts';
import { blameOperator } from './base/operator-error.ts';
import { createSecretProof } from './base/shown-secret.ts';
import type { Config } from './config.ts';
import type { KilolockDatabase } from './database/connection.ts';
import { isPrepared } from './database/prepare.ts';
import { refuseUnusableDatabase } from './database/readiness.ts';
import { createContext, type GraphqlContext } from './graphql/context.ts';
import { createSchema } from './graphql/schema.ts';
import { createHttpServer } from './http/server.ts';
import { startOperating } from './operating.ts';
import { openArchive } from './operations/downloads.ts';
import { openUpload } from './operations/uploads.ts';

/** The subgraph, listening. */
export interface Service {
  /** Where it listens, such as `http://127.0.0.1:4001`. */
  readonly url: string;
  /** Where clients reach it. */
  readonly publicUrl: string;
  /** Where metrics are served by themselves; null: nowhere. */
  readonly metricsUrl: string | null;
  /**
   * Shuts down in phases, each with its time: readiness ends, while requests are still served; operations at work are handed
   * back and leave nothing behind; requests at work finish; the rest closes. The database is the caller's to close.
   */
  close(): Promise<void>;
}

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
  const gatewayProofRequired = config.auth.gatewaySecrets.length > 0;
  const schema = createSchema({ gatewayProofRequired });
  const { policies } = config.auth;
  const credentials = { jwt: await jwtVerifier(config, logger), database, policies };
  const operating = await startOperating(config, database, logger);
  const { services, observability } = operating;

  const { maxInlineUploadBytes } = config;
  const server = await createHttpServer<GraphqlContext>({
    schema,
    authenticate: (authorization) => verifyCredential(credentials, authorization),
    isGateway: gatewayProofRequired ? createSecretProof(config.auth.gatewaySecrets) : null,
    metrics: observability.metricsRoute,
    createContext: (request) => createContext({ services, maxInlineUploadBytes }, request),
    openDownload: (...link) => openArchive(services, ...link),
    openUpload: (...link) => openUpload(services, ...link),
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
    metricsUrl: observability.metricsUrl,
    async close() {
      server.startDraining();
      operating.stopTaking();
      // Long enough for whoever sends requests here to find out, and to send them elsewhere.
      await pause(config.drainSeconds * 1000);
      // First the operations: a request may be waiting for one.
      await operating.handBack();
      await Promise.race([server.close(), pause(REQUEST_GRACE_MS, undefined, { ref: false })]);
      await operating.close();
    },
  };
}

async function jwtVerifier({ auth, dataDirectory }: Config, logger: Logger): Promise<JwtVerifier> {
  if (auth.developmentKey) {
    logger.warn(
      'Tokens signed with the development key are accepted: whoever can read it can do anything. Set AUTH_DEV_KEY=false where states are real.',
    );
  }
  return createJwtVerifier({
    developmentKey: auth.developmentKey
      ? await loadOrCreateDevelopmentKey(dataDirectory).catch(blameOperator(DATA_DIRECTORY))
      : null,
    jwks: auth.jwks,
  });
}
