import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { finished, PassThrough, type Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandInput,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { attachment } from '../base/content-disposition.ts';
import { OperatorError } from '../base/operator-error.ts';
import {
  assertKey,
  type LocalFile,
  ObjectExistsError,
  ObjectMissingError,
  type ObjectStore,
  StoreUnavailableError,
} from './object-store.ts';

/** Where the objects are. Region, credentials and the rest are read by the AWS SDK from its own environment. */
export interface S3Location {
  readonly bucket: string;
  /** What every key begins with, without a slash at its end; '' for nothing. */
  readonly prefix: string;
  /** Whether the server was named by an address of its own, which then names the bucket in the path. */
  readonly hasOwnEndpoint: boolean;
}

/** What is in memory of an upload at a time; an object has at most 10 000 parts. */
const PART_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 10_000;
/** Beyond this a server that says nothing is given up, and asked again at most three times. */
const CONNECT_MS = 5_000;
const ANSWER_MS = 60_000;
/** A stream that nothing comes through, because its reader is slow, lasts longer than the connection to that reader. */
const IDLE_MS = 150_000;
/** How often a put is begun anew that met another one. */
const PUT_TRIES = 4;

/** The connection to a bucket. */
export interface Bucket extends S3Location {
  readonly client: S3Client;
}

/**
 * Connects to a bucket, and finds out whether it can be read and written.
 *
 * @throws OperatorError, in one line, when it cannot.
 */
export async function openBucket(location: S3Location): Promise<Bucket> {
  const client = new S3Client({
    forcePathStyle: location.hasOwnEndpoint,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: ANSWER_MS,
      throwOnRequestTimeout: true,
      socketTimeout: IDLE_MS,
    },
  });
  const { bucket: Bucket } = location;
  const probe = { Bucket, Key: joined(location.prefix, 'probe') };
  try {
    await client.send(new ListObjectsV2Command({ Bucket, Prefix: probe.Key, MaxKeys: 1 }));
    await client.send(new PutObjectCommand({ ...probe, Body: '-' }));
    await client.send(new DeleteObjectCommand(probe));
  } catch (error) {
    client.destroy();
    throw new OperatorError(`ARCHIVE_STORE_URL cannot be used: ${problemOf(error, Bucket)}`, {
      cause: error,
    });
  }
  return { ...location, client };
}

function problemOf(error: unknown, bucket: string): string {
  const { name, message, code } = error as { name?: string; message?: string; code?: string };
  switch (name) {
    case 'NoSuchBucket':
      return `there is no bucket ${bucket}.`;
    case 'AccessDenied':
    case 'AllAccessDisabled':
      return `the bucket ${bucket} is closed to these credentials: they have to list, read, write and delete objects in it.`;
    case 'InvalidAccessKeyId':
    case 'SignatureDoesNotMatch':
    case 'ExpiredToken':
    case 'InvalidToken':
      return `the credentials are not accepted (${name}).`;
    case 'CredentialsProviderError':
      return 'there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or another source of the AWS SDK.';
    case 'PermanentRedirect':
    case 'AuthorizationHeaderMalformed':
      return `the bucket ${bucket} is in another region; set AWS_REGION.`;
    default:
      return message === 'Region is missing'
        ? 'no region is set; set AWS_REGION.'
        : `the bucket ${bucket} cannot be reached (${code ?? name}).`;
  }
}

/**
 * The objects of a bucket whose keys begin with `area`.
 *
 * @param options.isAddressed whether addresses of objects are given out.
 */
