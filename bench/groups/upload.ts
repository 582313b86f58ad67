import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3';
import { startS3Server } from '../../test/support/s3-server.ts';
import type { BenchDatabase } from '../databases.ts';
import type { Group } from '../group.ts';
import { megabytes, verdict } from '../report.ts';
import { startBenchService } from '../service/service.ts';

const MEBIBYTE = 1024 * 1024;
const CUTS = 10;
/** The most memory that a replica may take, in bytes. */
const GOAL = 300e6;
const LINK_KEYS = 'the-key-of-the-links-of-the-bench';
const BUCKET = 'state-archives-of-the-bench';
const TUS = { 'tus-resumable': '1.0.0' };
const STAGE = `mutation ($byteLength: BigInt!, $sha256: Sha256!) {
  stageStateArchiveUpload(input: { byteLength: $byteLength, sha256: $sha256 }) { upload { id url } userErrors { message } } }`;

/**
 * A large upload that is cut again and again, and goes on at the other replica each time. The store is the one of
 * `S3_TEST_ENDPOINT`, with `S3_TEST_ACCESS_KEY` and `S3_TEST_SECRET_KEY`, or the tests' own.
 */
export const upload: Group = {
  name: 'upload',
  minutes: { full: 3, quick: 1 },
  async run({ server, directory, quick, tell }) {
    const bytes = (quick ? 64 : 1024) * MEBIBYTE;
    const path = join(directory, 'upload');
    const sha256 = await writeRandomFile(path, bytes);
    const database = await server.createDatabase('upload');
    const bucket = await openBucket();
    const environment = {
      ...bucket.environment,
      ARCHIVE_STORE_URL: `s3://${BUCKET}`,
      LINK_KEYS,
      MAX_ARCHIVE_BYTES: String(2 * bytes),
    };
    const replicas = [
      await startBenchService(database, { environment }),
      await startBenchService(database, { environment }),
    ];
    try {
      const [first] = replicas;
      if (first === undefined) throw new Error('There is no replica.');
      const { stageStateArchiveUpload: staged } = await first.client.run<{
        stageStateArchiveUpload: { upload: { id: string; url: string } };
      }>(STAGE, { byteLength: String(bytes), sha256 });
      const { id, url } = staged.upload;
      const urls = replicas.map(({ endpoint }) => {
        const address = new URL(url);
        address.host = new URL(endpoint).host;
        return address.href;
      });
      const began = performance.now();
      let offset = 0;
      for (let turn = 0; offset < bytes; turn += 1) {
        const address = urls[turn % urls.length] ?? '';
        const end = turn < CUTS ? Math.floor(((turn + 1) * bytes) / (CUTS + 1)) : bytes;
        await send(path, address, offset, bytes, end);
        offset = await offsetOf(urls[(turn + 1) % urls.length] ?? '');
        tell(`${Math.floor(offset / MEBIBYTE)} MiB after ${turn + 1} requests`);
      }
      const seconds = (performance.now() - began) / 1000;
      const keys = await keysOf(database, id);
      const hasArrived = (await bucket.digestOf(keys)) === sha256;
      const peaks = await Promise.all(replicas.map(async (replica) => (await replica.report()).peakMemory));
      await fetch(urls[0] ?? '', { method: 'DELETE', headers: TUS });
      const left = await bucket.left();
      return [
        {
          title: `An upload of ${bytes / MEBIBYTE} MiB, cut ${CUTS} times over two replicas`,
          head: ['', 'measured', 'goal', ''],
          rows: [
            [
              'the digest of what is in the store',
              hasArrived ? 'as announced' : 'another',
              'as announced',
              verdict(hasArrived),
            ],
            ['left in the store when it was ended', `${left}`, '0', verdict(left === 0)],
            ...peaks.map((peak, index) => [
              `peak RSS of replica ${index + 1}`,
              megabytes(peak),
              `≤ ${megabytes(GOAL)}`,
              verdict(peak <= GOAL),
            ]),
            ['pieces', String(keys.length), '', ''],
            ['time', `${seconds.toFixed(0)} s`, '', ''],
          ],
        },
      ];
    } finally {
      for (const replica of replicas) await replica.stop();
      await bucket.close();
      await database.drop();
      await rm(path, { force: true });
    }
  },
};

/** Writes a file of random bytes, and tells its digest. */
async function writeRandomFile(path: string, bytes: number): Promise<string> {
  await using file: FileHandle = await open(path, 'w', 0o600);
  const hash = createHash('sha256');
  for (let written = 0; written < bytes; written += MEBIBYTE) {
    const some = randomBytes(MEBIBYTE);
    hash.update(some);
    await file.write(some);
  }
  return hash.digest('hex');
}

async function openBucket() {
  const { S3_TEST_ENDPOINT, S3_TEST_ACCESS_KEY = '', S3_TEST_SECRET_KEY = '' } = process.env;
  const own = S3_TEST_ENDPOINT === undefined ? await startS3Server() : null;
  const environment = own?.environment ?? {
    AWS_ENDPOINT_URL_S3: S3_TEST_ENDPOINT ?? '',
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: S3_TEST_ACCESS_KEY,
    AWS_SECRET_ACCESS_KEY: S3_TEST_SECRET_KEY,
  };
  Object.assign(process.env, environment);
  const client = new S3Client({ forcePathStyle: true });
  own?.createBucket(BUCKET);
  if (own === null) await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  return {
    environment,
    async digestOf(keys: readonly string[]): Promise<string> {
      const hash = createHash('sha256');
      for (const key of keys) {
        const { Body } = await client.send(new GetObjectCommand({ Bucket: BUCKET, Key: `uploads/${key}` }));
        for await (const chunk of Body as Readable) hash.update(chunk);
      }
      return hash.digest('hex');
    },
    async left(): Promise<number> {
      const { KeyCount = 0 } = await client.send(new ListObjectsV2Command({ Bucket: BUCKET }));
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }));
      return KeyCount + Uploads.length;
    },
    async close() {
      client.destroy();
      await own?.close();
    },
  };
}

async function keysOf(database: BenchDatabase, id: string): Promise<string[]> {
  const rows = await database.query<{ key: string }>(
    `select object_key as key from state_archive.upload_piece where upload_id = '${id}' order by start_byte`,
  );
  return rows.map(({ key }) => key);
}

async function offsetOf(url: string): Promise<number> {
  const answer = await fetch(url, { method: 'HEAD', headers: TUS });
  return Number(answer.headers.get('upload-offset'));
}

/** Sends a file from `start` on, as if to its end, and cuts the connection when it has sent what is before `end`. */
async function send(path: string, url: string, start: number, bytes: number, end: number): Promise<void> {
  const sending = request(url, {
    method: 'PATCH',
    headers: {
      ...TUS,
      'upload-offset': String(start),
      'content-type': 'application/offset+octet-stream',
      'content-length': String(bytes - start),
    },
  });
  // A cut is what is wished for; to wait for an event would fail by it.
  sending.on('error', () => {});
  const event = (name: 'close' | 'drain') => new Promise((resolve) => sending.once(name, resolve));
  const closed = event('close');
  sending.on('response', (response) => response.resume());
  for await (const chunk of createReadStream(path, { start, end: end - 1, highWaterMark: 256 * 1024 })) {
    if (sending.destroyed) break;
    if (!sending.write(chunk)) await Promise.race([event('drain'), closed]);
  }
  if (end === bytes) sending.end();
  else sending.destroy();
  await closed;
}
