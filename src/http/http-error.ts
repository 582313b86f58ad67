/** The stable codes of what the HTTP layer itself refuses or fails at, each with its status; explained in docs/errors.md. */
export const HTTP_STATUSES = {
  BAD_REQUEST: 400,
  UNAUTHENTICATED: 401,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  CONFLICT: 409,
  GONE: 410,
  PRECONDITION_FAILED: 412,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  RANGE_NOT_SATISFIABLE: 416,
  HEADERS_TOO_LARGE: 431,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  NOT_READY: 503,
} as const;
type HttpErrorCode = keyof typeof HTTP_STATUSES;
/** The codes by themselves. */
export const HTTP_ERROR_CODES = Object.keys(HTTP_STATUSES) as HttpErrorCode[];

/**
 * A request that is refused, or cannot be served, before or beside GraphQL. The message is for the caller: it never
 * holds anything the caller did not already know.
 */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly code: HttpErrorCode;
  /** Response headers that belong to the status, such as `allow` for 405 (RFC 9110). */
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: HttpErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }

  get statusCode(): number {
    return HTTP_STATUSES[this.code];
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
