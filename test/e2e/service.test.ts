import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createEmptyTestDatabase, createTestDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';
import {
  ask,
  cleanUp,
  onEmbedded,
  postmasterPid,
  removeTemplate,
  type Started,
  start,
  startMain,
  startNpm,
  temporaryDirectory,
  usedDataDirectory,
} from './support/processes.ts';

afterEach(cleanUp);
afterAll(removeTemplate);

const STATES = '{ stateArchives { nodes { name status { versionCount } } } }';
const SAMPLE = { stateArchives: { nodes: [{ name: 'demo/network', status: { versionCount: 10 } }] } };

/** A process that will not start says why in one line, at once, and nothing else. */
async function refusal(environment: Readonly<Record<string, string>>): Promise<string> {
  return oneLine(start('src/main.ts', { PORT: '0', LOG_LEVEL: 'error', ...environment }));
}

/** What `npm run migrate` says when it cannot do its work, likewise. */
async function migration(environment: Readonly<Record<string, string>>): Promise<string> {
  return oneLine(start('src/cli/migrate.ts', environment));
}

async function oneLine(failing: Started): Promise<string> {
  const { exitCode, stdout, stderr } = await failing.ended;
  expect([exitCode, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^[^\n]+\n$/);
  return stderr;
}

describe('the service on its embedded database', () => {
  test('announces where it is, with a token that works; keeps its data; and ends cleanly', async () => {
    const DATA_DIR = await temporaryDirectory();
    const first = await startMain({ DATA_DIR });
    expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(first.announcement).toContain(`\nPlayground  ${first.url}/playground\n`);
    expect(first.announcement).toMatch(/^Next +.*demo\/network/m);
    expect(await ask(first, STATES)).toEqual(SAMPLE);
    expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
    const playground = await fetch(`${first.url}/playground`);
    expect([playground.status, playground.headers.get('content-type')]).toEqual([
      200,
      expect.stringContaining('text/html'),
    ]);

    const second = await refusal({ DATA_DIR });
    expect(second).toContain('DATA_DIR is in use');
    expect(await ask(first, STATES)).toEqual(SAMPLE);

    first.child.kill('SIGTERM');
    const { exitCode, signal, stderr } = await first.ended;
    expect([exitCode, signal]).toEqual([0, null]);
    expect(stderr).toContain('"shutting down"');
    expect(stderr).not.toContain(first.token);
    expect(await postmasterPid(DATA_DIR)).toBeNull();

    const again = await startMain({ DATA_DIR });
    expect(await ask(again, STATES)).toEqual(SAMPLE);
    // The development key is kept, so a token outlives a restart.
    expect(await ask({ ...again, token: first.token }, STATES)).toEqual(SAMPLE);
    again.child.kill('SIGINT');
    expect(await again.ended).toMatchObject({ exitCode: 0 });
    expect(await postmasterPid(DATA_DIR)).toBeNull();
  });

  test('ends in order when `npm start`, which it was started by, is told to', async () => {
    const DATA_DIR = await usedDataDirectory();
    const npm = startNpm(['start'], { DATA_DIR, PORT: '0' });
    const announcement = await npm.printed('good for 8 hours');
    const url = /^Endpoint +(\S+)\/graphql$/m.exec(announcement)?.[1] ?? '';
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    npm.child.kill('SIGTERM');
    // It ends when all who could write to its output have ended.
    expect((await npm.ended).stderr).toContain('"shutting down"');
    await expect(fetch(`${url}/livez`)).rejects.toThrow();
    expect(await postmasterPid(DATA_DIR)).toBeNull();
  });

  test('ends with one line when its PostgreSQL has ended, whatever variables of other servers the shell has', async () => {
    const DATA_DIR = await usedDataDirectory();
    const foreign = {
      PGSSLMODE: 'require',
      PGOPTIONS: '-c statement_timeout=1',
      PGHOST: 'no.such.host.invalid',
    };
    const service = await startMain({ DATA_DIR, ...foreign });
    expect(await ask(service, STATES)).toEqual(SAMPLE);
    process.kill((await postmasterPid(DATA_DIR)) ?? 0, 'SIGKILL');
    const { exitCode, stderr } = await service.ended;
    expect(exitCode).toBe(1);
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(
      /^The embedded PostgreSQL on .* has ended by itself \(exit code 137\)/,
    );
  });

  test('killed outright, starts again with its data, and does the operation that it was at', async () => {
    const DATA_DIR = await usedDataDirectory();
    const first = await startMain({ DATA_DIR });
    const { exportStateArchive } = await ask<{ exportStateArchive: { operation: { id: string } } }>(
      first,
      'mutation { exportStateArchive(input: { name: "demo/network" }) { operation { id } } }',
    );
    const { id } = exportStateArchive.operation;
    // As if it had been at work at the moment of the kill, a minute ago.
    await onEmbedded(
      DATA_DIR,
      `update state_archive.operation set status = 'RUNNING', finished_at = null, expires_at = null,
         heartbeat_at = now() - interval '1 minute'
       where id = '${id}'`,
    );
    first.child.kill('SIGKILL');
    expect(await first.ended).toMatchObject({ signal: 'SIGKILL' });
    expect(await postmasterPid(DATA_DIR)).not.toBeNull();

    const again = await startMain({ DATA_DIR });
    expect(await ask(again, STATES)).toEqual(SAMPLE);
    let operation: unknown;
    do {
      ({ stateArchiveOperation: operation } = await ask<{ stateArchiveOperation: unknown }>(
        again,
        `{ stateArchiveOperation(id: "${id}") { status error { code } } }`,
      ));
    } while (JSON.stringify(operation).includes('ING'));
    expect(operation).toEqual({ status: 'SUCCEEDED', error: null });
    expect(
      await onEmbedded(DATA_DIR, `select attempt from state_archive.operation where id = '${id}'`),
    ).toEqual([{ attempt: 2 }]);
    again.child.kill('SIGTERM');
    expect(await again.ended).toMatchObject({ exitCode: 0 });
  });

  test('ends at the second signal, though a client holds a request open', async () => {
    const DATA_DIR = await usedDataDirectory();
    const service = await startMain({ DATA_DIR });
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(
      `POST /graphql HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${service.token}\r\n` +
        'content-type: application/json\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n',
    );
    // The server has the request, and waits for its body.
    await once(socket, 'data');
    service.child.kill('SIGTERM');
    await service.printed('"shutting down"');
    service.child.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ exitCode: 1 });
    // PostgreSQL was told to end with the process, and does so a moment later.
    await until(async () => (await postmasterPid(DATA_DIR)) === null);
    socket.destroy();
  });
});

