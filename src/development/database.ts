import { join } from 'node:path';
import { blameOperator, type OperatorError } from '../base/operator-error.ts';
import { connectDatabase, type KilolockDatabase } from '../database/connection.ts';
import { prepareControlDatabase } from '../database/prepare.ts';
import { startEmbeddedServer } from './embedded-server.ts';
import { createKilolockTables } from './kilolock-tables.ts';
import { loadSampleHistory } from './sample-history.ts';

/** The embedded database, prepared, with the sample history in it if it is new. */
interface DevelopmentDatabase {
  readonly database: KilolockDatabase;
  /** Closes the connections, then stops the server. */
  close(): Promise<void>;
}

/**
 * Starts the embedded PostgreSQL of a data directory and opens its database `kilolock`, creating both when they are not
 * there.
 *
 * @param options.log receives the server's own log, line by line.
 * @param options.onDeath called when the server ends though nobody stopped it: there is no database any more.
 * @throws OperatorError when the directory cannot be used, as when another process serves it.
 */
export async function openDevelopmentDatabase(
  dataDirectory: string,
  options: { readonly log: (line: string) => void; readonly onDeath: (error: OperatorError) => void },
): Promise<DevelopmentDatabase> {
  const server = await startEmbeddedServer({ dataDirectory: join(dataDirectory, 'postgres'), ...options });
  const database = connectDatabase({ connectionString: server.connectionString('kilolock') });
  const close = async () => {
    await database.close();
    await server.stop();
  };
  try {
    await server.createDatabase('kilolock');
    await createKilolockTables(database);
    await prepareControlDatabase(database);
    await loadSampleHistory(database);
  } catch (error) {
    await close();
    return blameOperator('The embedded database cannot be used')(error);
  }
  return { database, close };
}
