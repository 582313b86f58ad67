import pino from 'pino';
import { blameOperator, exitWith } from './base/operator-error.ts';
import { shutDownOnSignal } from './base/shut-down.ts';
import { ConfigError, readConfig } from './config.ts';
import { connectDatabase } from './database/connection.ts';
import { prepareControlDatabase } from './database/prepare.ts';
import { refuseUnusableDatabase } from './database/readiness.ts';
import { startOperating } from './operating.ts';

/** @file Works on operations beside the processes that serve requests, on the same database and store. */

try {
  // It verifies no tokens.
  const config = readConfig({ ...process.env, AUTH_DEV_KEY: 'true' });
  if (config.databaseUrl === null) {
    throw new ConfigError(
      'DATABASE_URL names the database to work on; it is not set. "npm start" works by itself on the embedded one.',
    );
  }
  if (config.workerConcurrency === 0) {
    throw new ConfigError('WORKER_CONCURRENCY is 0: there would be nothing for a worker to do.');
  }
  const logger = pino({ level: config.logLevel }, pino.destination({ dest: 2, sync: true }));
  if (config.observability.metrics?.port === null) {
    logger.warn(
      'METRICS_TOKEN is set and METRICS_PORT is not: a worker has no other port to serve metrics on.',
    );
  }
  const database = connectDatabase({ connectionString: config.databaseUrl });
  await prepareControlDatabase(database).catch(blameOperator('DATABASE_URL cannot be used'));
  await refuseUnusableDatabase(database).catch(blameOperator('DATABASE_URL cannot be used'));
  const operating = await startOperating(config, database, logger);

  shutDownOnSignal(async () => {
    operating.stopTaking();
    await operating.handBack();
    await operating.close();
    await database.close();
  }, logger);
  // What waits for work has no other handle that would keep the process.
  setInterval(() => {}, 3_600_000);
  const { metricsUrl } = operating.observability;
  if (metricsUrl !== null) process.stdout.write(`Metrics at ${metricsUrl}\n`);
  process.stdout.write(`Working on up to ${config.workerConcurrency} operations at a time.\n`);
} catch (error) {
  exitWith(error);
}