export function openS3Store(
  { client, bucket: Bucket, prefix }: Bucket,
  area: string,
  { isAddressed }: { readonly isAddressed: boolean } = { isAddressed: false },
): ObjectStore {
  const Prefix = `${joined(prefix, area)}/`;
  const at = (key: string) => {
    assertKey(key);
    return { Bucket, Key: Prefix + key };
  };
  const head = (key: string) => unlessMissing(client.send(new HeadObjectCommand(at(key))));

  /** @throws when nobody knows whether the object is there, or it is another's. */
  async function putOnce(key: string, file: LocalFile, signal: AbortSignal): Promise<void> {
    const { size } = await stat(file.path);
    const body = createReadStream(file.path, { signal });
    const abortController = new AbortController();
    const callOff = () => abortController.abort();
    signal.addEventListener('abort', callOff, { once: true });
    try {
      await new Upload({
        client,
        params: { ...at(key), Body: body, IfNoneMatch: '*', Metadata: { sha256: file.sha256 } },
        queueSize: 1,
        partSize: Math.max(PART_BYTES, Math.ceil(size / MAX_PARTS)),
        abortController,
      }).done();
    } finally {
      signal.removeEventListener('abort', callOff);
      body.destroy();
    }
  }

  return {
    async put(key, file, signal) {
      for (let tries = 1; ; tries += 1) {
        signal.throwIfAborted();
        try {
          return await putOnce(key, file, signal);
        } catch (error) {
          signal.throwIfAborted();
          // An answer may have been lost: what is there tells what came of it, and whose it is.
          const there = await reaching(head(key));
          if (there?.Metadata?.sha256 === file.sha256) return;
          if (there !== null) throw new ObjectExistsError(key);
          if (!isConflict(error) || tries === PUT_TRIES) throw unavailable(error);
        }
      }
    },

    async sizeOf(key) {
      const found = await reaching(head(key));
      return found && BigInt(found.ContentLength ?? 0);
    },

    async read(key, range) {
      const Range = range && `bytes=${range.start}-${range.end}`;
      const found = await reaching(unlessMissing(client.send(new GetObjectCommand({ ...at(key), Range }))));
      if (found === null) throw new ObjectMissingError(key);
      // In Node.js it is one.
      return tellingFailure(found.Body as Readable);
    },

    addressOf: isAddressed
      ? (key, fileName, expiresIn) =>
          getSignedUrl(
            client,
            new GetObjectCommand({
              ...at(key),
              ResponseContentDisposition: attachment(fileName),
              ResponseContentType: 'application/octet-stream',
              ResponseCacheControl: 'private, no-store',
            }),
            { expiresIn },
          )
      : null,

    async *list(begin = '') {
      const under = { Bucket, Prefix: Prefix + begin };
      try {
        for await (const { Contents = [] } of paginateListObjectsV2({ client }, under)) {
          for (const { Key = '', Size = 0, LastModified = new Date() } of Contents) {
            yield {
              key: Key.slice(Prefix.length),
              sizeBytes: BigInt(Size),
              ageMs: Date.now() - LastModified.getTime(),
            };
          }
        }
      } catch (error) {
        throw unavailable(error);
      }
    },

    async remove(key) {
      await reaching(client.send(new DeleteObjectCommand(at(key))));
    },

    async removeLeftovers(olderThanMs) {
      let from: Pick<ListMultipartUploadsCommandInput, 'KeyMarker' | 'UploadIdMarker'> | null = {};
      while (from !== null) {
        const page: ListMultipartUploadsCommandOutput = await reaching(
          client.send(new ListMultipartUploadsCommand({ Bucket, Prefix, ...from })),
        );
        for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
          if (Initiated === undefined || Date.now() - Initiated.getTime() < olderThanMs) continue;
          await reaching(
            unlessMissing(client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))),
          );
        }
        const { NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
        from = page.IsTruncated ? { KeyMarker, UploadIdMarker } : null;
      }
    },
  };
}

/** A stream that fails as the store does. */
function tellingFailure(body: Readable): Readable {
  const told = new PassThrough();
  finished(body, (error) => {
    if (error) told.destroy(unavailable(error));
  });
  told.once('close', () => body.destroy());
  return body.pipe(told);
}

async function reaching<Answer>(answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    throw unavailable(error);
  }
}

function unavailable(error: unknown): StoreUnavailableError {
  const { name = 'unknown', code } = error as { name?: string; code?: string };
  return new StoreUnavailableError(code ?? name, { cause: error });
}

function joined(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}/${name}`;
}

async function unlessMissing<Found>(found: Promise<Found>): Promise<Found | null> {
  try {
    return await found;
  } catch (error) {
    if (
      error instanceof S3ServiceException &&
      ['NoSuchKey', 'NotFound', 'NoSuchUpload'].includes(error.name)
    ) {
      return null;
    }
    throw error;
  }
}

/** Whether another put of the same key was under way at the same moment. */
function isConflict(error: unknown): boolean {
  return error instanceof S3ServiceException && [409, 412].includes(error.$metadata.httpStatusCode ?? 0);
}
