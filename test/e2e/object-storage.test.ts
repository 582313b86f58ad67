import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { loadSampleHistory, SAMPLE_LABEL } from '../../src/development/sample-history.ts';
import { type S3Server, startS3Server } from '../support/s3-server.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

const BUCKET = 'state-archives';
const environmentBefore = { ...process.env };
let server: S3Server;
let service: TestService;
beforeAll(async () => {
  server = await startS3Server();
  server.createBucket(BUCKET);
  Object.assign(process.env, server.environment);
  service = await startTestService({
    ARCHIVE_STORE_URL: `s3://${BUCKET}/production`,
    AWS_ENDPOINT_URL_S3: server.endpoint,
  });
  await loadSampleHistory(service.database);
});
afterAll(async () => {
  await service.stop();
  process.env = environmentBefore;
  await server.close();
});

interface Operation {
  readonly status: string;
  readonly archive: { readonly downloadUrl: string; readonly sha256: string; readonly historyDigest: string };
}

test('a history goes out through a bucket and comes back, and of what was sent nothing is left there', async () => {
  const exported = await service.ask<{ exportStateArchive: { operation: Operation } }>(
    `mutation ($name: String!) { exportStateArchive(input: { name: $name }) {
      operation { status archive { downloadUrl sha256 historyDigest } } } }`,
    { variables: { name: SAMPLE_LABEL } },
  );
  const { status, archive } = exported.data.exportStateArchive.operation;
  expect(status).toBe('SUCCEEDED');
  expect(server.keys(BUCKET)).toEqual([
    expect.stringMatching(/^production\/archives\/[0-9a-f-]{36}\.1\.klstate$/),
  ]);

  const whole = await fetch(archive.downloadUrl);
  const bytes = new Uint8Array(await whole.arrayBuffer());
  expect([whole.status, whole.headers.get('etag')]).toEqual([200, `"${archive.sha256}"`]);
  const part = await fetch(archive.downloadUrl, { headers: { range: 'bytes=10-19' } });
  expect([part.status, new Uint8Array(await part.arrayBuffer())]).toEqual([206, bytes.slice(10, 20)]);

  const imported = await service.ask<{ importStateArchive: { operation: Operation } }>(
    `mutation ($file: Upload!) { importStateArchive(input: { file: $file, name: "restored", allowSharedLineage: true }) {
      operation { status archive { historyDigest } } userErrors { message } } }`,
    { file: { bytes } },
  );
  expect(imported.data.importStateArchive.operation).toMatchObject({
    status: 'SUCCEEDED',
    archive: { historyDigest: archive.historyDigest },
  });
  // What was received goes when the operation is over already.
  await until(() => server.keys(BUCKET).length === 1);
});

test('a bucket without object lock has nothing kept that is to be kept: that is told, and nothing is started', async () => {
  const token = await service.token({ scopes: ['state.export', 'state.retain'] });
  const { data } = await service.ask<{ exportStateArchive: object }>(
    `mutation ($name: String!) { exportStateArchive(input: { name: $name, legalHold: true }) {
      operation { id } userErrors { code path } } }`,
    { variables: { name: SAMPLE_LABEL }, token },
  );
  expect(data.exportStateArchive).toEqual({
    operation: null,
    userErrors: [{ code: 'RETENTION_UNSUPPORTED', path: ['input', 'legalHold'] }],
  });
});

test('an archive in a bucket with object lock is held there, and let go, by whoever may', async () => {
  server.createBucket('locked', { objectLock: true });
  const locking = await startTestService({
    ARCHIVE_STORE_URL: 's3://locked',
    AWS_ENDPOINT_URL_S3: server.endpoint,
  });
  try {
    await loadSampleHistory(locking.database);
    const token = await locking.token({ scopes: ['state.export', 'state.retain'] });
    const retainUntil = new Date(Date.now() + 2 * 86_400_000).toISOString();
    const fields = 'operation { id expiresAt archive { retainUntil legalHold } } userErrors { code }';
    const { data } = await locking.ask<{ exportStateArchive: { operation: { id: string } } }>(
      `mutation ($name: String!, $retainUntil: DateTime!) {
        exportStateArchive(input: { name: $name, legalHold: true, retainUntil: $retainUntil }) { ${fields} } }`,
      { variables: { name: SAMPLE_LABEL, retainUntil }, token },
    );
    const until = retainUntil.replace('Z', '000Z');
    const { id } = data.exportStateArchive.operation;
    const held = { id, expiresAt: null, archive: { retainUntil: until, legalHold: true } };
    expect(data.exportStateArchive).toEqual({ operation: held, userErrors: [] });
    const lifted = await locking.ask(
      `mutation ($id: ID!) { setStateArchiveLegalHold(input: { id: $id, legalHold: false }) { ${fields} } }`,
      { variables: { id }, token },
    );
    expect(lifted.data).toMatchObject({
      setStateArchiveLegalHold: {
        operation: { archive: { retainUntil: until, legalHold: false } },
        userErrors: [],
      },
    });
    const denied = await locking.ask(
      `mutation ($id: ID!) { setStateArchiveLegalHold(input: { id: $id, legalHold: true }) { ${fields} } }`,
      { variables: { id } },
    );
    expect(denied.denials).toEqual(['setStateArchiveLegalHold: FORBIDDEN']);
  } finally {
    await locking.stop();
  }
});

