import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { errors } from 'jose';
import { createRemoteKeySet, type FindKey, KeySetUnavailableError } from '../../src/auth/remote-key-set.ts';

type Answer = (response: ServerResponse) => unknown;

let server: Server;
let url: string;
let answer: Answer;
let requests = 0;
let now: number;

beforeAll(async () => {
  server = createServer((_request, response) => {
    requests += 1;
    answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
});

beforeEach(() => {
  requests = 0;
  now = Date.parse('2026-03-02T10:00:00Z');
  jest.spyOn(Date, 'now').mockImplementation(() => now);
  answer = publishing('one');
});

afterEach(() => {
  jest.restoreAllMocks();
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const KEY = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });

function publishing(...keyIds: string[]): Answer {
  return (response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ keys: keyIds.map((kid) => ({ ...KEY, kid })) }));
  };
}

function body(status: number, text: string, headers: Record<string, string> = {}): Answer {
  return (response) => void response.writeHead(status, headers).end(text);
}

/** `found`, `unknown` (the issuer has no such key) or `unavailable` (nobody can tell). */
async function outcomeOf(keys: FindKey, keyId: string): Promise<string> {
  try {
    await keys({ alg: 'EdDSA', kid: keyId });
    return 'found';
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return 'unknown';
    if (error instanceof KeySetUnavailableError) return 'unavailable';
    throw error;
  }
}

describe('a published key set', () => {
  test('is fetched once for many tokens', async () => {
    const keys = createRemoteKeySet(url);
    const outcomes = await Promise.all(['one', 'one', 'one'].map((keyId) => outcomeOf(keys, keyId)));
    expect([...outcomes, await outcomeOf(keys, 'one')]).toEqual(Array(4).fill('found'));
    expect(requests).toBe(1);
  });

  test('that has a new key is fetched for the first token that names it', async () => {
    const keys = createRemoteKeySet(url);
    expect(await outcomeOf(keys, 'one')).toBe('found');
    answer = publishing('two', 'one');
    now += 30_000;
    expect(await outcomeOf(keys, 'two')).toBe('found');
    expect(await outcomeOf(keys, 'one')).toBe('found');
    expect(requests).toBe(2);
  });

  test('is fetched once in 30 seconds for key ids that are made up', async () => {
    const keys = createRemoteKeySet(url);
    for (let second = 0; second < 60; second += 1) {
      expect(await outcomeOf(keys, `made up ${second}`)).toBe('unknown');
      now += 1000;
    }
    expect(requests).toBe(2);
  });

  test('that no longer has a key makes it useless within 10 minutes', async () => {
    const keys = createRemoteKeySet(url);
    expect(await outcomeOf(keys, 'one')).toBe('found');
    answer = publishing('two');
    now += 600_000;
    expect(await outcomeOf(keys, 'one')).toBe('unknown');
  });
});

describe('an issuer that is out', () => {
  const outages: [name: string, answer: Answer][] = [
    ['answers with an error', body(503, JSON.stringify({ keys: [] }))],
    ['answers with something else', body(200, '<html>')],
    ['answers with no key set', body(200, '{}')],
    ['answers with a redirect', body(302, '', { location: '/elsewhere' })],
    ['hangs up', (response) => void response.socket?.destroy()],
    ['does not answer', () => {}],
    ['does not end its answer', (response) => void response.writeHead(200).write('{"keys":[')],
  ];

  test.each(outages)('lets nobody in, and blames nobody, when it %s', async (_name, outage) => {
    answer = outage;
    expect(await outcomeOf(createRemoteKeySet(url, 1000), 'one')).toBe('unavailable');
  });

  test.each(outages)(
    'is left alone for 5 seconds, and asked again then, when it %s',
    async (_name, outage) => {
      const keys = createRemoteKeySet(url, 1000);
      answer = outage;
      for (const _ of [1, 2, 3]) expect(await outcomeOf(keys, 'one')).toBe('unavailable');
      expect(requests).toBe(1);
      answer = publishing('one');
      now += 4_999;
      expect(await outcomeOf(keys, 'one')).toBe('unavailable');
      now += 1;
      expect(await outcomeOf(keys, 'one')).toBe('found');
    },
  );

  test.each<[name: string, answer: Answer, reason: string]>([
    ['is no JSON', body(200, 'SECRET'), 'the answer is no JSON'],
    ['is no key set', body(200, '{"SECRET":1}'), 'the answer is no key set'],
    ['has another status', body(418, 'SECRET'), 'the answer has status 418'],
  ])('is logged without what it answered, when that %s', async (_name, outage, reason) => {
    answer = outage;
    const keys = createRemoteKeySet(url);
    const told: unknown[] = [];
    try {
      await keys({ alg: 'EdDSA', kid: 'one' });
    } catch (error) {
      told.push((error as KeySetUnavailableError).reason);
    }
    expect(told).toEqual([reason]);
  });

  test('is not listened to beyond a mebibyte', async () => {
    let sent = 0;
    const hungUp = Promise.withResolvers<void>();
    answer = async (response) => {
      response.on('close', hungUp.resolve);
      response.writeHead(200).write('{"keys":[');
      while (!response.destroyed) {
        sent += 65_536;
        if (!response.write(' '.repeat(65_536)))
          await Promise.race([once(response, 'drain'), hungUp.promise]);
      }
    };
    expect(await outcomeOf(createRemoteKeySet(url), 'one')).toBe('unavailable');
    await hungUp.promise;
    expect(sent).toBeLessThan(64 * 1024 * 1024);
  });

  test('hinders no token of a key that is known, for 10 minutes', async () => {
    const keys = createRemoteKeySet(url);
    expect(await outcomeOf(keys, 'one')).toBe('found');
    answer = body(503, '');
    now += 599_999;
    expect(await outcomeOf(keys, 'made up')).toBe('unavailable');
    expect(await outcomeOf(keys, 'one')).toBe('found');
    now += 1;
    expect(await outcomeOf(keys, 'one')).toBe('unavailable');
  });
});
