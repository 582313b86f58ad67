/** The stable codes of what the HTTP layer itself refuses or fails at; explained in docs/errors.md. */
export const HTTP_ERROR_CODES = [
  'BAD_REQUEST',
  'UNAUTHENTICATED',
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'REQUEST_TIMEOUT',
  'CONFLICT',
  'GONE',
  'PRECONDITION_FAILED',
  'PAYLOAD_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'RANGE_NOT_SATISFIABLE',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
  'UNAVAILABLE',
  'NOT_READY',
] as const;
export type HttpErrorCode = (typeof HTTP_ERROR_CODES)[number];

/**
 * A request that is refused, or cannot be served, before or beside GraphQL. The message is for the caller: it never
 * holds anything the caller did not already know.
 */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  /** The HTTP status. */
  readonly statusCode: number;
  readonly code: HttpErrorCode;
  /** Response headers that belong to the status, such as `allow` for 405 (RFC 9110). */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    statusCode: number,
    code: HttpErrorCode,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.statusCode = statusCode;
    this.code = code;
    this.headers = headers;
  }
}

/** What a caller is told of a failure that is not theirs to know more about. */
export const INTERNAL_ERROR_MESSAGE = 'Internal error. Quote the request id to support.';

/** The body of a refusal outside `/graphql`. */
export function errorBody(error: HttpError, requestId: string): string {
  return JSON.stringify({ error: { code: error.code, message: error.message, requestId } });
}

/** The body of a refusal on `/graphql`, in the shape GraphQL clients read. */
export function graphqlErrorBody(error: HttpError, requestId: string): string {
  return JSON.stringify({
    errors: [{ message: error.message, extensions: { code: error.code, requestId } }],
  });
}
