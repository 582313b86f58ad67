import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { CreateBucketCommand, CreateMultipartUploadCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { OperatorError } from '../../src/base/operator-error.ts';
import type { ObjectStore } from '../../src/store/object-store.ts';
import { type Bucket, openBucket, openS3Store } from '../../src/store/s3-store.ts';
import { type S3Request, type S3Server, startS3Server } from '../support/s3-server.ts';
import { describeObjectStore, describeRetention } from './object-store-contract.ts';

const BUCKET = 'archives-of-tests';
const LOCKED = 'archives-of-tests-locked';
const location = { bucket: BUCKET, prefix: 'a/prefix', hasOwnEndpoint: true };
const never = new AbortController().signal;

/** Another server, to be held to the same contract: its address, with the SDK's own variables for the rest. */
const { S3_TEST_ENDPOINT } = process.env;

let server: S3Server;
let directory: string;
const environmentBefore = { ...process.env };
beforeAll(async () => {
  server = await startS3Server();
  server.createBucket(BUCKET);
  server.createBucket(LOCKED, { objectLock: true });
  Object.assign(process.env, server.environment);
  directory = await mkdtemp(join(tmpdir(), 's3-store-test-'));
});
afterAll(async () => {
  process.env = environmentBefore;
  await server.close();
  await rm(directory, { recursive: true, force: true });
});

if (S3_TEST_ENDPOINT !== undefined) {
  describeObjectStore('the bucket of another server', () => openIndependentStore(false));
  describeRetention('the bucket of another server', () => openIndependentStore(true));
}

async function openIndependentStore(isLocked: boolean): Promise<ObjectStore> {
  const { S3_TEST_ACCESS_KEY: accessKeyId = '', S3_TEST_SECRET_KEY: secretAccessKey = '' } = process.env;
  Object.assign(process.env, {
    AWS_ENDPOINT_URL_S3: S3_TEST_ENDPOINT,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  });
  try {
    const name = `state-archive-${randomUUID()}`;
    const client = new S3Client({ forcePathStyle: true });
    await client.send(new CreateBucketCommand({ Bucket: name, ObjectLockEnabledForBucket: isLocked }));
    return openS3Store(await openBucket({ ...location, bucket: name }), 'objects');
  } finally {
    Object.assign(process.env, server.environment);
  }
}

describeObjectStore('a bucket', async () => openS3Store(await openBucket(location), 'objects'));
describeRetention('a bucket', async () =>
  openS3Store(await openBucket({ ...location, bucket: LOCKED }), 'objects'),
);

describe('a bucket at the start', () => {
  test('that can be used is left as it was', async () => {
    const before = server.keys(BUCKET);
    (await openBucket(location)).client.destroy();
    expect(server.keys(BUCKET)).toEqual(before);
  });

  test.each([
    ['is not there', { bucket: 'no-such-bucket' }, {}, 'there is no bucket no-such-bucket.'],
    [
      'knows no such key',
      {},
      { AWS_ACCESS_KEY_ID: 'other' },
      'the credentials are not accepted (InvalidAccessKeyId).',
    ],
    [
      'knows another secret',
      {},
      { AWS_SECRET_ACCESS_KEY: 'other' },
      'the credentials are not accepted (SignatureDoesNotMatch).',
    ],
    [
      'is not reached',
      {},
      { AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1' },
      `the bucket ${BUCKET} cannot be reached`,
    ],
  ])(
    'that %s is one line for the operator, without a secret',
    async (_what, elsewhere, environment, line) => {
      Object.assign(process.env, environment);
      try {
        const refused = await openBucket({ ...location, ...elsewhere }).catch((error: unknown) => error);
        expect(refused).toBeInstanceOf(OperatorError);
        expect((refused as OperatorError).message).not.toMatch(/test-secret|\n/);
        expect((refused as OperatorError).message).toContain(`ARCHIVE_STORE_URL cannot be used: ${line}`);
      } finally {
        Object.assign(process.env, server.environment);
      }
    },
  );
});

describe('what goes wrong on the way to a bucket', () => {
  let bucket: Bucket;
  beforeAll(async () => {
    bucket = await openBucket(location);
  });
  afterEach(() => server.heal());

  const small = randomBytes(1000);
  const large = randomBytes(9 * 1024 * 1024);
  async function localFile(bytes: Buffer) {
    const path = join(directory, randomUUID());
    await writeFile(path, bytes);
    return { path, sha256: createHash('sha256').update(bytes).digest('hex') };
  }
  const isPut = ({ method, query }: S3Request) => method === 'PUT' && !query.has('uploadId');
  const isPart = ({ method, query }: S3Request) => method === 'PUT' && query.has('uploadId');
  const isBegin = ({ method, query }: S3Request) => method === 'POST' && query.has('uploads');
  const isCompletion = ({ method, query }: S3Request) => method === 'POST' && query.has('uploadId');
  const isHead = ({ method }: S3Request) => method === 'HEAD';
  const isGet = ({ method }: S3Request) => method === 'GET';
  const isDelete = ({ method }: S3Request) => method === 'DELETE';

  const steps: [string, Buffer, (request: S3Request) => boolean][] = [
    ['putting a small object', small, isPut],
    ['beginning a large object', large, isBegin],
    ['putting a part', large, isPart],
    ['completing a large object', large, isCompletion],
  ];

  describe.each(steps)('%s', (_step, bytes, on) => {
    test.each(['before', 'after', 'refused'] as const)('once, %s it was done, is no failure', async (how) => {
      const store = openS3Store(bucket, 'faults');
      const key = randomUUID();
      server.inject({ on, how, times: 1 });
      await store.put(key, await localFile(bytes), never);
      expect((await buffer(await store.read(key))).equals(bytes)).toBe(true);
    });

    test('whenever it is tried is a failure that leaves nothing', async () => {
      const store = openS3Store(bucket, 'faults');
      const key = randomUUID();
      server.inject({ on, how: 'before', times: Number.POSITIVE_INFINITY });
      await expect(store.put(key, await localFile(bytes), never)).rejects.toThrow();
      expect(await store.sizeOf(key)).toBeNull();
      server.heal();
      await store.put(key, await localFile(bytes), never);
      expect((await buffer(await store.read(key))).equals(bytes)).toBe(true);
    });

    test('done, and never answered, is told by what is there', async () => {
      const store = openS3Store(bucket, 'faults');
      const key = randomUUID();
      server.inject({ on, how: 'after', times: Number.POSITIVE_INFINITY });
      const isDone = await store.put(key, await localFile(bytes), never).then(
        () => true,
        () => false,
      );
      expect(await store.sizeOf(key)).toBe(isDone ? BigInt(bytes.length) : null);
      expect(isDone).toBe(on === isPut || on === isCompletion);
    });
  });

  test('when nobody can tell what came of a put it is a failure, and to ask again comes to the same', async () => {
    const store = openS3Store(bucket, 'faults');
    const key = randomUUID();
    const file = await localFile(small);
    server.inject({ on: isPut, how: 'after', times: Number.POSITIVE_INFINITY });
    server.inject({ on: isHead, how: 'before', times: Number.POSITIVE_INFINITY });
    await expect(store.put(key, file, never)).rejects.toThrow();
    server.heal();
    await store.put(key, file, never);
    expect((await buffer(await store.read(key))).equals(small)).toBe(true);
  });

  test('keeping an object once is no failure, and is one whenever the bucket does not show that it does', async () => {
    const store = openS3Store(await openBucket({ ...location, bucket: LOCKED }), 'faults');
    const { retention } = store;
    if (retention === null) throw new Error('The bucket has no object lock.');
    const later = Math.ceil(Date.now() / 1000) + 3600;
    const isRetention = ({ query }: S3Request) => query.has('retention');
    const isHold = ({ query }: S3Request) => query.has('legal-hold');
    for (const how of ['before', 'after', 'refused'] as const) {
      const key = randomUUID();
      await store.put(key, await localFile(small), never);
      for (const on of [isRetention, isHold]) server.inject({ on, how, times: 1 });
      await retention.hold(key, true);
      await retention.retainUntil(key, later);
      server.inject({ on: isHold, how, times: 1 });
      await retention.hold(key, false);
      expect(await store.remove(key)).toBe(false);
    }
    const key = randomUUID();
    await store.put(key, await localFile(small), never);
    const outcomes = [
      ['ignored', 'RetentionRefusedError'],
      ['before', 'StoreUnavailableError'],
    ] as const;
    for (const [how, name] of outcomes) {
      for (const on of [isRetention, isHold]) server.inject({ on, how, times: Number.POSITIVE_INFINITY });
      await expect(retention.hold(key, true)).rejects.toMatchObject({ name });
      await expect(retention.retainUntil(key, later)).rejects.toMatchObject({ name });
      server.heal();
    }
    expect(await store.remove(key)).toBe(true);
    expect(server.hidden(LOCKED)).toBe(0);
  });

  test('keeping an object in a bucket without object lock is none of a store’s', async () => {
    expect(openS3Store(bucket, 'faults').retention).toBeNull();
    const store = openS3Store({ ...bucket, hasObjectLock: true }, 'faults');
    const key = randomUUID();
    await store.put(key, await localFile(small), never);
    await expect(store.retention?.hold(key, true)).rejects.toMatchObject({ name: 'RetentionRefusedError' });
  });

  test('reading, looking and removing once is no failure, and whenever it is tried is one', async () => {
    const store = openS3Store(bucket, 'faults');
    const key = randomUUID();
    await store.put(key, await localFile(small), never);
    for (const how of ['before', 'after', 'refused'] as const) {
      server.inject({ on: isHead, how, times: 1 });
      expect(await store.sizeOf(key)).toBe(1000n);
      server.inject({ on: isGet, how, times: 1 });
      expect((await buffer(await store.read(key))).equals(small)).toBe(true);
    }
    for (const on of [isHead, isGet, isDelete]) {
      server.inject({ on, how: 'before', times: Number.POSITIVE_INFINITY });
    }
    await expect(store.sizeOf(key)).rejects.toThrow();
    await expect(store.read(key)).rejects.toThrow();
    await expect(store.remove(key)).rejects.toThrow();
    server.heal();
    server.inject({ on: isDelete, how: 'after', times: 1 });
    await store.remove(key);
    expect(await store.sizeOf(key)).toBeNull();
  });

  test('a large object that was begun and never completed is swept when it is old, and not before', async () => {
    const store = openS3Store(bucket, 'leftovers');
    const client = new S3Client({ forcePathStyle: true });
    const [ours, others] = [`a/prefix/leftovers/${randomUUID()}`, 'elsewhere/of-somebody'];
    const before = server.openUploads;
    for (const Key of [ours, others]) {
      await client.send(new CreateMultipartUploadCommand({ Bucket: BUCKET, Key }));
    }
    await store.removeLeftovers(3_600_000);
    expect(server.openUploads).toBe(before + 2);
    await store.removeLeftovers(0);
    expect(server.openUploads).toBe(before + 1);
    client.destroy();
  });
});
