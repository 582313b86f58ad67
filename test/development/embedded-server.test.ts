import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { type EmbeddedServer, startEmbeddedServer } from '../../src/development/embedded-server.ts';

let parent: string;
let dataDirectory: string;
const servers: EmbeddedServer[] = [];
const owners: ChildProcess[] = [];

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'state-archive-embedded-'));
  // The server's account must get through to its own directory.
  dataDirectory = join(parent, 'database');
  await chmod(parent, 0o755);
});

afterEach(async () => {
  for (const owner of owners.splice(0)) {
    if (owner.exitCode === null && owner.signalCode === null) {
      owner.kill('SIGINT');
      await once(owner, 'exit');
    }
  }
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await rm(parent, { recursive: true, force: true });
});

async function start(): Promise<EmbeddedServer> {
  const server = await startEmbeddedServer({ dataDirectory, durable: false });
  servers.push(server);
  return server;
}

async function stop(server: EmbeddedServer): Promise<void> {
  servers.splice(servers.indexOf(server), 1);
  await server.stop();
}

async function query(connectionString: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

function ended(client: pg.Client): Promise<void> {
  return new Promise((resolve) => client.once('end', resolve));
}

/** Starts a process that owns the server, in a process group of its own, and reads the connection string it prints. */
async function startOwner(...args: string[]) {
  const script = fileURLToPath(new URL('./support/embedded-owner.ts', import.meta.url));
  const owner = spawn(process.execPath, [script, dataDirectory, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  owners.push(owner);
  const lines = createInterface({ input: owner.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => (await lines.next()).value as string | undefined;
  let errors = '';
  owner.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  const closed = once(owner, 'close').then(() => errors);
  const connectionString = (await nextLine()) ?? '';
  return { owner, connectionString, nextLine, closed };
}

const databases = "select datname from pg_database where datname = 'kept'";

test('what was written is there after a restart, on whichever port', async () => {
  const first = await start();
  await first.createDatabase('kept');
  await query(first.connectionString('kept'), "create table note as select 'Zoë' as text");
  await stop(first);

  const second = await start();
  await second.createDatabase('kept');
  expect(await query(second.connectionString('kept'), 'select text from note')).toEqual([{ text: 'Zoë' }]);
});

test('it is UTF-8, asks for the password, and listens on the loopback address alone', async () => {
  const server = await start();
  const address = new URL(server.connectionString('postgres'));
  expect(address.hostname).toBe('127.0.0.1');
  expect(
    await query(
      address.href,
      `select current_setting('server_encoding') as encoding,
      current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as sockets`,
    ),
  ).toEqual([{ encoding: 'UTF8', addresses: '127.0.0.1', sockets: '' }]);

  const password = await stat(join(dataDirectory, 'password'));
  expect(password.mode & 0o777).toBe(0o600);
  address.password = 'guess';
  await expect(query(address.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
});

test('its log tells of starts and stops, and nothing of what is sent to it: neither rows, values nor statements', async () => {
  const lines: string[] = [];
  const server = await startEmbeddedServer({
    dataDirectory,
    durable: false,
    log: (line) => lines.push(line),
  });
  servers.push(server);
  const failing = `select '{"password": "hunter2"'::jsonb`;
  await expect(query(server.connectionString('postgres'), failing)).rejects.toMatchObject({ code: '22P02' });
  const value = "select 'hunter2'::int";
  await expect(query(server.connectionString('postgres'), value)).rejects.toMatchObject({ code: '22P02' });
  const table = "create table once (word text primary key); insert into once values ('hunter2'), ('hunter2')";
  await expect(query(server.connectionString('postgres'), table)).rejects.toMatchObject({ code: '23505' });
  await stop(server);
  expect(lines.join('\n')).toContain('ready to accept connections');
  expect(lines.join('\n')).not.toContain('hunter2');
});

describe('a second start', () => {
  test('is refused while the owner runs, and does it no harm', async () => {
    const server = await start();
    const second = startEmbeddedServer({ dataDirectory });
    await expect(second).rejects.toThrow('DATA_DIR is in use by another process');
    expect(await query(server.connectionString('postgres'), 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('at the same moment on a new directory ends with one owner', async () => {
    const both = await Promise.all([startOwner(), startOwner()]);
    const refused = both.filter(({ connectionString }) => connectionString === '');
    expect(refused).toHaveLength(1);
    expect(await refused[0]?.closed).toContain('DATA_DIR is in use by another process');
    const owner = both.find(({ connectionString }) => connectionString !== '');
    expect(await query(owner?.connectionString ?? '', 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(await readdir(dataDirectory)).toEqual(['cluster', 'password']);
  });

  test('after the owner was killed finds what it had committed, and no server that outlives it', async () => {
    const { owner, connectionString } = await startOwner();
    await query(connectionString, 'create database kept');
    const cut = new pg.Client({ connectionString });
    cut.on('error', () => {});
    await cut.connect();
    const disconnected = ended(cut);
    owner.kill('SIGKILL');
    await Promise.all([once(owner, 'exit'), disconnected]);

    const server = await start();
    expect(await query(server.connectionString('postgres'), databases)).toEqual([{ datname: 'kept' }]);
  });

  test('after both were killed recovers what had been committed', async () => {
    const { owner, connectionString } = await startOwner();
    await query(connectionString, 'create database kept');
    const pid = Number(
      (await readFile(join(dataDirectory, 'cluster', 'postmaster.pid'), 'utf8')).split('\n')[0],
    );
    const cut = new pg.Client({ connectionString });
    cut.on('error', () => {});
    await cut.connect();
    const disconnected = ended(cut);
    owner.kill('SIGKILL');
    process.kill(pid, 'SIGKILL');
    await Promise.all([once(owner, 'exit'), disconnected]);

    const server = await start();
    expect(await query(server.connectionString('postgres'), databases)).toEqual([{ datname: 'kept' }]);
  });

  test('is not held up by a process that has got the number of a dead server', async () => {
    await stop(await start());
    const pidFile = join(dataDirectory, 'cluster', 'postmaster.pid');
    await writeFile(pidFile, `${process.pid}\n${dataDirectory}\n0\n1\n\n127.0.0.1\n`);
    const server = await start();
    expect(await query(server.connectionString('postgres'), 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('after an initialisation that was cut short begins anew', async () => {
    // The number of a process that has ended.
    const dead = spawn(process.execPath, ['--version']);
    await once(dead, 'exit');
    const partial = join(dataDirectory, `cluster.partial-${dead.pid}`);
    await mkdir(partial, { recursive: true });
    await writeFile(join(partial, 'PG_VERSION'), '18\n');

    const server = await start();
    expect(await query(server.connectionString('postgres'), 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(await readdir(dataDirectory)).toEqual(['cluster', 'password']);
  });
});

describe('the owner', () => {
  test('interrupted at the terminal can still use the database, and stops it itself', async () => {
    const { owner, nextLine } = await startOwner();
    // As the terminal does it: to the whole process group.
    process.kill(-(owner.pid ?? 0), 'SIGINT');
    expect(await nextLine()).toBe('stopped');
    expect(await once(owner, 'exit')).toEqual([0, null]);
    expect(await readdir(join(dataDirectory, 'cluster'))).not.toContain('postmaster.pid');
  });

  test('that exits without stopping its server takes it along', async () => {
    const { owner, connectionString } = await startOwner('exit');
    if (owner.exitCode === null) await once(owner, 'exit');
    // Waits for the end of what is shutting down, and would be refused by anything that is not.
    const server = await start();
    expect(server.connectionString('postgres')).not.toBe(connectionString);
  });
});
