import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, test } from '@jest/globals';
import type pg from 'pg';
import { connectDatabase } from '../../src/database/connection.ts';
import { createTestDatabase } from '../support/database.ts';

/** The code of the message that asks for TLS (PostgreSQL manual, "Message Formats", SSLRequest). */
const SSL_REQUEST = 80877103;
/** The version of the protocol that a connection without it begins with. */
const STARTUP = 196608;

test('sslmode=prefer asks for TLS again after the server was away, until the server says that it has none', async () => {
  const given = await createTestDatabase();
  const target = new URL(given.connectionString);
  const { port, hostname } = target;
  const codes: number[] = [];
  let isAway = true;
  let isLosingTls = true;
  const server = createServer((client) => {
    if (isAway) {
      client.destroy();
      return;
    }
    client.once('data', (first: Buffer) => {
      const code = first.readInt32BE(4);
      codes.push(code);
      if (isLosingTls && code === SSL_REQUEST) {
        client.destroy();
        return;
      }
      const behind = connect(Number(port), hostname);
      behind.write(first);
      behind.on('error', () => {}).on('close', () => client.destroy());
      client.on('close', () => behind.destroy());
      client.pipe(behind).pipe(client);
    });
    client.on('error', () => {});
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  target.port = String(typeof address === 'object' ? address?.port : '');
  target.searchParams.set('sslmode', 'prefer');
  const database = connectDatabase({ connectionString: target.href });
  const held: pg.PoolClient[] = [];
  const open = async () => {
    held.push(await database.pool.connect());
  };
  try {
    await expect(open()).rejects.toThrow('terminated');
    isAway = false;
    await open();
    expect(codes).toEqual([SSL_REQUEST, STARTUP]);
    isLosingTls = false;
    await open();
    expect(codes.slice(2)).toEqual([SSL_REQUEST, STARTUP]);
    await open();
    expect(codes.slice(4)).toEqual([STARTUP]);
  } finally {
    for (const client of held) client.release();
    await database.close();
    server.close();
    await given.drop();
  }
});
