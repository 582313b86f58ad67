import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { CallerError } from '../base/caller-error.ts';
import { originalError } from '../base/error-log.ts';
import { INTERNAL_ERROR_MESSAGE } from './http-error.ts';

/**
 * The codes whose messages are written for callers. An error with another code, or with one of these and not thrown
 * as a GraphQLError, is answered as INTERNAL: Apollo Server masks nothing by itself.
 */
export const PUBLIC_ERROR_CODES: ReadonlySet<string> = new Set([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'OPERATION_RESOLUTION_FAILURE',
  'PERSISTED_QUERY_NOT_SUPPORTED',
  'BAD_REQUEST',
  'BAD_USER_INPUT',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'PAYLOAD_TOO_LARGE',
  'UPLOAD_INTERRUPTED',
  'QUERY_TOO_LARGE',
]);

const CODES_OF_GRAPHQL: ReadonlySet<string> = new Set([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'BAD_USER_INPUT',
]);

/**
 * What a caller is told of a GraphQL error.
 *
 * @param formatted the error as Apollo would send it.
 * @param error what was thrown.
 * @param requestId goes into every answer, so that whoever has it can be helped: the log has the request under it.
 * @param namesOthers whether a message may suggest names of the schema that the caller did not use.
 * @returns `formatted` with the caller's own values taken out of the message, or one message for everything that is
 *   not written for callers. `masked` says which; a masked error belongs in the log.
 */
export function maskError(
  formatted: GraphQLFormattedError,
  error: unknown,
  requestId: string,
  namesOthers: boolean,
): { readonly masked: boolean; readonly error: GraphQLFormattedError } {
  const origin = originalError(error);
  if (origin instanceof CallerError) {
    const { code, message } = origin;
    return { masked: false, error: { ...formatted, message, extensions: { code, requestId } } };
  }
  const code = formatted.extensions?.code;
  const position = {
    ...(formatted.locations && { locations: formatted.locations }),
    ...(formatted.path && { path: formatted.path }),
  };
  if (isUnusableArgument(origin)) {
    const message = withoutValues(formatted.message);
    return {
      masked: false,
      error: { message, ...position, extensions: { code: 'BAD_USER_INPUT', requestId } },
    };
  }
  if (typeof code !== 'string' || !PUBLIC_ERROR_CODES.has(code) || !(origin instanceof GraphQLError)) {
    return {
      masked: true,
      error: { message: INTERNAL_ERROR_MESSAGE, ...position, extensions: { code: 'INTERNAL', requestId } },
    };
  }
  const {
    stacktrace: _stacktrace,
    exception: _exception,
    http: _http,
    ...extensions
  } = formatted.extensions ?? {};
  const message = CODES_OF_GRAPHQL.has(code) ? withoutValues(formatted.message) : formatted.message;
  const told = namesOthers ? message : withoutSuggestion(message);
  return { masked: false, error: { message: told, ...position, extensions: { ...extensions, requestId } } };
}

/**
 * Whether the executor could make no value of an argument, as when a variable is null where the default of the schema may
 * stand: validation lets that pass, and the error has no code.
 */
function isUnusableArgument(error: unknown): boolean {
  return (
    error instanceof GraphQLError &&
    error.extensions.code === undefined &&
    /^Argument "\w+" (?:has invalid value|of (?:non-null|required) type) /.test(error.message)
  );
}

/**
 * The messages of graphql-js quote the value or the literal they object to, which may be a secret and would end in
 * the logs of whatever stands between. What is left names the type and, by `locations`, the place.
 */
function withoutValues(message: string): string {
  return message
    .replace(/^(Variable "\$\w+" got )invalid value [\s\S]*/, '$1an invalid value.')
    .replace(/^(Argument "\w+" has )invalid value [\s\S]*/, '$1an invalid value.')
    .replace(/^Value "[^"]*" (does not exist in "\w+" enum\.)/, 'The value $1')
    .replace(/^(Expected value of type "[^"]+"), found [\s\S]*/, '$1.')
    .replace(/^((?:Enum )?"?\w+"? cannot represent [^:]*): [\s\S]*/, '$1.')
    .replace(/\b(String|BlockString|Int|Float|Comment) "[\s\S]*/, '$1.');
}

/** graphql-js suggests at the end of a message. */
function withoutSuggestion(message: string): string {
  const end = message.indexOf(' Did you mean ');
  return end < 0 ? message : message.slice(0, end);
}
