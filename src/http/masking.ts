import { GraphQLError, type GraphQLFormattedError, isValueNode, Kind } from 'graphql';
import { CallerError } from '../base/caller-error.ts';
import { clip } from '../base/clip.ts';
import { originalError } from '../base/error-log.ts';
import { INTERNAL_ERROR_MESSAGE } from './http-error.ts';
import { MAX_DOCUMENT_TOKENS } from './limits.ts';

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

/** What is said in place of the messages of graphql-js, which quote values, literals and names the caller did not use. */
const MESSAGES_OF_GRAPHQL: ReadonlyMap<unknown, string> = new Map([
  ['GRAPHQL_PARSE_FAILED', `The document is not GraphQL, or has more than ${MAX_DOCUMENT_TOKENS} tokens`],
  ['GRAPHQL_VALIDATION_FAILED', 'The document does not fit the schema'],
  [
    'OPERATION_RESOLUTION_FAILURE',
    'The document has no operation of that name, or several and none is named',
  ],
  ['BAD_USER_INPUT', 'An argument cannot have the value that is given'],
]);

/**
 * What a caller is told of a GraphQL error.
 *
 * @param formatted the error as Apollo would send it.
 * @param error what was thrown.
 * @param requestId goes into every answer, so that whoever has it can be helped: the log has the request under it.
 * @returns the message where it is written for callers; for what graphql-js objects to, a sentence that names the place; for
 *   everything else one message, with the code INTERNAL: it belongs in the log.
 */
export function maskError(
  { message, locations, path, extensions = {} }: GraphQLFormattedError,
  error: unknown,
  requestId: string,
): GraphQLFormattedError {
  const place = { ...(locations && { locations }), ...(path && { path }) };
  const origin = originalError(error);
  if (origin instanceof CallerError) {
    return { message: origin.message, ...place, extensions: { code: origin.code, requestId } };
  }
  if (origin instanceof GraphQLError) {
    // What is thrown here has a code. What graphql-js throws has none, and gets one from Apollo by where it was caught.
    if (origin.extensions.code === undefined) {
      const code = MESSAGES_OF_GRAPHQL.has(extensions.code) ? extensions.code : codeOfExecution(origin);
      const sentence = MESSAGES_OF_GRAPHQL.get(code);
      if (sentence) {
        return { message: `${sentence}${whereOf(origin)}.`, ...place, extensions: { code, requestId } };
      }
    } else if (PUBLIC_ERROR_CODES.has(String(extensions.code))) {
      return { message, ...place, extensions: { ...extensions, requestId } };
    }
  }
  return { message: INTERNAL_ERROR_MESSAGE, ...place, extensions: { code: 'INTERNAL', requestId } };
}

/**
 * The executor objects to values alone where a variable is null and the default of the schema may stand, which validation lets
 * pass. Whatever else it objects to is a fault of a resolver.
 */
function codeOfExecution({ nodes }: GraphQLError): 'BAD_USER_INPUT' | undefined {
  return nodes?.some(isValueNode) ? 'BAD_USER_INPUT' : undefined;
}

/** The name and the place in the document that an error is about, as far as it has them. A value has no name. */
function whereOf({ nodes = [], locations = [] }: GraphQLError): string {
  const [name] = nodes.flatMap((node) => {
    if (node.kind === Kind.NAME) return node.value;
    return 'name' in node && node.name ? node.name.value : [];
  });
  const [place] = locations;
  return `${name === undefined ? '' : `: "${clip(name, 64)}"`}${place ? ` (line ${place.line}, column ${place.column})` : ''}`;
}