describe('the service on a database of yours', () => {
  let kilolock: TestDatabase;
  let empty: TestDatabase;

  beforeAll(async () => {
    kilolock = await createTestDatabase();
    empty = await createEmptyTestDatabase();
  });

  afterAll(async () => {
    await kilolock.drop();
    await empty.drop();
  });

  /** Everything there is in `public`, by name. */
  async function publicObjects({ database }: TestDatabase): Promise<unknown[]> {
    const { rows } = await database.pool.query(
      `select relname, relkind from pg_class where relnamespace = 'public'::regnamespace order by relname`,
    );
    return rows;
  }

  test('creates nothing in public, loads no sample, and has no playground unless asked', async () => {
    const { database, connectionString } = kilolock;
    await database.pool.query('drop schema state_archive cascade');
    const before = await publicObjects(kilolock);
    const DATA_DIR = await temporaryDirectory();
    const service = await startMain({ DATA_DIR, DATABASE_URL: connectionString, AUTH_DEV_KEY: 'true' });
    expect(service.announcement).not.toContain('Playground');
    expect((await fetch(`${service.url}/playground`)).status).toBe(404);
    expect(await ask(service, STATES)).toEqual({ stateArchives: { nodes: [] } });
    expect(await publicObjects(kilolock)).toEqual(before);
    const { rows } = await database.pool.query(
      `select count(*)::int as count from pg_class where relnamespace = 'state_archive'::regnamespace`,
    );
    expect(rows[0].count).toBeGreaterThan(0);
    service.child.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ exitCode: 0 });
  });

  test('refuses a database that is not Kilolock’s, and leaves it as it was', async () => {
    const DATA_DIR = await temporaryDirectory();
    const { connectionString } = empty;
    const line = await refusal({ DATA_DIR, DATABASE_URL: connectionString, AUTH_DEV_KEY: 'true' });
    expect(line).toContain('without the tables of Kilolock');
    expect(line).not.toContain(new URL(connectionString).password);
    const { rows } = await empty.database.pool.query(
      `select nspname from pg_namespace where nspname = 'state_archive'`,
    );
    expect(rows).toEqual([]);
    expect(await publicObjects(empty)).toEqual([]);
    expect(await migration({ DATABASE_URL: connectionString })).toContain('without the tables of Kilolock');
  });

  test('refuses an address it cannot use in one line, as `npm run migrate` does, without the password in it', async () => {
    const DATA_DIR = await temporaryDirectory();
    const wrong = new URL(kilolock.connectionString);
    wrong.password = 'hunter2';
    const absent = new URL(kilolock.connectionString);
    absent.pathname = '/no_such_database';
    const encrypted = new URL(kilolock.connectionString);
    encrypted.searchParams.set('sslmode', 'verify-full');
    const nobodyListens = 'postgres://u:hunter2@127.0.0.1:1/x';
    for (const DATABASE_URL of [nobodyListens, wrong.href, absent.href, encrypted.href]) {
      const line = await refusal({ DATA_DIR, DATABASE_URL, AUTH_DEV_KEY: 'true' });
      expect(line).not.toContain('hunter2');
      expect(line).toMatch(/^DATABASE_URL cannot be used: \S/);
      expect(await migration({ DATA_DIR, DATABASE_URL })).toBe(line);
    }
  });

  test('refuses a role that may not create its schema in one line', async () => {
    const { database, connectionString } = kilolock;
    await database.pool.query('drop schema if exists state_archive cascade');
    await database.pool.query("create role state_archive_reader login password 'hunter2'");
    try {
      const url = new URL(connectionString);
      [url.username, url.password] = ['state_archive_reader', 'hunter2'];
      const line = await migration({ DATABASE_URL: url.href });
      expect(line).not.toContain('hunter2');
      expect(line).toMatch(/^The schema state_archive is not up to date, and this role may not change it/);
    } finally {
      await database.pool.query('drop role state_archive_reader');
    }
  });

  test('is served to Kilolock’s own tokens alone when no other credential is configured', async () => {
    const service = start('src/main.ts', {
      PORT: '0',
      DATA_DIR: await temporaryDirectory(),
      DATABASE_URL: kilolock.connectionString,
    });
    const announcement = await service.printed('Endpoint');
    expect(announcement).not.toContain('Token');
    const endpoint = /^Endpoint +(\S+)$/m.exec(announcement)?.[1] ?? '';
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: { authorization: 'Bearer kl_of_nobody', 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ __typename }' }),
    });
    expect(response.status).toBe(401);
    service.child.kill('SIGTERM');
    expect(await service.ended).toMatchObject({ exitCode: 0 });
  });
});

