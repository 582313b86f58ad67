import { join } from 'node:path';
import { connectDatabase, type KilolockDatabase } from '../database/connection.ts';
import { prepareDatabase } from '../database/prepare.ts';
import { startEmbeddedServer } from './embedded-server.ts';
import { createKilolockTables } from './kilolock-tables.ts';
import { loadSampleHistory } from './sample-history.ts';

/** The embedded database, prepared, with the sample history in it if it is new. */
export interface DevelopmentDatabase {
  readonly database: KilolockDatabase;
  /** Closes the connections, then stops the server. */
  close(): Promise<void>;
}

/**
 * Starts the embedded PostgreSQL of a data directory and opens its database `kilolock`, creating both when they are not
 * there.
 *
 * @param log receives the server's own log, line by line.
 * @throws DataDirectoryInUseError when another process serves the directory.
 */
export async function openDevelopmentDatabase(
  dataDirectory: string,
  log: (line: string) => void,
): Promise<DevelopmentDatabase> {
  const server = await startEmbeddedServer({ dataDirectory: join(dataDirectory, 'postgres'), log });
  await server.createDatabase('kilolock');
  const database = connectDatabase({ connectionString: server.connectionString('kilolock') });
  await createKilolockTables(database);
  await prepareDatabase(database);
  await loadSampleHistory(database);
  return {
    database,
    async close() {
      await database.close();
      await server.stop();
    },
  };
}