test('while the bucket is not reached a download can be tried again, and an export is taken up again until it is', async () => {
  const exported = await service.ask<{ exportStateArchive: { operation: Operation } }>(
    `mutation ($name: String!) { exportStateArchive(input: { name: $name }) { operation { archive { downloadUrl } } } }`,
    { variables: { name: SAMPLE_LABEL } },
  );
  const { downloadUrl } = exported.data.exportStateArchive.operation.archive;
  server.inject({ on: () => true, how: 'before', times: Number.POSITIVE_INFINITY });
  let id: string;
  try {
    expect((await fetch(downloadUrl)).status).toBe(503);
    const asked = server.requests.length;
    const begun = await service.ask<{ exportStateArchive: { operation: { id: string } } }>(
      `mutation ($name: String!) { exportStateArchive(input: { name: $name, waitSeconds: 0 }) { operation { id } } }`,
      { variables: { name: SAMPLE_LABEL } },
    );
    ({ id } = begun.data.exportStateArchive.operation);
    await until(() => server.requests.slice(asked).some((request) => request.includes(`archives/${id}`)));
  } finally {
    server.heal();
  }
  expect((await fetch(downloadUrl)).status).toBe(200);
  await until(async () => {
    const { data } = await service.ask<{ stateArchiveOperation: Operation }>(
      'query ($id: ID!) { stateArchiveOperation(id: $id) { status } }',
      { variables: { id } },
    );
    return data.stateArchiveOperation.status === 'SUCCEEDED';
  });
});

test('where the bucket gives archives out itself, a download is on record, and is led to it for a minute, by its name', async () => {
  const presigning = await startTestService({
    ARCHIVE_STORE_URL: `s3://${BUCKET}/presigned`,
    ARCHIVE_STORE_LINKS: 'presigned',
    AWS_ENDPOINT_URL_S3: server.endpoint,
  });
  try {
    await loadSampleHistory(presigning.database);
    const exported = await presigning.ask<{ exportStateArchive: { operation: Operation } }>(
      `mutation ($name: String!) { exportStateArchive(input: { name: $name }) {
        operation { status archive { downloadUrl sha256 historyDigest } } } }`,
      { variables: { name: SAMPLE_LABEL } },
    );
    const { downloadUrl, sha256 } = exported.data.exportStateArchive.operation.archive;
    const led = await fetch(downloadUrl, { redirect: 'manual' });
    const address = led.headers.get('location') ?? '';
    expect([led.status, led.headers.get('cache-control'), led.headers.get('referrer-policy')]).toEqual([
      302,
      'private, no-store',
      'no-referrer',
    ]);
    expect(new URL(address).origin).toBe(server.endpoint);
    expect(new URL(address).searchParams.get('X-Amz-Expires')).toBe('60');
    const { rows } = await presigning.database.pool.query(
      "select payload ->> 'outcome' as outcome from events where kind = 'state_archive_download'",
    );
    expect(rows).toEqual([{ outcome: 'begun' }]);

    const file = await fetch(downloadUrl);
    const bytes = Buffer.from(await file.arrayBuffer());
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256);
    expect(file.headers.get('content-disposition')).toContain('demo-network');
    const part = await fetch(downloadUrl, { headers: { range: 'bytes=10-19' } });
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(10, 20))).toBe(true);
    expect((await fetch(address.replace(/demo-network/, 'other'))).status).toBe(403);
    expect((await fetch(downloadUrl.replace(/token=.*/, 'token=x'), { redirect: 'manual' })).status).toBe(
      404,
    );
    expect(presigning.log.join('')).not.toContain('X-Amz-Signature');
  } finally {
    await presigning.stop();
  }
});