test('a variable that cannot be used is named in one line', async () => {
  const line = await refusal({ PORT: 'hunter2', DATA_DIR: await temporaryDirectory() });
  expect(line).toContain('PORT');
  expect(line).not.toContain('hunter2');
});

test.each([
  ['an address that nobody has', { HOST: 'no.such.host.invalid' }, 'HOST and PORT cannot be listened on'],
  [
    'a data directory that is a file',
    { DATA_DIR: fileURLToPath(import.meta.url) },
    'DATA_DIR cannot be used',
  ],
  ['a data directory that cannot be made', { DATA_DIR: '/dev/null/data' }, 'DATA_DIR cannot be used'],
  ['a misspelt variable', { DATABASE_ULR: 'postgres://u:hunter2@127.0.0.1/x' }, 'DATABASE_URL is'],
])('%s is told in one line', async (_name, environment, told) => {
  const line = await refusal({ DATA_DIR: await temporaryDirectory(), ...environment });
  expect(line).toContain(told);
  expect(line).not.toContain('hunter2');
});

test('a port that is taken is told in one line, before anything is made', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const PORT = String(typeof address === 'object' && address?.port);
  const DATA_DIR = await temporaryDirectory();
  const line = await refusal({ DATA_DIR, PORT });
  server.close();
  expect(line).toContain('PORT');
  await expect(stat(DATA_DIR)).rejects.toMatchObject({ code: 'ENOENT' });
});
