import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { loadSampleHistory, SAMPLE_LABEL } from '../../src/development/sample-history.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;

beforeAll(async () => {
  // Nobody works: what is asked for waits.
  service = await startTestService({ WORKER_CONCURRENCY: '0' });
  await loadSampleHistory(service.database);
});
afterAll(() => service.stop());

const CANCEL = `mutation ($id: ID!) {
  cancelStateArchiveOperation(input: { id: $id }) { operation { id status } userErrors { code path } }
}`;

test('an operation that waits is cancelled, and again, however its id is spelt; one that is not there is a problem of the caller’s', async () => {
  const { data } = await service.ask<{ exportStateArchive: { operation: { id: string; status: string } } }>(
    `mutation { exportStateArchive(input: { name: "${SAMPLE_LABEL}", waitSeconds: 0 }) { operation { id status } } }`,
  );
  const { id, status } = data.exportStateArchive.operation;
  expect(status).toBe('PENDING');
  for (const given of [id, id, id.toUpperCase()]) {
    const cancelled = await service.ask(CANCEL, { variables: { id: given } });
    expect(cancelled.errors).toEqual([]);
    expect(cancelled.data).toEqual({
      cancelStateArchiveOperation: { operation: { id, status: 'CANCELLED' }, userErrors: [] },
    });
  }
  for (const absent of ['00000000-0000-4000-8000-000000000001', 'nonsense', '']) {
    const refused = await service.ask(CANCEL, { variables: { id: absent } });
    expect(refused.data).toEqual({
      cancelStateArchiveOperation: {
        operation: null,
        userErrors: [{ code: 'OPERATION_NOT_FOUND', path: ['input', 'id'] }],
      },
    });
  }
  const stranger = await service.token({ workspace: 'ws_other', environment: 'env_other' });
  const denied = await service.ask(CANCEL, { variables: { id }, token: stranger });
  expect(denied.text).not.toContain('CANCELLED');
});
