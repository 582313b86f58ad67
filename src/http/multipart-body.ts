import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { GraphQLError } from 'graphql';
import { type FileUpload as LibraryFileUpload, processRequest, Upload } from 'graphql-upload-minimal';
import { z } from 'zod';
import { clip } from '../base/clip.ts';
import { HttpError } from './http-error.ts';
import { type FileUpload, UploadInterruptedError, UploadTooLargeError } from './upload.ts';

/** The most bytes of each of the fields `operations` and `map`. */
const MAX_FIELD_BYTES = 1024 * 1024;
/** What boundaries and part headers may add to the fields and the file. */
const MAX_FRAMING_BYTES = 64 * 1024;
/** Members that every object has from its prototype, and that no variable or input field is called. */
const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/**
 * Receives a GraphQL multipart request with exactly one file, mapped to one place in the variables, and returns as soon
 * as the operation is known, while the file is still on its way. Gateways move the file to where their own plan has it:
 * into `variables.input.file` for one.
 *
 * It stands between graphql-upload-minimal and the request, because the library by itself
 * - sets whatever path the `map` names, built-in prototypes' functions included;
 * - hands out busboy's raw stream, which ends as if whole when the file is cut at the limit;
 * - takes a file for whole when the body is malformed after it, or never ends;
 * - lets busboy's second error go unheard, which ends the process;
 * - bounds the fields and the file, and not the body.
 *
 * Once the response is closed nothing more is received; what has not arrived by then is an UploadInterruptedError to
 * whoever still reads.
 *
 * @param maxFileBytes the largest file that passes.
 * @returns the `operations` field, with an `Upload` at the place the `map` field names.
 * @throws HttpError 400 for a malformed request, 413 for one too large.
 */
export async function receiveMultipartBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxFileBytes: number,
): Promise<unknown> {
  const maxBodyBytes = maxFileBytes + 2 * MAX_FIELD_BYTES + MAX_FRAMING_BYTES;
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) throw bodyTooLarge(maxFileBytes);

  /** What resolvers read: it ends when the whole body has, and fails with it. */
  const file = new PassThrough();
  file.on('error', () => {});
  let parser: Writable | undefined;
  let refusal: HttpError | undefined;
  let mapped: MappedFile | undefined;
  // What a destroyed busboy still makes of the chunk at hand leads to other errors: the first is the one that counts.
  const refuse = (error: unknown) => {
    refusal ??= asHttpError(error);
    file.destroy(interruption(refusal, maxFileBytes));
    parser?.destroy(refusal);
  };
  const guard = (attached: Writable) => {
    parser = attached;
    // The library listens once; busboy can fail twice.
    attached.on('error', refuse);
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxBodyBytes) refuse(bodyTooLarge(maxFileBytes));
    });
    // Fields are looked at before the library acts on them.
    const libraryListeners = attached.listeners('field');
    attached.removeAllListeners('field');
    let operationsField: string | undefined;
    attached.on('field', (name: string, value: string, info: { valueTruncated: boolean }) => {
      try {
        if (info.valueTruncated) {
          throw new HttpError(
            'PAYLOAD_TOO_LARGE',
            `The multipart field "${clip(name, 100)}" is larger than the ${MAX_FIELD_BYTES} bytes accepted.`,
          );
        }
        if (name === 'operations') operationsField = value;
        if (name === 'map') mapped = readMap(value, operationsField);
      } catch (error) {
        return refuse(error);
      }
      for (const listener of libraryListeners) Reflect.apply(listener, attached, [name, value, info]);
    });
    attached.prependListener('file', (part: string, stream: Readable) => {
      if (mapped === undefined) return;
      if (part !== mapped.part)
        return refuse(badRequest('the file part is not the one the "map" field names'));
      stream.once('limit', () => refuse(bodyTooLarge(maxFileBytes)));
      stream.on('error', refuse);
      stream.pipe(file, { end: false });
    });
    attached.once('finish', () => file.end());
  };
  // The library attaches its parser with `pipe`, which is the one moment at which the parser can be reached.
  const { pipe } = request;
  request.pipe = <Parser extends NodeJS.WritableStream>(attached: Parser): Parser => {
    request.pipe = pipe;
    guard(attached as Parser & Writable);
    return request.pipe(attached);
  };

  let operations: unknown;
  try {
    operations = await processRequest(request, response, {
      maxFieldSize: MAX_FIELD_BYTES + 1,
      // Busboy takes a file that reaches the limit for truncated: the limit given is one more than the limit meant.
      maxFileSize: maxFileBytes + 1,
      maxFiles: 1,
    });
  } catch (error) {
    refuse(error);
    throw refusal;
  }
  guardUpload(operations, mapped?.path ?? [], file, (error) =>
    interruption(refusal ?? asHttpError(error), maxFileBytes),
  );
  response.once('close', () => {
    if (parser === undefined || parser.destroyed) return;
    request.unpipe(parser);
    refuse(badRequest('the request was answered before the file was read'));
  });
  return operations;
}

