import { createHash, createHmac, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** What a request is, to choose those that something is to happen to. */
export interface S3Request {
  readonly method: string;
  readonly key: string;
  readonly query: URLSearchParams;
}

/** What is to happen to requests. */
export interface S3Fault {
  readonly on: (request: S3Request) => boolean;
  /**
   * `before`: the connection ends, and nothing was done. `after`: it was done, and the connection ends without an answer.
   * `refused`: 503 SlowDown. `denied`: 403 AccessDenied. `frozen`: no answer, and no end. `ignored`: 200, and nothing was done. `held`: done and answered
   * when all faults are ended.
   */
  readonly how: 'before' | 'after' | 'refused' | 'denied' | 'frozen' | 'ignored' | 'held';
  /** How many requests it happens to. */
  readonly times: number;
}

/** An object storage that keeps its objects in memory, as strict as the real one where this project relies on it. */
export interface S3Server {
  readonly endpoint: string;
  /** The variables that lead the AWS SDK here. */
  readonly environment: Readonly<Record<string, string>>;
  /** What was asked, as in `PUT archives/x`, oldest first. */
  readonly requests: string[];
  /** The keys of the objects in a bucket. */
  keys(bucket: string): string[];
  /** The bytes of an object; none when it is not there. */
  object(bucket: string, key: string): Buffer;
  /** How many multipart uploads are neither completed nor aborted. */
  readonly openUploads: number;
  /** Lets all that is there be older, as if so much time had gone by. */
  letTimePass(milliseconds: number): void;
  /** How many objects of a bucket were deleted while they were locked: in a bucket with versions they are there still, and hidden. */
  hidden(bucket: string): number;
  createBucket(name: string, options?: { readonly objectLock?: boolean }): void;
  inject(fault: S3Fault): void;
  /** Ends all faults. */
  heal(): void;
  close(): Promise<void>;
}

interface StoredObject {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly at: Date;
  readonly headers: Record<string, string>;
}
interface Bucket {
  readonly objects: Map<string, StoredObject>;
  /** What was locked and is hidden behind a marker, as in a bucket with versions. */
  readonly hidden: Set<StoredObject>;
  readonly objectLock: boolean;
}
interface MultipartUpload {
  readonly bucket: string;
  readonly key: string;
  readonly at: Date;
  readonly headers: Record<string, string>;
  readonly parts: Map<number, { readonly bytes: Buffer; readonly etag: string }>;
}

const ACCESS_KEY = 'test-access-key';
const SECRET = 'test-secret-key';
const MIN_PART_BYTES = 5 * 1024 * 1024;

class S3Error extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string) {
    super(code);
    this.status = status;
    this.code = code;
  }
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

