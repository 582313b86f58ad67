import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { loadSampleHistory, SAMPLE_LABEL } from '../../src/development/sample-history.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { ask, cleanUp, start, startMain, temporaryDirectory } from './support/processes.ts';

let given: TestDatabase;

beforeAll(async () => {
  given = await createTestDatabase();
  await loadSampleHistory(given.database);
});
afterAll(() => given.drop());
afterEach(cleanUp);

const EXPORT = `mutation ($wait: Int!) {
  exportStateArchive(input: { name: "${SAMPLE_LABEL}", waitSeconds: $wait }) {
    operation { id status archive { downloadUrl } } userErrors { code }
  }
}`;

interface Exported {
  readonly exportStateArchive: {
    readonly operation: {
      readonly id: string;
      readonly status: string;
      readonly archive: { readonly downloadUrl: string } | null;
    };
  };
}

test('a replica that only serves leaves the work to a worker with a disk of its own, and hands out what it made', async () => {
  const [replicaDisk, workerDisk, store] = [
    await temporaryDirectory(),
    await temporaryDirectory(),
    await temporaryDirectory(),
  ];
  const shared = { DATABASE_URL: given.connectionString, ARCHIVE_STORE_URL: `file://${store}` };
  const replica = await startMain({
    ...shared,
    DATA_DIR: replicaDisk,
    AUTH_DEV_KEY: 'true',
    WORKER_CONCURRENCY: '0',
    DRAIN_SECONDS: '1',
  });
  const waiting = await ask<Exported>(replica, EXPORT, { wait: 0 });
  expect(waiting.exportStateArchive.operation.status).toBe('PENDING');

  const worker = start('src/worker.ts', { ...shared, DATA_DIR: workerDisk });
  await worker.printed('Working on up to 4 operations at a time.');
  const { exportStateArchive } = await ask<Exported>(replica, EXPORT, { wait: 25 });
  expect(exportStateArchive.operation.status).toBe('SUCCEEDED');
  const response = await fetch(exportStateArchive.operation.archive?.downloadUrl ?? '');
  expect([response.status, (await response.arrayBuffer()).byteLength > 0]).toEqual([200, true]);

  worker.child.kill('SIGTERM');
  expect(await worker.ended).toMatchObject({ exitCode: 0 });
  // While it drains it serves on, and says that it is not ready.
  replica.child.kill('SIGTERM');
  await replica.printed('shutting down');
  expect((await fetch(`${replica.url}/readyz`)).status).toBe(503);
  expect(await ask(replica, '{ __typename }')).toEqual({ __typename: 'Query' });
  expect(await replica.ended).toMatchObject({ exitCode: 0 });
});

test.each([
  ['no database', {}, 'DATABASE_URL names the database to work on'],
  [
    'nothing to do',
    { DATABASE_URL: 'postgresql://localhost/x', WORKER_CONCURRENCY: '0' },
    'WORKER_CONCURRENCY is 0',
  ],
])('a worker with %s says so in one line', async (_what, environment, line) => {
  const { ended } = start('src/worker.ts', { DATA_DIR: await temporaryDirectory(), ...environment });
  const { exitCode, stderr } = await ended;
  expect(exitCode).toBe(1);
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringContaining(line)]);
});
