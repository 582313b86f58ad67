import { connectDatabase } from '../../../src/database/connection.ts';
import { startEmbeddedServer } from '../../../src/development/embedded-server.ts';

/**
 * A process that owns an embedded server, for tests that kill it: `node embedded-owner.ts <directory> [exit]`. Prints the
 * connection string; on SIGINT it uses the database once more, stops the server and prints `stopped`. With `exit` it exits at
 * once instead, its server running.
 */
const [dataDirectory, mode] = process.argv.slice(2);
if (dataDirectory === undefined) throw new Error('Which directory?');

const server = await startEmbeddedServer({ dataDirectory, durable: false });
const connectionString = server.connectionString('postgres');
process.once('SIGINT', async () => {
  const database = connectDatabase({ connectionString });
  await database.pool.query('select 1');
  await database.close();
  await server.stop();
  process.stdout.write('stopped\n');
});

// Only now: whoever reads the line may send the signal at once.
process.stdout.write(`${connectionString}\n`);
if (mode === 'exit') process.exit(0);