/** Where the one file of a request comes from and goes to. */
interface MappedFile {
  /** The name of its part. */
  readonly part: string;
  /** The keys that lead to it from the operation down. */
  readonly path: readonly string[];
}

const mapOfParts = z.record(z.string(), z.tuple([z.string()]));

/** Anything but one part for one place in the variables, which is there and null, is refused. */
function readMap(mapField: string, operationsField: string | undefined): MappedFile {
  if (operationsField === undefined)
    throw badRequest('the "operations" field must come before the "map" field');
  const operations = parseField('operations', operationsField);
  if (Array.isArray(operations)) throw badRequest('batches are not accepted');
  const [entry, ...more] = Object.entries(mapOfParts.safeParse(parseField('map', mapField)).data ?? {});
  if (entry === undefined || more.length > 0) {
    throw badRequest(
      'the "map" field must name one part and one path, as in {"0": ["variables.input.file"]}',
    );
  }
  const [part, [place]] = entry;
  const path = place.split('.');
  if (path[0] !== 'variables' || path.length < 2 || path.some((key) => PROTOTYPE_NAMES.has(key))) {
    throw badRequest(
      'the path in the "map" field must lead into the variables, as "variables.input.file" does',
    );
  }
  if (valueAt(operations, path) !== null) {
    throw badRequest('the "operations" field must hold null at the path that the "map" field names');
  }
  return { part, path };
}

/** What stands at a path of own members; undefined when the path leads nowhere. */
function valueAt(root: unknown, path: readonly string[]): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function parseField(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest(`the "${name}" field is not JSON`);
  }
}

/** Gives the resolver the guarded file in place of the one the library would hand to it, once: a second reader would find it empty. */
function guardUpload(
  operations: unknown,
  path: readonly string[],
  file: Readable,
  whyNot: (error: unknown) => GraphQLError,
): void {
  const upload = valueAt(operations, path);
  if (!(upload instanceof Upload)) throw new Error('graphql-upload-minimal set no Upload where the map says');
  let isTaken = false;
  const guarded: Promise<FileUpload> = upload.promise.then(
    ({ filename }) => ({
      filename,
      createReadStream() {
        if (isTaken) {
          throw new GraphQLError(
            'Another field of this request has taken the file; send it in a request for each of them.',
            { extensions: { code: 'BAD_USER_INPUT' } },
          );
        }
        isTaken = true;
        return file;
      },
    }),
    (error: unknown) => {
      throw whyNot(error);
    },
  );
  // A request may be answered without anyone having asked for the file.
  guarded.catch(() => {});
  // The library types its streams as fs.ReadStream, which they never were.
  upload.promise = guarded as Promise<LibraryFileUpload>;
}

/** What whoever reads the file is told of a request that is refused after its operation was known. */
function interruption({ statusCode, message }: HttpError, maxFileBytes: number): GraphQLError {
  if (statusCode === 413) return new UploadTooLargeError(maxFileBytes);
  return new UploadInterruptedError(withinSentence(message));
}

/** What a request is refused with, by what the library or busboy says of it. */
function asHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (!(error instanceof Error)) return badRequest('it is malformed');
  switch ('status' in error ? error.status : undefined) {
    case 413:
      return badRequest('it holds more than one file');
    case 499:
      return badRequest('the client went away');
    case 500:
      return badRequest('it holds neither operations nor a file');
    default:
      // The library's and busboy's messages speak of the body's form and the map alone, and never of other values. The path in
      // the map may be as long as the field.
      return badRequest(clip(withinSentence(error.message), 300));
  }
}

function withinSentence(message: string): string {
  return message.slice(0, 1).toLowerCase() + message.slice(1).replace(/\.$/, '');
}

function badRequest(what: string): HttpError {
  return new HttpError('BAD_REQUEST', `The multipart request cannot be used: ${what}.`);
}

function bodyTooLarge(maxFileBytes: number): HttpError {
  return new HttpError(
    'PAYLOAD_TOO_LARGE',
    `The request is too large: a file may hold at most ${maxFileBytes} bytes.`,
  );
}
