import { blameOperator, exitWith } from '../base/operator-error.ts';
import { ConfigError, readConfig } from '../config.ts';
import { connectDatabase } from '../database/connection.ts';
import { prepareControlDatabase } from '../database/prepare.ts';

/** @file Prepares the Kilolock database of `DATABASE_URL`: creates or updates the schema `state_archive`, nothing else. */

try {
  // Without DATABASE_URL that is what is missing, and not a way to verify tokens.
  const { databaseUrl } = readConfig({ ...process.env, AUTH_DEV_KEY: 'true' });
  if (databaseUrl === null)
    throw new ConfigError('DATABASE_URL names the database to prepare; it is not set.');
  const database = connectDatabase({ connectionString: databaseUrl, maxConnections: 2 });
  try {
    await prepareControlDatabase(database).catch(blameOperator('DATABASE_URL cannot be used'));
  } finally {
    await database.close();
  }
  process.stdout.write('The schema state_archive is up to date.\n');
} catch (error) {
  exitWith(error);
}
