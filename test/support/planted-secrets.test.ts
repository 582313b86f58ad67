import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { PlantedSecrets } from './planted-secrets.ts';

let given: TestDatabase;

beforeAll(async () => {
  given = await createTestDatabase();
});

afterAll(() => given.drop());

describe('the watch over the secrets of a test run', () => {
  test('finds tokens, links and the fixtures’ secret in a log', () => {
    const secrets = new PlantedSecrets();
    secrets.add('a-token-of-a-test');
    secrets.checkAnswer('{ x }', '{"downloadUrl":"http://h/archives/1?token=a.link-token"}');
    secrets.checkText('The log', 'nothing of it');
    for (const leak of ['a-token-of-a-test', 'a.link-token', 'hunter2-not-real']) {
      expect(() => secrets.checkText('The log', `before ${leak} after`)).toThrow('The log holds the secret');
    }
  });

  test('lets the fixtures’ secret pass in an answer only where raw states were asked for', () => {
    const secrets = new PlantedSecrets();
    secrets.checkAnswer('{ rawState }', 'hunter2-not-real');
    expect(() => secrets.checkAnswer('{ manifest }', 'hunter2-not-real')).toThrow('An answer');
  });

  test('finds them in an event', async () => {
    const secrets = new PlantedSecrets();
    await secrets.checkRecords(given.database);
    await given.database.pool.query(
      `insert into events (kind, payload) values ('x', '{"note": "hunter2-not-real"}')`,
    );
    await expect(secrets.checkRecords(given.database)).rejects.toThrow('A record');
  });
});
