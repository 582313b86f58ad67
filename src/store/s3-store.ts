import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { finished, PassThrough, type Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  GetObjectLockConfigurationCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandInput,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  PutObjectCommand,
  PutObjectLegalHoldCommand,
  PutObjectRetentionCommand,
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
  RemovalRefusedError,
  RetentionRefusedError,
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
  /** Whether it can keep objects from being removed: S3 decides that when a bucket is made. */
  readonly hasObjectLock: boolean;
}

/**
 * Connects to a bucket, and finds out whether it can be read and written, and whether it has object lock.
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
  let hasObjectLock: boolean;
  try {
    await client.send(new ListObjectsV2Command({ Bucket, Prefix: probe.Key, MaxKeys: 1 }));
    await client.send(new PutObjectCommand({ ...probe, Body: '-' }));
    await client.send(new DeleteObjectCommand(probe));
    hasObjectLock = await findObjectLock(client, Bucket);
  } catch (error) {
    client.destroy();
    throw new OperatorError(`ARCHIVE_STORE_URL cannot be used: ${problemOf(error, Bucket)}`, {
      cause: error,
    });
  }
  return { ...location, client, hasObjectLock };
}

/** Whoever may not ask, or asks a server that has no such thing, has none. */
async function findObjectLock(client: S3Client, Bucket: string): Promise<boolean> {
  try {
    const { ObjectLockConfiguration } = await client.send(new GetObjectLockConfigurationCommand({ Bucket }));
    return ObjectLockConfiguration?.ObjectLockEnabled === 'Enabled';
  } catch (error) {
    if (error instanceof S3ServiceException && [400, 403, 404, 405, 501].includes(statusOf(error)))
      return false;
    throw error;
  }
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
  { client, bucket: Bucket, prefix, hasObjectLock }: Bucket,
  area: string,
  { isAddressed }: { readonly isAddressed: boolean } = { isAddressed: false },
): ObjectStore {
  const Prefix = `${joined(prefix, area)}/`;
  const at = (key: string) => {
    assertKey(key);
    return { Bucket, Key: Prefix + key };
  };
  const head = (key: string) => reaching(client.send(new HeadObjectCommand(at(key))));

  /**
   * Has an object kept, and believes what the bucket then shows: there are servers that ignore what they do not know, and
   * credentials that may lock and not see it, which a later removal would take for free.
   */
  async function keep(
    key: string,
    change: Promise<unknown>,
    isKept: (object: HeadObjectCommandOutput) => boolean,
  ) {
    try {
      await change;
    } catch (error) {
      if (!(error instanceof S3ServiceException) || statusOf(error) >= 500) throw unavailable(error);
      if (MISSING.includes(error.name)) throw new ObjectMissingError(key, { cause: error });
      throw new RetentionRefusedError(`the bucket refuses it (${error.name})`, { cause: error });
    }
    const there = await head(key);
    if (there === null) throw new ObjectMissingError(key);
    if (!isKept(there)) {
      throw new RetentionRefusedError(
        'the bucket does not show it, or not to these credentials, which need s3:GetObjectRetention and s3:GetObjectLegalHold',
      );
    }
  }

  /** @throws when nobody knows whether the object is there, or it is another's. */
  async function putOnce(key: string, file: LocalFile, signal: AbortSignal): Promise<void> {
    const { size } = await stat(file.path);
    const params = { ...at(key), IfNoneMatch: '*', Metadata: { sha256: file.sha256 } };
    if (size <= PART_BYTES) {
      // Read once, and sent as it is: an Upload would put it together from what a stream gives, and take twice the memory.
      const Body = await readFile(file.path, { signal });
      await client.send(new PutObjectCommand({ ...params, Body }), { abortSignal: signal });
      return;
    }
    const body = createReadStream(file.path, { signal });
    const abortController = new AbortController();
    const callOff = () => abortController.abort();
    signal.addEventListener('abort', callOff, { once: true });
    try {
      await new Upload({
        client,
        params: { ...params, Body: body },
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
          const there = await head(key);
          if (there?.Metadata?.sha256 === file.sha256) return;
          if (there !== null) throw new ObjectExistsError(key);
          if (!isConflict(error) || tries === PUT_TRIES) throw unavailable(error);
        }
      }
    },

    async sizeOf(key) {
      const found = await head(key);
      return found && BigInt(found.ContentLength ?? 0);
    },

    async read(key, range) {
      const Range = range && `bytes=${range.start}-${range.end}`;
      const found = await reaching(client.send(new GetObjectCommand({ ...at(key), Range })));
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

    retention: hasObjectLock
      ? {
          async retainUntil(key, seconds) {
            const until = new Date(seconds * 1000);
            const isLongEnough = ({ ObjectLockMode, ObjectLockRetainUntilDate }: HeadObjectCommandOutput) =>
              ObjectLockMode === 'COMPLIANCE' &&
              ObjectLockRetainUntilDate !== undefined &&
              ObjectLockRetainUntilDate >= until;
            const there = await head(key);
            if (there !== null && isLongEnough(there)) return;
            const Retention = { Mode: 'COMPLIANCE', RetainUntilDate: until } as const;
            await keep(
              key,
              client.send(new PutObjectRetentionCommand({ ...at(key), Retention })),
              isLongEnough,
            );
          },
          async hold(key, isHeld) {
            const Status = isHeld ? 'ON' : 'OFF';
            await keep(
              key,
              client.send(new PutObjectLegalHoldCommand({ ...at(key), LegalHold: { Status } })),
              ({ ObjectLockLegalHoldStatus = 'OFF' }) => ObjectLockLegalHoldStatus === Status,
            );
          },
        }
      : null,

    async *list(begin = '', after = '') {
      const under = {
        Bucket,
        Prefix: Prefix + begin,
        ...(after !== '' && { StartAfter: Prefix + after }),
      };
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
      // The bucket would not refuse: it would hide the object behind a marker.
      if (hasObjectLock && isLocked(await head(key))) return false;
      await reaching(client.send(new DeleteObjectCommand(at(key))), notLetGo);
      return true;
    },

    async removeLeftovers(olderThanMs) {
      let refusal: RemovalRefusedError | null = null;
      let from: Pick<ListMultipartUploadsCommandInput, 'KeyMarker' | 'UploadIdMarker'> | null = {};
      while (from !== null) {
        const page: ListMultipartUploadsCommandOutput | null = await reaching(
          client.send(new ListMultipartUploadsCommand({ Bucket, Prefix, ...from })),
        );
        for (const { Key, UploadId, Initiated } of page?.Uploads ?? []) {
          if (Initiated === undefined || Date.now() - Initiated.getTime() < olderThanMs) continue;
          const aborted = client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }));
          await reaching(aborted, notLetGo).catch((error: unknown) => {
            if (!(error instanceof RemovalRefusedError)) throw error;
            refusal = error;
          });
        }
        from = page?.IsTruncated
          ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker }
          : null;
      }
      if (refusal !== null) throw refusal;
    },
  };
}

