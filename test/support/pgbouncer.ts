import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from './free-port.ts';

/** The program of pgbouncer; undefined where it is not installed. */
export const PGBOUNCER = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/opt/homebrew/bin/pgbouncer'].find(
  existsSync,
);

/** A pgbouncer in transaction mode, in front of a server. */
export interface Pgbouncer {
  /** The address of the database that it was started for, by way of it. */
  readonly connectionString: string;
  stop(): Promise<void>;
}

/**
 * Starts pgbouncer in front of the server of a database.
 *
 * @param poolSize how many connections to the server its clients share, for each database.
 */
export async function startPgbouncer(direct: string, poolSize: number): Promise<Pgbouncer> {
  if (PGBOUNCER === undefined) throw new Error('pgbouncer is not installed.');
  const server = new URL(direct);
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), 'state-archive-pgbouncer-'));
  // It does not run as root, and its own account has to read the file.
  await chmod(directory, 0o755);
  const file = join(directory, 'pgbouncer.ini');
  await writeFile(
    file,
    `[databases]
* = host=${server.hostname} port=${server.port} user=${server.username} password=${decodeURIComponent(server.password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
`,
  );
  const program = spawn(PGBOUNCER, [file], { ...account(), stdio: ['ignore', 'ignore', 'pipe'] });
  const lines: string[] = [];
  const died = () => new Error(`pgbouncer did not start: ${lines.join(' | ')}`);
  await new Promise<void>((resolve, reject) => {
    program.once('error', reject);
    program.once('exit', () => reject(died()));
    createInterface({ input: program.stderr }).on('line', (line) => {
      if (lines.length < 20) lines.push(line);
      if (line.includes('process up')) resolve();
    });
  });
  server.port = String(port);
  return {
    connectionString: server.href,
    async stop() {
      program.removeAllListeners('exit');
      const exited = once(program, 'exit');
      program.kill('SIGKILL');
      await exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })),
  );
  return { uid: uid ?? 0, gid: gid ?? 0 };
}
