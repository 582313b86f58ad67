import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import pg from 'pg';
import { connectDatabase } from '../../src/database/connection.ts';
import type { Caller } from '../../src/history/states.ts';
import { type Backend, createCaller, openBackend, runExport } from '../operations/support/backend.ts';
import { postTerraformHistory } from '../operations/support/histories.ts';
import { doWholeJob } from './support/whole-job.ts';

const program = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/opt/homebrew/bin/pgbouncer'].find(existsSync);
const POOL_SIZE = 4;

let backend: Backend;
let caller: Caller;
let digest: string;
let directory: string;
let pgbouncer: ChildProcess;
/** The same database, behind pgbouncer in transaction mode. */
let pooled: string;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('No free port.');
  return address.port;
}

/** pgbouncer does not run as root. */
function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' })),
  );
  return { uid: uid ?? 0, gid: gid ?? 0 };
}

async function startPgbouncer(): Promise<void> {
  const server = new URL(backend.connectionString);
  const port = await freePort();
  directory = await mkdtemp(join(tmpdir(), 'state-archive-pgbouncer-'));
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
default_pool_size = ${POOL_SIZE}
max_client_conn = 100
`,
  );
  pgbouncer = spawn(program ?? '', [file], { ...account(), stdio: ['ignore', 'ignore', 'pipe'] });
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    pgbouncer.once('error', reject);
    pgbouncer.once('exit', () => reject(new Error(`pgbouncer did not start: ${lines.join(' | ')}`)));
    createInterface({ input: pgbouncer.stderr ?? process.stdin }).on('line', (line) => {
      lines.push(line);
      if (line.includes('process up')) resolve();
    });
  });
  server.port = String(port);
  pooled = server.href;
}

/** What another client of the pooler leaves behind on every connection to the server. */
async function leaveSettingsBehind(): Promise<void> {
  await backend.database.pool.query('create schema nowhere');
  const clients = Array.from({ length: POOL_SIZE }, () => new pg.Client({ connectionString: pooled }));
  await Promise.all(clients.map((client) => client.connect()));
  // All at once, so that each has a connection of its own.
  await Promise.all(clients.map((client) => client.query('begin')));
  await Promise.all(
    clients.map((client) =>
      client.query(`set search_path to nowhere; set timezone to 'Asia/Kathmandu';
        set datestyle to 'German'; set statement_timeout to '250ms'; set row_security to on;
        set default_transaction_isolation to 'serializable'`),
    ),
  );
  await Promise.all(clients.map((client) => client.query('commit')));
  await Promise.all(clients.map((client) => client.end()));
}

(program === undefined ? describe.skip : describe)(
  'behind pgbouncer in transaction mode (skipped without its program)',
  () => {
    beforeAll(async () => {
      backend = await openBackend();
      caller = await createCaller(backend);
      await postTerraformHistory(backend.database, caller, 'app');
      digest = (await runExport(backend, caller, 'app')).archive?.historyDigest ?? '';
      await startPgbouncer();
    });

    afterAll(async () => {
      pgbouncer.removeAllListeners('exit');
      const exited = once(pgbouncer, 'exit');
      pgbouncer.kill('SIGKILL');
      await exited;
      await rm(directory, { recursive: true, force: true });
      await backend.close();
    });

    test('a whole history travels, whatever another client has left behind', async () => {
      await leaveSettingsBehind();
      await doWholeJob(backend, caller, digest, pooled);
    });

    test('reads are answered while transactions go to one connection to the server and another', async () => {
      const database = connectDatabase({ connectionString: pooled });
      try {
        for (let round = 0; round < 20; round += 1) {
          const values = Array.from({ length: 2 * POOL_SIZE }, (_, index) => 100 * round + index);
          const read = (value: number) => sql`select ${value}::int as value`.execute(database.for('read'));
          const answers = await Promise.all(values.map(read));
          expect(answers.map(({ rows }) => rows)).toEqual(values.map((value) => [{ value }]));
        }
      } finally {
        await database.close();
      }
    });

    test('nothing is left behind for other clients', async () => {
      const database = connectDatabase({ connectionString: pooled });
      try {
        await database.for('read').selectFrom('states').select('id').execute();
        const names = ['lock_timeout', 'extra_float_digits', 'array_nulls', 'transaction_read_only'];
        const settings = async (client: pg.Pool) => {
          const { rows } = await client.query(
            `select current_setting(name) as value from unnest($1::text[]) name`,
            [names],
          );
          return rows.map(({ value }) => value);
        };
        expect(await settings(database.pool)).toEqual(await settings(backend.database.pool));
      } finally {
        await database.close();
      }
    });
  },
);
