import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import busboy, { type Busboy } from 'busboy';
import { GraphQLError } from 'graphql';
import { clip } from '../base/clip.ts';
import { HttpError } from './http-error.ts';
import { type FileUpload, UploadInterruptedError, UploadTooLargeError } from './upload.ts';

/** The most bytes of each of the fields `operations` and `map`. */
const MAX_FIELD_BYTES = 1024 * 1024;
/** What boundaries and part headers may add to the fields and the file. */
const MAX_FRAMING_BYTES = 64 * 1024;

/**
 * Receives a GraphQL multipart request with exactly one file, mapped to one place in the variables, and returns as soon
 * as the operation is known, while the file is still on its way. Gateways move the file to where their own plan has it:
 * into `variables.input.file` for one.
 *
 * Once the response is closed nothing more is received; what has not arrived by then is an UploadInterruptedError to
 * whoever still reads.
 *
 * @param maxFileBytes the largest file that passes.
 * @returns the `operations` field, with a promise of a {@link FileUpload} at the place the `map` field names.
 * @throws HttpError 400 for a malformed request, 413 for one too large.
 */
export async function receiveMultipartBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxFileBytes: number,
): Promise<unknown> {
  const maxBodyBytes = maxFileBytes + 2 * MAX_FIELD_BYTES + MAX_FRAMING_BYTES;
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) throw bodyTooLarge(maxFileBytes);
  const parser = parserOf(request, maxFileBytes);
  const body = Promise.withResolvers<unknown>();
  const upload = Promise.withResolvers<FileUpload>();
  // A request may be answered without anyone having asked for the file.
  upload.promise.catch(() => {});
  // Not busboy's own stream, which ends as if whole when the file is cut at the limit, or the body is malformed after it.
  const file = new PassThrough();
  file.on('error', () => {});

  /** Only the first one counts: what is settled, or destroyed, stays so. */
  const fail = (refusal: HttpError, interruption: GraphQLError) => {
    // To take a pipe away is to pause: what is left has to go by for the connection to be of use again.
    request.unpipe(parser).resume();
    parser.destroy();
    body.reject(refusal);
    upload.reject(interruption);
    file.destroy(interruption);
  };
  const refuse = (what: string) => fail(badRequest(what), new UploadInterruptedError(what));
  const refuseTooLarge = (refusal: HttpError) => fail(refusal, new UploadTooLargeError(maxFileBytes));

  let operations: string | undefined;
  let mapped: MappedOperation | undefined;
  parser.on('field', (name, value, { valueTruncated }) => {
    if (valueTruncated) return refuseTooLarge(fieldTooLarge(name));
    if (name === 'operations') operations = value;
    if (name !== 'map') return;
    const read = readMap(value, operations);
    if (typeof read === 'string') return refuse(read);
    mapped = read;
    read.container[read.key] = upload.promise;
    body.resolve(read.operation);
  });
  parser.on('file', (part, stream, { filename }) => {
    stream.on('error', () => {});
    if (mapped === undefined) return refuse('the file must come after the "map" field');
    if (part !== mapped.part) return refuse('the file part is not the one the "map" field names');
    stream.once('limit', () => refuseTooLarge(bodyTooLarge(maxFileBytes)));
    stream.pipe(file, { end: false });
    upload.resolve({ filename: filename ?? '', createReadStream: once(file) });
  });
  parser.on('filesLimit', () => refuse('it holds more than one file'));
  parser.on('finish', () => {
    if (mapped === undefined) return refuse('it needs the fields "operations" and "map", and then a file');
    upload.reject(new UploadInterruptedError('the request names a file and holds none'));
    file.end();
  });
  // Busboy can fail twice, and speaks of what it was given.
  parser.on('error', () => refuse('its body is malformed or incomplete'));

  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) refuseTooLarge(bodyTooLarge(maxFileBytes));
  });
  request.on('error', () => {});
  request.once('close', () => {
    if (!request.complete) refuse('the client went away');
  });
  response.once('close', () => refuse('the request was answered before the file was read'));
  request.pipe(parser);
  return body.promise;
}

function parserOf({ headers }: IncomingMessage, maxFileBytes: number): Busboy {
  try {
    return busboy({
      headers,
      defParamCharset: 'utf8',
      limits: {
        fields: 2,
        fieldSize: MAX_FIELD_BYTES + 1,
        files: 1,
        // Busboy takes a file that reaches the limit for truncated: the limit given is one more than the limit meant.
        fileSize: maxFileBytes + 1,
      },
    });
  } catch {
    throw badRequest('its content type has no boundary');
  }
}

/** A file arrives once: whoever read it a second time would take it for empty. */
function once(file: PassThrough): () => PassThrough {
  let isTaken = false;
  return () => {
    if (isTaken) {
      throw new GraphQLError(
        'Another field of this request has taken the file; send it in a request for each of them.',
        { extensions: { code: 'BAD_USER_INPUT' } },
      );
    }
    isTaken = true;
    return file;
  };
}

/** An operation, and where in it the one file of a request goes. */
interface MappedOperation {
  readonly operation: unknown;
  /** The name of the file's part. */
  readonly part: string;
  /** What holds null at `key`, for the file to take its place. */
  readonly container: Record<string, unknown>;
  readonly key: string;
}

/** Anything but one part for one place in the variables, which is there and null, is refused: the answer is why. */
function readMap(mapField: string, operationsField: string | undefined): MappedOperation | string {
  if (operationsField === undefined) return 'the "operations" field must come before the "map" field';
  const operation = parseJson(operationsField);
  if (operation === undefined) return 'the "operations" field is not JSON';
  if (Array.isArray(operation)) return 'batches are not accepted';
  const map = parseJson(mapField);
  if (map === undefined) return 'the "map" field is not JSON';
  const [entry, ...others] = isObject(map) && !Array.isArray(map) ? Object.entries(map) : [];
  const [part = '', paths] = entry ?? [];
  const [place, ...places] = Array.isArray(paths) ? paths : [];
  if (typeof place !== 'string' || others.length > 0 || places.length > 0) {
    return 'the "map" field must name one part and one path, as in {"0": ["variables.input.file"]}';
  }
  const path = place.split('.');
  const key = path.at(-1) ?? '';
  if (path[0] !== 'variables' || path.length < 2) {
    return 'the path in the "map" field must lead into the variables, as "variables.input.file" does';
  }
  const container = path.slice(0, -1).reduce(ownMember, operation);
  // To set a member of that name is to set the prototype.
  if (!isObject(container) || ownMember(container, key) !== null || key === '__proto__') {
    return 'the "operations" field must hold null at the path that the "map" field names';
  }
  return { operation, part, container, key };
}

function ownMember(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Undefined for what is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
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

function fieldTooLarge(name: string): HttpError {
  return new HttpError(
    413,
    'PAYLOAD_TOO_LARGE',
    `The multipart field "${clip(name, 100)}" is larger than the ${MAX_FIELD_BYTES} bytes accepted.`,
  );
}