/** Starts the server on a free port of this machine. */
export async function startS3Server(): Promise<S3Server> {
  const buckets = new Map<string, Bucket>();
  const uploads = new Map<string, MultipartUpload>();
  const faults: { fault: S3Fault; left: number }[] = [];
  let healed = Promise.withResolvers<void>();
  const requests: string[] = [];

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://s3.test');
    const [, bucketName = '', ...rest] = url.pathname.split('/');
    const key = rest.map(decodeURIComponent).join('/');
    const asked = { method: request.method ?? 'GET', key, query: url.searchParams };
    requests.push(`${asked.method} ${key}`);
    const injected = faults.find(({ fault, left }) => left > 0 && fault.on(asked));
    if (injected) injected.left -= 1;
    const how = injected?.fault.how;
    const bytes = await buffer(request);
    if (how === 'frozen') return;
    if (how === 'before') return void request.socket.destroy();
    if (how === 'held') await healed.promise;
    let answer: Answer;
    try {
      if (how === 'refused') throw new S3Error(503, 'SlowDown');
      if (how === 'denied') throw new S3Error(403, 'AccessDenied');
      verifySignature(request, url, bytes);
      const bucket = buckets.get(bucketName);
      if (bucket === undefined) throw new S3Error(404, 'NoSuchBucket');
      if (how === 'ignored') answer = { status: 200 };
      else
        answer =
          key === ''
            ? ofBucket(bucketName, bucket, url.searchParams)
            : answerFor(bucketName, bucket, request, asked, bytes);
    } catch (error) {
      if (!(error instanceof S3Error)) throw error;
      answer = {
        status: error.status,
        headers: { 'content-type': 'application/xml' },
        body: `<Error><Code>${error.code}</Code><Message>${error.code}</Message></Error>`,
      };
    }
    if (how === 'after') return void request.socket.destroy();
    const body = Buffer.from(answer.body ?? '');
    response.writeHead(answer.status, {
      'content-length': String(body.length),
      'x-amz-request-id': randomUUID(),
      ...answer.headers,
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  function ofBucket(name: string, bucket: Bucket, query: URLSearchParams): Answer {
    if (!query.has('object-lock')) return listing(name, bucket, query);
    if (!bucket.objectLock) throw new S3Error(404, 'ObjectLockConfigurationNotFoundError');
    return xml('ObjectLockConfiguration', '<ObjectLockEnabled>Enabled</ObjectLockEnabled>');
  }

  function listing(name: string, { objects }: Bucket, query: URLSearchParams): Answer {
    const prefix = query.get('prefix') ?? '';
    if (query.has('uploads')) {
      const found = [...uploads].filter(([, { bucket, key }]) => bucket === name && key.startsWith(prefix));
      return xml(
        'ListMultipartUploadsResult',
        `<IsTruncated>false</IsTruncated>${found
          .map(
            ([id, { key, at }]) =>
              `<Upload><Key>${escaped(key)}</Key><UploadId>${id}</UploadId><Initiated>${at.toISOString()}</Initiated></Upload>`,
          )
          .join('')}`,
      );
    }
    // A small page, so that whoever lists has to ask for the next.
    const limit = Math.min(Number(query.get('max-keys') ?? 50), 50);
    const after = query.get('continuation-token') ?? query.get('start-after') ?? '';
    const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
    const page = keys.slice(0, limit);
    const contents = page.map((key) => {
      const { bytes, at } = objects.get(key) as StoredObject;
      return `<Contents><Key>${escaped(key)}</Key><Size>${bytes.length}</Size><LastModified>${at.toISOString()}</LastModified></Contents>`;
    });
    const isTruncated = keys.length > page.length;
    const next = isTruncated
      ? `<NextContinuationToken>${escaped(page.at(-1) ?? '')}</NextContinuationToken>`
      : '';
    return xml('ListBucketResult', `<IsTruncated>${isTruncated}</IsTruncated>${next}${contents.join('')}`);
  }

  function answerFor(
    bucketName: string,
    bucket: Bucket,
    request: IncomingMessage,
    { method, key, query }: S3Request,
    bytes: Buffer,
  ): Answer {
    const { objects } = bucket;
    const refuseTaken = () => {
      if (request.headers['if-none-match'] === '*' && objects.has(key)) {
        throw new S3Error(412, 'PreconditionFailed');
      }
    };
    const uploadId = query.get('uploadId');
    if (method === 'POST' && query.has('uploads')) {
      const id = randomUUID();
      const headers = keptHeaders(request, bucket);
      uploads.set(id, { bucket: bucketName, key, at: new Date(), headers, parts: new Map() });
      return xml('InitiateMultipartUploadResult', `<UploadId>${id}</UploadId>`);
    }
    if (uploadId !== null) {
      const upload = uploads.get(uploadId);
      if (upload === undefined || upload.key !== key) throw new S3Error(404, 'NoSuchUpload');
      if (method === 'PUT') {
        upload.parts.set(Number(query.get('partNumber')), { bytes, etag: etagOf(bytes) });
        return { status: 200, headers: { etag: etagOf(bytes) } };
      }
      if (method === 'DELETE') {
        uploads.delete(uploadId);
        return { status: 204 };
      }
      refuseTaken();
      const whole = assembled(upload, String(bytes));
      objects.set(key, { bytes: whole, etag: `"${uploadId}-1"`, at: new Date(), headers: upload.headers });
      uploads.delete(uploadId);
      return xml('CompleteMultipartUploadResult', `<ETag>${escaped(`"${uploadId}-1"`)}</ETag>`);
    }
    if (method === 'PUT' && (query.has('retention') || query.has('legal-hold'))) {
      lock(bucket, key, String(bytes));
      return { status: 200 };
    }
    if (method === 'PUT') {
      refuseTaken();
      objects.set(key, { bytes, etag: etagOf(bytes), at: new Date(), headers: keptHeaders(request, bucket) });
      return { status: 200, headers: { etag: etagOf(bytes) } };
    }
    if (method === 'DELETE') {
      const object = objects.get(key);
      if (object !== undefined && isLocked(object)) bucket.hidden.add(object);
      objects.delete(key);
      return { status: 204 };
    }
    const object = objects.get(key);
    if (object === undefined) throw new S3Error(404, 'NoSuchKey');
    return reading(object, request, query);
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    endpoint,
    environment: {
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: ACCESS_KEY,
      AWS_SECRET_ACCESS_KEY: SECRET,
    },
    requests,
    keys: (bucket) => [...(buckets.get(bucket)?.objects.keys() ?? [])].sort(),
    object: (bucket, key) => buckets.get(bucket)?.objects.get(key)?.bytes ?? Buffer.alloc(0),
    get openUploads() {
      return uploads.size;
    },
    letTimePass(milliseconds) {
      const stored = [...buckets.values()].flatMap(({ objects }) => [...objects.values()]);
      for (const { at } of [...stored, ...uploads.values()]) at.setTime(at.getTime() - milliseconds);
    },
    hidden: (bucket) => buckets.get(bucket)?.hidden.size ?? 0,
    createBucket(name, { objectLock = false } = {}) {
      buckets.set(name, { objects: new Map(), hidden: new Set(), objectLock });
    },
    inject(fault) {
      faults.push({ fault, left: fault.times });
    },
    heal() {
      faults.length = 0;
      healed.resolve();
      healed = Promise.withResolvers();
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** What a client says of an object, and is told again. */
function keptHeaders(request: IncomingMessage, { objectLock }: Bucket): Record<string, string> {
  const kept = Object.entries(request.headers).filter(([name]) =>
    /^x-amz-(meta|object-lock)-|^content-type$/.test(name),
  );
  if (!objectLock && kept.some(([name]) => name.startsWith('x-amz-object-lock-'))) {
    throw new S3Error(400, 'InvalidRequest');
  }
  return Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
}

const RETAIN_UNTIL = 'x-amz-object-lock-retain-until-date';
const MODE = 'x-amz-object-lock-mode';
const LEGAL_HOLD = 'x-amz-object-lock-legal-hold';

function isLocked({ headers }: StoredObject): boolean {
  return headers[LEGAL_HOLD] === 'ON' || Date.parse(headers[RETAIN_UNTIL] ?? '') > Date.now();
}

/** What is kept in compliance mode is never kept for less long, nor in another mode. */
function lock({ objects, objectLock }: Bucket, key: string, asked: string): void {
  const object = objects.get(key);
  if (object === undefined) throw new S3Error(404, 'NoSuchKey');
  if (!objectLock) throw new S3Error(400, 'InvalidRequest');
  const { headers } = object;
  const value = (name: string) => new RegExp(`<${name}>(.*?)</${name}>`).exec(asked)?.[1];
  const [status, mode, until] = [value('Status'), value('Mode'), value('RetainUntilDate')];
  if (status !== undefined) headers[LEGAL_HOLD] = status;
  if (until === undefined) return;
  if (!(Date.parse(until) > Date.now())) throw new S3Error(400, 'InvalidArgument');
  const isLess = mode !== 'COMPLIANCE' || Date.parse(until) < Date.parse(headers[RETAIN_UNTIL] ?? '');
  if (headers[MODE] === 'COMPLIANCE' && isLess) throw new S3Error(403, 'AccessDenied');
  Object.assign(headers, { [MODE]: mode, [RETAIN_UNTIL]: until });
}

function assembled({ parts }: MultipartUpload, completion: string): Buffer {
  const named = [...completion.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = '']) => ({
    number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
    etag: /<ETag>(.*?)</.exec(part)?.[1]?.replaceAll('&quot;', '"'),
  }));
  const chosen = named.map(({ number, etag }, index) => {
    const part = parts.get(number);
    if (part === undefined || part.etag !== etag) throw new S3Error(400, 'InvalidPart');
    if (index > 0 && number <= (named[index - 1]?.number ?? 0)) throw new S3Error(400, 'InvalidPartOrder');
    if (index < named.length - 1 && part.bytes.length < MIN_PART_BYTES)
      throw new S3Error(400, 'EntityTooSmall');
    return part.bytes;
  });
  if (chosen.length === 0) throw new S3Error(400, 'MalformedXML');
  return Buffer.concat(chosen);
}

function reading(
  { bytes, etag, at, headers }: StoredObject,
  request: IncomingMessage,
  query: URLSearchParams,
): Answer {
  const told: Record<string, string> = { ...headers, etag, 'last-modified': at.toUTCString() };
  for (const [name, value] of query) {
    if (name.startsWith('response-')) told[name.slice('response-'.length)] = value;
  }
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  if (range === null) {
    if (request.method === 'HEAD') told['content-length'] = String(bytes.length);
    return { status: 200, headers: told, body: bytes };
  }
  const start = Number(range[1]);
  const end = Math.min(range[2] ? Number(range[2]) : Number.POSITIVE_INFINITY, bytes.length - 1);
  if (start > end) throw new S3Error(416, 'InvalidRange');
  told['content-range'] = `bytes ${start}-${end}/${bytes.length}`;
  return { status: 206, headers: told, body: bytes.subarray(start, end + 1) };
}

/** Signature version 4, in the headers or presigned in the query. */
function verifySignature(request: IncomingMessage, url: URL, bytes: Buffer): void {
  const query = url.searchParams;
  const given = /Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)/.exec(
    request.headers.authorization ?? '',
  );
  const isPresigned = query.has('X-Amz-Signature');
  if (!isPresigned && given === null) throw new S3Error(403, 'AccessDenied');
  const credential = (isPresigned ? query.get('X-Amz-Credential') : given?.[1]) ?? '';
  const signedHeaders = (isPresigned ? query.get('X-Amz-SignedHeaders') : given?.[2]) ?? '';
  const signature = isPresigned ? query.get('X-Amz-Signature') : given?.[3];
  const date = (isPresigned ? query.get('X-Amz-Date') : String(request.headers['x-amz-date'])) ?? '';
  const hash = isPresigned ? 'UNSIGNED-PAYLOAD' : String(request.headers['x-amz-content-sha256']);
  if (isPresigned) {
    const signedAt = Date.parse(date.replace(/(....)(..)(..T..)(..)(..Z)/, '$1-$2-$3:$4:$5'));
    if (Date.now() > signedAt + 1000 * Number(query.get('X-Amz-Expires')))
      throw new S3Error(403, 'AccessDenied');
  } else if (/^[0-9a-f]{64}$/.test(hash) && sha256(bytes) !== hash) {
    throw new S3Error(400, 'XAmzContentSHA256Mismatch');
  }
  const [accessKey, day = '', region = '', service = ''] = credential.split('/');
  if (accessKey !== ACCESS_KEY) throw new S3Error(403, 'InvalidAccessKeyId');
  const canonicalQuery = [...query]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&');
  const canonical = [
    request.method,
    url.pathname
      .split('/')
      .map((part) => encoded(decodeURIComponent(part)))
      .join('/'),
    canonicalQuery,
    ...signedHeaders.split(';').map(
      (name) =>
        `${name}:${String(request.headers[name] ?? '')
          .trim()
          .replace(/ +/g, ' ')}`,
    ),
    '',
    signedHeaders,
    hash,
  ].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce<Buffer>(hmac, Buffer.from(`AWS4${SECRET}`));
  const toSign = [
    'AWS4-HMAC-SHA256',
    date,
    `${day}/${region}/${service}/aws4_request`,
    sha256(canonical),
  ].join('\n');
  if (hmac(key, toSign).toString('hex') !== signature) throw new S3Error(403, 'SignatureDoesNotMatch');
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function sha256(bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function etagOf(bytes: Buffer): string {
  return `"${createHash('md5').update(bytes).digest('hex')}"`;
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

function xml(root: string, content: string): Answer {
  return {
    status: 200,
    headers: { 'content-type': 'application/xml' },
    body: `<${root}>${content}</${root}>`,
  };
}
