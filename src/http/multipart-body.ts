import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline, type Readable, Transform, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { GraphQLError } from 'graphql';
import { type FileUpload as LibraryFileUpload, processRequest, Upload } from 'graphql-upload-minimal';
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

  let parser: Writable | undefined;
  let file: Readable | undefined;
  let refusal: HttpError | undefined;
  let mappedFile: () => MappedFile | undefined = () => undefined;
  const source = interpose(request, (attached) => {
    parser = attached;
    // What a destroyed busboy still makes of the chunk at hand leads to other errors: the first is the one that counts.
    const refuse = (error: HttpError) => {
      refusal ??= error;
      attached.destroy(refusal);
    };
    // The library listens once; busboy can fail twice.
    attached.on('error', () => {});
    const bodyEnd = finished(attached);
    bodyEnd.catch(() => {});
    countBytes(request, maxBodyBytes, () => refuse(bodyTooLarge(maxFileBytes)));
    mappedFile = guardFields(attached, refuse);
    attached.prependListener('file', (partName: string, stream: Readable) => {
      const mapped = mappedFile();
      if (mapped === undefined) return;
      if (partName !== mapped.part) {
        refuse(badRequest('the file part is not the one the "map" field names'));
        return;
      }
      file = guardFile(stream, bodyEnd, maxFileBytes);
    });
  });

  let operations: unknown;
  try {
    operations = await processRequest(source, response, {
      maxFieldSize: MAX_FIELD_BYTES + 1,
      // Busboy takes a file that reaches the limit for truncated: the limit given is one more than the limit meant.
      maxFileSize: maxFileBytes + 1,
      maxFiles: 1,
    });
  } catch (error) {
    parser?.destroy();
    throw refusal ?? asHttpError(error);
  }
  guardUpload(operations, mappedFile()?.path ?? [], () => file, maxFileBytes);
  response.once('close', () => {
    if (parser === undefined || parser.destroyed) return;
    file?.destroy(new UploadInterruptedError('the request was answered before the file was read'));
    request.unpipe(parser);
    parser.destroy();
  });
  return operations;
}

/**
 * The request as the library sees it. The library attaches its parser with `pipe`, which is the one moment at which
 * the parser can be reached.
 */
