import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { connectDatabase, inTransaction, type KilolockDatabase } from '../../src/database/connection.ts';
import { copyIntoTable, copyTextRows } from '../../src/database/copy.ts';
import { findDatabaseProblem } from '../../src/database/readiness.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;
beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());

/** Passes on what is sent in either direction, until it is told to stand still: connections stay, and nothing comes. */
class FreezableProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isFrozen = false;

  constructor(target: URL) {
    this.#server = createServer((client) => {
      const server = connect(Number(target.port), target.hostname);
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(from);
        from.on('error', () => {});
        from.on('close', () => to.destroy());
        from.on('data', (bytes: Buffer) => {
          if (!this.#isFrozen) to.write(bytes);
        });
      }
    });
  }

  async listen(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    const url = new URL(given.connectionString);
    const address = this.#server.address();
    url.port = String(typeof address === 'object' ? address?.port : '');
    return url.href;
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

async function took(work: () => Promise<unknown>): Promise<{ error: unknown; seconds: number }> {
  const began = performance.now();
  const error = await work().then(
    () => undefined,
    (failure: unknown) => failure,
  );
  return { error, seconds: (performance.now() - began) / 1000 };
}

const readStates = (database: KilolockDatabase) =>
  database.for('read').selectFrom('states').select('id').execute();

test('a database that stands still is told of within the limits of each purpose, and holds up no shutdown', async () => {
  const proxy = new FreezableProxy(new URL(given.connectionString));
  const database = connectDatabase({ connectionString: await proxy.listen() });
  try {
    await Promise.all([readStates(database), findDatabaseProblem(database)]);
    const { promise: frozen, resolve: tellFrozen } = Promise.withResolvers<void>();
    const { promise: copying, resolve: tellCopying } = Promise.withResolvers<void>();
    const rows = async function* () {
      tellCopying();
      await frozen;
      yield null;
    };
    const recording = took(() =>
      inTransaction(database, 'record', (session) =>
        copyIntoTable(session, 'public.events', [['id', 'uuid', () => 'none']], rows()),
      ),
    );
    await copying;
    proxy.freeze();
    tellFrozen();
    const [probe, read, record] = await Promise.all([
      took(() => findDatabaseProblem(database)),
      took(() => readStates(database)),
      recording,
    ]);
    // What its rows failed with is the cause; that COPY cannot even be called off is none.
    expect(record.error).toMatchObject({ name: 'CopyError' });
    expect(record.seconds).toBeLessThan(25);
    expect(probe.error).toMatchObject({ name: 'DatabaseUnavailableError', reason: 'unresponsive' });
    expect(probe.seconds).toBeLessThan(10);
    expect(read.error).toMatchObject({ name: 'DatabaseUnavailableError', code: 'UNAVAILABLE' });
    expect(read.seconds).toBeLessThan(30);
    // A new connection does not come to be either.
    expect((await took(() => findDatabaseProblem(database))).error).toMatchObject({ code: 'UNAVAILABLE' });
  } finally {
    expect((await took(() => database.close())).seconds).toBeLessThan(20);
    await proxy.close();
  }
}, 120_000);

test('an export whose server goes silent in the middle of a state ends when it is called off', async () => {
  const proxy = new FreezableProxy(new URL(given.connectionString));
  const database = connectDatabase({ connectionString: await proxy.listen() });
  const called = new AbortController();
  try {
    const exporting = inTransaction(
      database,
      'export',
      async (session) => {
        const endless =
          "select number::text, repeat('x', 200000) from pg_catalog.generate_series(1, 1000000) number";
        for await (const { content } of copyTextRows(session, endless)) {
          for await (const chunk of content) {
            if (chunk.length === 0) continue;
            // The rest of the row may be on its way already or never come.
            proxy.freeze();
            setImmediate(() => called.abort(new Error('called off')));
          }
        }
      },
      { signal: called.signal },
    );
    await expect(exporting).rejects.toThrow('called off');
  } finally {
    await database.close();
    await proxy.close();
  }
});

describe('a row that somebody holds locked', () => {
  test('stops a write after seconds, and neither reads nor the probe meanwhile, however many writes wait', async () => {
    const holder = new pg.Client({ connectionString: given.connectionString });
    await holder.connect();
    try {
      const database = connectDatabase({ connectionString: given.connectionString, maxConnections: 2 });
      await holder.query('begin; select from tenants for update');
      const update = () => database.for('record').updateTable('tenants').set({ name: 'renamed' }).execute();
      const writes = [1, 2, 3].map(() => took(update));
      expect(await findDatabaseProblem(database)).toBeNull();
      expect(await readStates(database)).toEqual([]);
      for (const { error } of await Promise.all(writes)) {
        expect(error).toMatchObject({ code: 'UNAVAILABLE', cause: { code: '55P03' }, reason: 'locked' });
      }
      await database.close();
    } finally {
      await holder.end();
    }
  });
});

test('when no connection is free the probe says so within seconds', async () => {
  const database = connectDatabase({ connectionString: given.connectionString, maxConnections: 1 });
  await inTransaction(database, 'read', async () => {
    const { error, seconds } = await took(() => findDatabaseProblem(database));
    expect(error).toMatchObject({ code: 'UNAVAILABLE', reason: 'busy' });
    expect(seconds).toBeLessThan(9);
  });
  await database.close();
});

test.each(['LATIN1', 'SQL_ASCII'])('a database in %s is refused in one line', async (encoding) => {
  const name = `encoded_${encoding.toLowerCase()}_${process.pid}`;
  await given.database.pool.query(
    `create database ${name} template template0 encoding '${encoding}' lc_collate 'C' lc_ctype 'C'`,
  );
  const url = new URL(given.connectionString);
  url.pathname = name;
  const database = connectDatabase({ connectionString: url.href });
  try {
    expect(await findDatabaseProblem(database)).toMatch(
      new RegExp(`^The database is encoded in ${encoding}: .*UTF8\\.$`),
    );
  } finally {
    await database.close();
    await given.database.pool.query(`drop database ${name} with (force)`);
  }
});
