import type { IncomingMessage } from 'node:http';
import { finished, PassThrough, Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { DataStore, type Locker, Server, TUS_RESUMABLE, Upload } from '@tus/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type OpenUpload, UploadRefusedError, uploadIsOver } from '../operations/uploads.ts';
import { HTTP_ERROR_CODES, HTTP_STATUSES, HttpError } from './http-error.ts';
import { refuseOtherMethods } from './route-methods.ts';

/** What uploads need from the rest. */
export interface UploadRouteOptions {
  /** Null for whatever reason there is nothing to send to; all reasons are answered alike. */
  openUpload(uploadId: string, linkToken: string): Promise<OpenUpload | null>;
}

interface UploadRequest {
  Params: { uploadId: string };
  Querystring: { token?: unknown };
}

const METHODS = ['HEAD', 'PATCH', 'DELETE', 'OPTIONS'] as const;
/** Where files are sent in parts. */
export const UPLOAD_PATH = '/uploads/:uploadId';

/**
 * `HEAD`, `PATCH` and `DELETE /uploads/:uploadId?token=…`: a file in parts, by its signed link, as tus 1.0 has it. The link is
 * looked at in every request. The protocol is the library's; what it says is answered in JSON, as everything is.
 */
export function addUploadRoute(server: FastifyInstance, options: UploadRouteOptions): void {
  const locks = new TakeoverLocker();
  server.register(async (scoped) => {
    scoped.removeAllContentTypeParsers();
    // The body is the protocol's to read.
    scoped.addContentTypeParser('*', (_request, _body, done) => done(null));
    scoped.route<UploadRequest>({
      method: [...METHODS],
      url: UPLOAD_PATH,
      async handler(request, reply) {
        const { token } = request.query;
        const { uploadId } = request.params;
        const upload = typeof token === 'string' ? await options.openUpload(uploadId, token) : null;
        if (upload === null) {
          throw new HttpError('NOT_FOUND', 'There is nothing to upload to at this link, or no longer.');
        }
        if (upload.isOver && request.method !== 'OPTIONS') throw asHttpError(uploadIsOver());
        reply.header('tus-resumable', TUS_RESUMABLE);
        return answer(request, reply, new LinkedUpload(uploadId, upload), locks);
      },
    });
  });
  refuseOtherMethods(server, UPLOAD_PATH, METHODS);
}

/** Has the library answer a request, and hands its answer on. */
async function answer(
  request: FastifyRequest<UploadRequest>,
  reply: FastifyReply,
  upload: LinkedUpload,
  locker: Locker,
): Promise<FastifyReply> {
  const tus = new Server({
    path: '/uploads',
    datastore: upload,
    locker,
    getFileIdFromRequest: () => upload.id,
    // Whoever has a link may use it from anywhere but from other sites.
    allowedOrigins: () => false,
    onResponseError(_request, error) {
      // What is not the protocol's is answered as everywhere.
      if (error instanceof Error && !('status_code' in error)) throw error;
      return undefined;
    },
  });
  const { method } = request;
  using body = method === 'PATCH' ? new DetachableBody(request.raw) : null;
  const answered = await tus.handleWeb(
    new Request(`http://upload.invalid/uploads/${upload.id}`, {
      method,
      headers: plainHeaders(request),
      ...(body && { body: body.stream, duplex: 'half' }),
    }),
  );
  const headers = Object.fromEntries(answered.headers);
  if (answered.status >= 400) {
    const { 'content-length': _length, 'content-type': _type, ...kept } = headers;
    throw refusalOf(answered.status, await answered.text(), kept);
  }
  return reply.code(answered.status).headers(headers).send();
}

/** A request's body for a reader that may leave it where it is: what is left is the request's again. */
class DetachableBody implements Disposable {
  readonly stream: ReadableStream;
  readonly #request: IncomingMessage;
  readonly #passed = new PassThrough();

  constructor(request: IncomingMessage) {
    this.#request = request;
    // Whoever reads is told; nobody may be reading yet.
    this.#passed.on('error', () => {});
    finished(request, { writable: false }, (error) => {
      if (error) this.#passed.destroy(error);
    });
    this.stream = Readable.toWeb(request.pipe(this.#passed)) as ReadableStream;
  }

  [Symbol.dispose](): void {
    this.#request.unpipe(this.#passed);
    this.#passed.destroy();
  }
}

function plainHeaders({ headers }: FastifyRequest): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as [string, string]] : [],
  );
}

/** What the library refuses a request with, as everything is refused. */
function refusalOf(status: number, text: string, headers: Readonly<Record<string, string>>): HttpError {
  if (status >= 500) throw new Error('The protocol of uploads failed.');
  const [code = 'BAD_REQUEST'] = HTTP_ERROR_CODES.filter((each) => HTTP_STATUSES[each] === status);
  return new HttpError(code, `${text.trim()}.`, headers);
}

function asHttpError({ reason, message }: UploadRefusedError): HttpError {
  return reason === 'over' ? new HttpError('GONE', message) : new HttpError('CONFLICT', message);
}

/** One upload, as the library asks for it. */
class LinkedUpload extends DataStore {
  readonly id: string;
  readonly #upload: OpenUpload;

  constructor(id: string, upload: OpenUpload) {
    super();
    this.id = id;
    this.#upload = upload;
    this.extensions = ['termination'];
  }

  override async getUpload(): Promise<Upload> {
    return new Upload({
      id: this.id,
      size: Number(this.#upload.byteLength),
      offset: Number(await this.#upload.receivedBytes()),
    });
  }

  override async write(bytes: Readable, _id: string, offset: number): Promise<number> {
    try {
      return Number(await this.#upload.receive(BigInt(offset), bytes));
    } catch (error) {
      throw error instanceof UploadRefusedError ? asHttpError(error) : error;
    }
  }

  override remove(): Promise<void> {
    return this.#upload.discard();
  }
}

/** How long a request waits for the one that it takes over from to end. Then it goes on: the record knows what comes first. */
const TAKEOVER_MS = 5_000;

/**
 * Lets the requests to an upload that come to this process pass one after another: a new one tells the one at work to end, whose
 * client may have gone without a word. Over several processes, and in the end, the record of the upload decides.
 */
class TakeoverLocker implements Locker {
  readonly #atWork = new Map<string, { readonly end: () => void; readonly ended: Promise<void> }>();

  newLock(id: string) {
    const { promise: ended, resolve: tellEnd } = Promise.withResolvers<void>();
    return {
      lock: async (_signal: AbortSignal, end: () => void) => {
        const before = this.#atWork.get(id);
        const own = { end, ended };
        this.#atWork.set(id, own);
        ended.then(() => {
          if (this.#atWork.get(id) === own) this.#atWork.delete(id);
        });
        if (before === undefined) return;
        before.end();
        await Promise.race([before.ended, pause(TAKEOVER_MS, undefined, { ref: false })]);
      },
      unlock: async () => tellEnd(),
    };
  }
}
