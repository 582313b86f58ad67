import pino, { type Logger } from 'pino';
import { loadOrCreateDevelopmentKey, signDevelopmentToken } from './auth/development-key.ts';
import { describeError } from './base/error-log.ts';
import { blameOperator, exitWith } from './base/operator-error.ts';
import { type Config, readConfig } from './config.ts';
import { connectDatabase, type KilolockDatabase } from './database/connection.ts';
import { prepareControlDatabase } from './database/prepare.ts';
import { refuseUnusableDatabase } from './database/readiness.ts';
import { assertAddressIsFree, type Service, startService } from './service.ts';

const SAMPLE_SCOPES = ['state.read', 'state.export', 'state.import'];
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

await main();

async function main(): Promise<void> {
  // Without a listener a signal would end the process past its exit handlers, and leave the embedded server behind.
  for (const signal of SIGNALS) process.on(signal, exitAtOnce);
  try {
    const config = readConfig(process.env);
    const logger = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
    // Before anything is made that would be in vain.
    await assertAddressIsFree(config);
    const { database, close } = await openDatabase(config, logger);
    const service = await startService(config, database, logger).catch(async (error) => {
      await close();
      throw error;
    });
    closeOnSignal(service, close, logger);
    await announce(config, service);
  } catch (error) {
    exitWith(error);
  }
}

function exitAtOnce(): void {
  process.exit(1);
}

interface OpenDatabase {
  readonly database: KilolockDatabase;
  readonly close: () => Promise<void>;
}

/** The database of `DATABASE_URL`, prepared; without it, the embedded one with a sample history. */
async function openDatabase(config: Config, logger: Logger): Promise<OpenDatabase> {
  if (config.databaseUrl === null) {
    // biome-ignore lint/style/noRestrictedImports: the one way into development/, which nothing else needs
    const { openDevelopmentDatabase } = await import('./development/database.ts');
    return openDevelopmentDatabase(config.dataDirectory, {
      log: (line) => logger.debug({ postgres: line }),
      onDeath: exitWith,
    });
  }
  const database = connectDatabase({ connectionString: config.databaseUrl });
  await prepareControlDatabase(database).catch(blameOperator('DATABASE_URL cannot be used'));
  await refuseUnusableDatabase(database).catch(blameOperator('DATABASE_URL cannot be used'));
  return { database, close: () => database.close() };
}

/** Shuts down at the first signal; a second one does not wait for that. */
function closeOnSignal(service: Service, closeDatabase: () => Promise<void>, logger: Logger): void {
  const shutDown = async (signal: NodeJS.Signals) => {
    for (const each of SIGNALS) process.off(each, shutDown).on(each, exitAtOnce);
    logger.info({ signal }, 'shutting down');
    try {
      await service.close();
      await closeDatabase();
    } catch (error) {
      logger.fatal({ error: describeError(error) }, 'shutting down failed');
      process.exit(1);
    }
    // Connections of clients that stand still would keep the process.
    process.exit();
  };
  for (const signal of SIGNALS) process.off(signal, exitAtOnce).on(signal, shutDown);
}

async function announce(
  { auth, databaseUrl, dataDirectory, playground }: Config,
  { publicUrl, metricsUrl }: Service,
): Promise<void> {
  const lines = [`Endpoint    ${publicUrl}/graphql`];
  if (playground) lines.push(`Playground  ${publicUrl}/playground`);
  if (metricsUrl !== null) lines.push(`Metrics     ${metricsUrl}`);
  if (auth.developmentKey) {
    const token = await signDevelopmentToken(await loadOrCreateDevelopmentKey(dataDirectory), {
      subject: 'dev@localhost',
      scopes: SAMPLE_SCOPES,
      ttlSeconds: 8 * 3600,
    });
    lines.push(`Token       ${token}`);
    lines.push('            good for 8 hours: reads, exports and imports; `npm run -s token` makes others');
  }
  if (databaseUrl === null) {
    lines.push(
      'Next        open the playground and ask for the sample state demo/network, or follow "A first session" in README.md',
    );
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}
