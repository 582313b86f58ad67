import pino, { type Logger } from 'pino';
import { loadOrCreateDevelopmentKey, signDevelopmentToken } from './auth/development-key.ts';
import { blameOperator, exitWith } from './base/operator-error.ts';
import { exitOnSignal, shutDownOnSignal } from './base/shut-down.ts';
import { type Config, readConfig } from './config.ts';
import { connectDatabase } from './database/connection.ts';
import { prepareControlDatabase } from './database/prepare.ts';
import { refuseUnusableDatabase } from './database/readiness.ts';
import { assertAddressIsFree, type Service, startService } from './service.ts';

const SAMPLE_SCOPES = ['state.read', 'state.export', 'state.import'];

await main();

async function main(): Promise<void> {
  // Else it would leave the embedded server behind.
  exitOnSignal();
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
    shutDownOnSignal(async () => {
      await service.close();
      await close();
    }, logger);
    await announce(config, service);
  } catch (error) {
    exitWith(error);
  }
}

/** The database of `DATABASE_URL`, prepared; without it, the embedded one with a sample history. */
async function openDatabase(config: Config, logger: Logger) {
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