function isLocked(object: HeadObjectCommandOutput | null): boolean {
  if (object === null) return false;
  const { ObjectLockLegalHoldStatus, ObjectLockRetainUntilDate } = object;
  return ObjectLockLegalHoldStatus === 'ON' || Number(ObjectLockRetainUntilDate ?? 0) > Date.now();
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

/** How S3 says that what was asked for is not there. */
const MISSING = ['NoSuchKey', 'NotFound', 'NoSuchUpload'];

/** What the bucket answers; null when what was asked for is not there. */
async function reaching<Answer>(
  answer: Promise<Answer>,
  failureOf: (error: unknown) => StoreUnavailableError = unavailable,
): Promise<Answer | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof S3ServiceException && MISSING.includes(error.name)) return null;
    throw failureOf(error);
  }
}

/** What a removal failed with: the store may let one go, and not another. */
function notLetGo(error: unknown): StoreUnavailableError {
  const isDenied = error instanceof S3ServiceException && statusOf(error) === 403;
  return isDenied ? new RemovalRefusedError(error.name, { cause: error }) : unavailable(error);
}

function unavailable(error: unknown): StoreUnavailableError {
  const { name = 'unknown', code } = error as { name?: string; code?: string };
  return new StoreUnavailableError(code ?? name, { cause: error });
}

function joined(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** Whether another put of the same key was under way at the same moment. */
function isConflict(error: unknown): boolean {
  return error instanceof S3ServiceException && [409, 412].includes(statusOf(error));
}

function statusOf({ $metadata }: S3ServiceException): number {
  return $metadata.httpStatusCode ?? 0;
}
