import { EventEmitter, once } from 'node:events';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Listener, notify } from '../../src/database/notifications.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;
const listeners: Listener[] = [];

beforeAll(async () => {
  given = await createTestDatabase();
});
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close();
});
afterAll(() => given.drop());

/** Emits `heard` and `deaf`. */
function listenOn(channel: string, directAddress = given.connectionString): EventEmitter {
  const events = new EventEmitter();
  listeners.push(
    new Listener({
      database: given.database,
      directAddress,
      channel,
      onHeard: () => events.emit('heard'),
      onDeaf: (error) => events.emit('deaf', error),
    }),
  );
  return events;
}

/** Ends the connections that listen. */
const cut = () =>
  given.database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()`,
  );

test('what is said on a channel is heard there, and on no other', async () => {
  const [one, other] = [listenOn('one'), listenOn('other')];
  await Promise.all([once(one, 'heard'), once(other, 'heard')]);
  let strays = 0;
  other.on('heard', () => {
    strays += 1;
  });
  const heard = once(one, 'heard');
  await notify(given.database, 'one', '');
  await heard;
  const heardToo = once(other, 'heard');
  await notify(given.database, 'other', '');
  await heardToo;
  expect(strays).toBe(1);
});

test('whoever listens is told that something may have been missed when the connection was lost, and hears again', async () => {
  const events = listenOn('lost');
  await once(events, 'heard');
  const again = once(events, 'heard');
  await cut();
  await again;
  const heard = once(events, 'heard');
  await notify(given.database, 'lost', '');
  await heard;
});

test('an address where nothing is heard is told of, once', async () => {
  const nowhere = new URL(given.connectionString);
  nowhere.port = '1';
  const events = listenOn('deaf', nowhere.href);
  const [error] = await once(events, 'deaf');
  expect(error).toMatchObject({ code: 'ECONNREFUSED' });
});

test('whoever has ended hears nothing more, also when the connection was lost just before', async () => {
  const [one, other] = [listenOn('ended'), listenOn('ended')];
  await Promise.all([once(one, 'heard'), once(other, 'heard')]);
  await cut();
  await listeners.shift()?.close();
  one.once('heard', () => {
    throw new Error('It heard something.');
  });
  // The other one is back.
  await once(other, 'heard');
  const heard = once(other, 'heard');
  await notify(given.database, 'ended', '');
  await heard;
});
