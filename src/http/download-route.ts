import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { mediaTypeOf } from '../archive/format.ts';
import { attachment } from '../base/content-disposition.ts';
import { describeError } from '../base/error-log.ts';
import { noteDownload } from '../base/telemetry.ts';
import type { OpenArchive } from '../operations/downloads.ts';
import { type ByteRange, parseRange } from './byte-range.ts';
import { HttpError } from './http-error.ts';
import { refuseOtherMethods } from './route-methods.ts';

/** Puts on record what came of a download. */
type RecordEnd = Awaited<ReturnType<OpenArchive['begin']>>;

/** What downloads need from the rest. */
export interface DownloadRouteOptions {
  /** Null for whatever reason there is nothing to download; all reasons are answered alike. */
  openDownload(operationId: string, linkToken: string, requestId: string): Promise<OpenArchive | null>;
}

interface DownloadRequest {
  Params: { operationId: string };
  Querystring: { token?: unknown };
}

/** Where archives are downloaded. */
export const DOWNLOAD_PATH = '/archives/:operationId';

/** `GET` and `HEAD /archives/:operationId?token=…`: a finished export by its signed link. */
export function addDownloadRoute(server: FastifyInstance, options: DownloadRouteOptions): void {
  server.route<DownloadRequest>({
    method: ['GET', 'HEAD'],
    url: DOWNLOAD_PATH,
    async handler(request, reply) {
      const { token } = request.query;
      const download =
        typeof token === 'string'
          ? await options.openDownload(request.params.operationId, token, request.id)
          : null;
      if (download === null) {
        throw new HttpError('NOT_FOUND', 'There is nothing to download at this link, or no longer.');
      }
      return answer(request, reply, download);
    },
  });
  refuseOtherMethods(server, DOWNLOAD_PATH, ['GET', 'HEAD']);
}

async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  download: OpenArchive,
): Promise<FastifyReply> {
  const etag = `"${download.sha256}"`;
  const size = Number(download.sizeBytes);
  reply.headers({
    etag,
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-store',
    'content-disposition': attachment(download.fileName),
    'referrer-policy': 'no-referrer',
  });
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers;
  // Strongly compared: a weak tag matches nothing (RFC 9110, 13.1.1).
  if (ifMatch !== undefined && !namesAny(ifMatch, [etag])) {
    throw new HttpError('PRECONDITION_FAILED', 'The file at this link is not the one that If-Match names.');
  }
  // Weakly compared (RFC 9110, 13.1.2).
  if (ifNoneMatch !== undefined && namesAny(ifNoneMatch, [etag, `W/${etag}`])) return reply.code(304).send();

  const range = requestedRange(request, etag, size);
  if (range === 'unsatisfiable') {
    throw new HttpError(
      'RANGE_NOT_SATISFIABLE',
      `The file holds ${size} bytes; the range begins after them.`,
      {
        'content-range': `bytes */${size}`,
      },
    );
  }
  reply.type(mediaTypeOf(download.fileName));
  if (range) {
    reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${size}`);
  }
  const length = range ? range.end - range.start + 1 : size;
  reply.header('content-length', length);
  if (request.method === 'HEAD') return reply.send();
  const end = await putOnRecord(request, download);
  if (download.address !== null) {
    // What comes of it nobody here learns: on record it has begun.
    for (const name of ['content-length', 'content-range', 'content-type', 'content-disposition', 'etag']) {
      reply.removeHeader(name);
    }
    noteDownload('redirected', 0n);
    return reply.redirect(await download.address(), 302);
  }
  const body = await open(request, download, range, end);
  reportEnd(request, reply, body, length, end);
  return reply.send(body);
}

/** Range is defined for GET alone, and counts only while `If-Range` names the file there is (RFC 9110, 13.1.5). */
function requestedRange(
  request: FastifyRequest,
  etag: string,
  size: number,
): ByteRange | null | 'unsatisfiable' {
  const { range, 'if-range': ifRange } = request.headers;
  if (request.method !== 'GET' || range === undefined) return null;
  if (ifRange !== undefined && ifRange !== etag) return null;
  return parseRange(range, size);
}

/** Whether a list of entity tags names one of these, or `*`, which is whatever there is. */
function namesAny(list: string, tags: readonly string[]): boolean {
  return list.split(',').some((candidate) => ['*', ...tags].includes(candidate.trim()));
}

/** @returns puts on record what came of the download; that it cannot is for the log. */
async function putOnRecord({ scope: { logger } }: FastifyRequest, download: OpenArchive): Promise<RecordEnd> {
  try {
    const end = await download.begin();
    return (outcome) =>
      end(outcome).catch((error: unknown) => {
        logger.error({ error: describeError(error) }, 'recording the end of the download failed');
      });
  } catch (error) {
    logger.error({ error: describeError(error) }, 'recording the download failed');
    throw new HttpError(
      'NOT_READY',
      'The download cannot be put on record at this moment, and is not given out without; try again.',
    );
  }
}

/** Opens the file once the access is on record, which says then that nothing was given out when it cannot be had. */
async function open(
  request: FastifyRequest,
  download: OpenArchive,
  range: ByteRange | null,
  end: RecordEnd,
): Promise<Readable> {
  try {
    return await (range ? download.read(range) : download.read());
  } catch (error) {
    request.scope.logger.error({ error: describeError(error) }, 'the archive cannot be read');
    await end({ bytes: 0n, isWhole: false });
    throw new HttpError('NOT_READY', 'The archive cannot be read at this moment; try again.');
  }
}

function reportEnd(
  request: FastifyRequest,
  reply: FastifyReply,
  body: Readable,
  declaredBytes: number,
  end: RecordEnd,
): void {
  const { logger } = request.scope;
  let bytes = 0n;
  body.on('data', (chunk: Buffer) => {
    bytes += BigInt(chunk.length);
  });
  // Listening set the stream going; nothing may pass before the response is attached.
  body.pause();
  body.on('end', () => {
    if (bytes === BigInt(declaredBytes)) return;
    logger.error({ bytes: String(bytes), declaredBytes }, 'the archive is shorter or longer than recorded');
    // Cut, so that the client does not wait for the rest, nor take a part for the whole.
    reply.raw.destroy();
  });
  body.on('error', (error: unknown) => {
    logger.error({ error: describeError(error) }, 'reading the archive failed');
  });
  const tellEnd = () => {
    const isWhole = reply.raw.writableFinished && bytes === BigInt(declaredBytes);
    noteDownload(isWhole ? 'whole' : 'cut', bytes);
    void end({ bytes, isWhole });
  };
  // The client may have left while the access was put on record.
  if (reply.raw.closed) tellEnd();
  else reply.raw.once('close', tellEnd);
}