function interpose(request: IncomingMessage, onParser: (parser: Writable) => void): IncomingMessage {
  return new Proxy(request, {
    get(target, property) {
      if (property === 'pipe') {
        return (parser: Writable) => {
          onParser(parser);
          return target.pipe(parser);
        };
      }
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function countBytes(request: IncomingMessage, maxBytes: number, onExceeded: () => void): void {
  let bytes = 0;
  request.on('data', function count(chunk: Buffer) {
    bytes += chunk.length;
    if (bytes <= maxBytes) return;
    request.off('data', count);
    onExceeded();
  });
}

/**
 * Checks the fields before the library acts on them.
 *
 * @returns what the `map` field says of the file, once it has come.
 */
function guardFields(parser: Writable, refuse: (error: HttpError) => void): () => MappedFile | undefined {
  const libraryListeners = parser.listeners('field');
  parser.removeAllListeners('field');
  let operations: string | undefined;
  let mapped: MappedFile | undefined;
  parser.on('field', (name: string, value: string, info: { valueTruncated: boolean }) => {
    try {
      if (info.valueTruncated) {
        throw new HttpError(
          413,
          'PAYLOAD_TOO_LARGE',
          `The multipart field "${clip(name, 100)}" is larger than the ${MAX_FIELD_BYTES} bytes accepted.`,
        );
      }
      if (name === 'operations') operations = value;
      if (name === 'map') mapped = readMap(value, operations);
    } catch (error) {
      refuse(asHttpError(error));
      return;
    }
    for (const listener of libraryListeners) Reflect.apply(listener, parser, [name, value, info]);
  });
  return () => mapped;
}

/** Where the one file of a request comes from and goes to. */
interface MappedFile {
  /** The name of its part. */
  readonly part: string;
  /** The keys that lead to it from the operation down. */
  readonly path: readonly string[];
}

/** Anything but one part for one place in the variables, which is there and null, is refused. */
function readMap(mapField: string, operationsField: string | undefined): MappedFile {
  if (operationsField === undefined)
    throw badRequest('the "operations" field must come before the "map" field');
  const operations = parseField('operations', operationsField);
  if (Array.isArray(operations)) throw badRequest('batches are not accepted');
  const map = parseField('map', mapField);
  const entries = isRecord(map) ? Object.entries(map) : [];
  const [entry] = entries;
  const paths: unknown = entry?.[1];
  const place: unknown = Array.isArray(paths) && paths.length === 1 ? paths[0] : undefined;
  if (entries.length !== 1 || entry === undefined || typeof place !== 'string') {
    throw badRequest(
      'the "map" field must name one part and one path, as in {"0": ["variables.input.file"]}',
    );
  }
  const path = place.split('.');
  if (path[0] !== 'variables' || path.length < 2 || path.some((key) => PROTOTYPE_NAMES.has(key))) {
    throw badRequest(
      'the path in the "map" field must lead into the variables, as "variables.input.file" does',
    );
  }
  if (valueAt(operations, path) !== null) {
    throw badRequest('the "operations" field must hold null at the path that the "map" field names');
  }
  return { part: entry[0], path };
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

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The file's bytes, failing where busboy's own stream would end: cut at the limit, or in a body that is not whole. */
function guardFile(stream: Readable, bodyEnd: Promise<void>, maxBytes: number): Readable {
  const guarded = new Transform({
    transform(chunk, _encoding, done) {
      done(null, chunk);
    },
    flush(done) {
      bodyEnd.then(
        () => done(),
        (error: unknown) => done(interrupted(error, maxBytes)),
      );
    },
  });
  guarded.on('error', () => {});
  stream.once('limit', () => guarded.destroy(new UploadTooLargeError(maxBytes)));
  // An error is given over in a form that says what happened, so the pipeline's own is only for the closing.
  stream.once('error', (error: unknown) => guarded.destroy(interrupted(error, maxBytes)));
  pipeline(stream, guarded, () => {});
  return guarded;
}

/** A file arrives once: whoever read it a second time would take it for empty. */
function alreadyTaken(): GraphQLError {
  return new GraphQLError(
    'Another field of this request has taken the file; send it in a request for each of them.',
    { extensions: { code: 'BAD_USER_INPUT' } },
  );
}

/** Replaces the file the library would hand to the resolver by the guarded one. */
function guardUpload(
  operations: unknown,
  path: readonly string[],
  guardedFile: () => Readable | undefined,
  maxBytes: number,
): void {
  const upload = valueAt(operations, path);
  if (!(upload instanceof Upload)) throw new Error('graphql-upload-minimal set no Upload where the map says');
  let isTaken = false;
  const guarded: Promise<FileUpload> = upload.promise.then(
    ({ filename }) => ({
      filename,
      createReadStream() {
        if (isTaken) throw alreadyTaken();
        isTaken = true;
        const stream = guardedFile();
        if (stream === undefined) throw new Error('the file arrived without its guard');
        return stream;
      },
    }),
    (error: unknown) => {
      throw interrupted(error, maxBytes);
    },
  );
  // A request may be answered without anyone having asked for the file.
  guarded.catch(() => {});
  // The library types its streams as fs.ReadStream, which they never were.
  upload.promise = guarded as Promise<LibraryFileUpload>;
}

function interrupted(error: unknown, maxBytes: number): Error {
  if (error instanceof UploadInterruptedError || error instanceof UploadTooLargeError) return error;
  if (error instanceof HttpError && error.statusCode === 413) return new UploadTooLargeError(maxBytes);
  return new UploadInterruptedError(problemOf(error));
}

function asHttpError(error: unknown): HttpError {
  return error instanceof HttpError ? error : badRequest(problemOf(error));
}

/** What is wrong with a body, to stand within a sentence. */
function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it is malformed';
  switch ('status' in error ? error.status : undefined) {
    case 413:
      return 'it holds more than one file';
    case 499:
      return 'the client went away';
    case 500:
      return 'it holds neither operations nor a file';
    default:
      // The library's and busboy's messages speak of the body's form and the map alone, and never of other values. The path in
      // the map may be as long as the field.
      return clip(error.message.slice(0, 1).toLowerCase() + error.message.slice(1).replace(/\.$/, ''), 300);
  }
}

function badRequest(what: string): HttpError {
  return new HttpError(400, 'BAD_REQUEST', `The multipart request cannot be used: ${what}.`);
}

function bodyTooLarge(maxFileBytes: number): HttpError {
  return new HttpError(
    413,
    'PAYLOAD_TOO_LARGE',
    `The request is too large: a file may hold at most ${maxFileBytes} bytes.`,
  );
}
