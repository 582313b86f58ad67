import { join } from 'node:path';
import pino, { type Logger } from 'pino';
import { loadOrCreateDevelopmentKey, signDevelopmentToken } from './auth/development-key.ts';
import { loadSampleHistory } from './cli/sample-history.ts';
import { type Config, ConfigError, readConfig } from './config.ts';
import { connectDatabase, type KilolockDatabase } from './database/connection.ts';
import { DataDirectoryInUseError, startEmbeddedServer } from './database/embedded.ts';
import { NotKilolockDatabaseError, prepareDatabase } from './database/prepare.ts';
import { type Service, startService } from './service.ts';

const EMBEDDED_DATABASE = 'kilolock';
const SAMPLE_SCOPES = ['state.read', 'state.export', 'state.import'];

await main();

async function main(): Promise<void> {
  try {
    const config = readConfig(process.env);
    const logger = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
    const { database, close } = await openDatabase(config, logger);
    const service = await startService(config, database, logger).catch(async (error) => {
      await close();
      throw error;
    });
    closeOnSignal(service, close, logger);
    await announce(config, service);
  } catch (error) {
    if (!isForOperator(error)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

interface OpenDatabase {
  readonly database: KilolockDatabase;
  readonly close: () => Promise<void>;
}

/** The database of `DATABASE_URL`, prepared; without it, the embedded one with a sample history. */
async function openDatabase(config: Config, logger: Logger): Promise<OpenDatabase> {
  if (config.databaseUrl !== null) {
    const database = connectDatabase({ connectionString: config.databaseUrl });
    await prepareDatabase(database, { createKilolockTables: false });
    return { database, close: () => database.close() };
  }
  const server = await startEmbeddedServer({
    dataDirectory: join(config.dataDirectory, 'postgres'),
    log: (line) => logger.debug({ postgres: line }),
  });
  await server.createDatabase(EMBEDDED_DATABASE);
  const database = connectDatabase({ connectionString: server.connectionString(EMBEDDED_DATABASE) });
  await prepareDatabase(database, { createKilolockTables: true });
  await loadSampleHistory(database);
  return {
    database,
    async close() {
      await database.close();
      await server.stop();
    },
  };
}

function closeOnSignal(service: Service, closeDatabase: () => Promise<void>, logger: Logger): void {
  let isClosing = false;
  const shutDown = async (signal: NodeJS.Signals) => {
    if (isClosing) return;
    isClosing = true;
    logger.info({ signal }, 'shutting down');
    try {
      await service.close();
      await closeDatabase();
    } catch (error) {
      logger.fatal({ err: error }, 'shutting down failed');
      process.exitCode = 1;
    }
  };
  process.on('SIGINT', shutDown);
  process.on('SIGTERM', shutDown);
}

async function announce({ auth, dataDirectory, playground }: Config, { publicUrl }: Service): Promise<void> {
  const lines = [`Endpoint    ${publicUrl}/graphql`];
  if (playground) lines.push(`Playground  ${publicUrl}/playground`);
  if (auth.developmentKey) {
    const token = await signDevelopmentToken(await loadOrCreateDevelopmentKey(dataDirectory), {
      subject: 'dev@localhost',
      scopes: SAMPLE_SCOPES,
      ttlSeconds: 8 * 3600,
    });
    lines.push(`Token       ${token}`);
    lines.push('            good for 8 hours: reads, exports and imports; `npm run -s token` makes others');
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** Whether the message alone tells whoever starts the process what to do. */
function isForOperator(error: unknown): error is Error {
  return (
    error instanceof ConfigError ||
    error instanceof DataDirectoryInUseError ||
    error instanceof NotKilolockDatabaseError
  );
}
