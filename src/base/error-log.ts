import { types } from 'node:util';
import { GraphQLError } from 'graphql';
import { clip } from './clip.ts';

/** What the log holds of an error. */
export interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code: string | undefined;
  readonly stack: string | undefined;
  readonly cause: LoggedError | undefined;
}

const MAX_MESSAGE_LENGTH = 500;
const MAX_CAUSES = 4;
const URL_AUTHORITY = /:\/\/([^\s/]+)/g;
// As libpq takes it, in a connection string of keywords or in a URL's query.
const PASSWORD = /(password=)(?:'[^']*|[^\s&]*)/gi;
const LINK_TOKEN = /([?&](?:token|x-amz-signature|x-amz-security-token)=)[^\s&"']*/gi;

/**
 * Picks from an error what may be logged: its type, message, code, stack and causes. The rest is left out, because
 * errors of drivers carry rows (`detail`, `where`) and errors of GraphQL carry the whole query. Redacted from messages
 * are credentials in URLs, link tokens, the values PostgreSQL and JSON parsers quote, and the paths of files.
 */
export function describeError(error: unknown, depth = 0): LoggedError {
  const origin = originalError(error);
  // Those of another realm are no instance of this one's Error, and a DOMException is no native error.
  if (!(origin instanceof Error || types.isNativeError(origin))) {
    return {
      type: typeof origin,
      message: 'not an Error',
      code: undefined,
      stack: undefined,
      cause: undefined,
    };
  }
  const code = 'code' in origin && typeof origin.code === 'string' ? origin.code : undefined;
  return {
    type: origin.name,
    message: clip(safeMessage(origin, code), MAX_MESSAGE_LENGTH),
    code,
    // The stack repeats the message, which may be long: only its frames are kept.
    stack: origin.stack
      ?.split('\n')
      .filter((line) => /^\s+at /.test(line))
      .join('\n'),
    cause:
      origin.cause === undefined || depth >= MAX_CAUSES ? undefined : describeError(origin.cause, depth + 1),
  };
}

/** The error that was thrown, under the wrappers GraphQL puts around it to say where. */
export function originalError(error: unknown): unknown {
  let origin = error;
  while (origin instanceof GraphQLError && origin.originalError) origin = origin.originalError;
  return origin;
}

/** A message without the parts that repeat what the failing code was given. */
function safeMessage(error: Error, code: string | undefined): string {
  const message = redactSecrets(error.message);
  // "Data exception" (PostgreSQL, appendix A): the messages quote the value. So do those of JSON.parse.
  const quotesValue = error instanceof SyntaxError || /^22[0-9A-Z]{3}$/.test(code ?? '');
  if (quotesValue) return withoutQuoted(message, '"');
  return 'syscall' in error && 'path' in error ? withoutQuoted(message, "'") : message;
}

/** A message without all that stands from its first quotation mark to its last. */
function withoutQuoted(message: string, mark: string): string {
  const first = message.indexOf(mark);
  const last = message.lastIndexOf(mark);
  return first === last ? message : `${message.slice(0, first + 1)}…${message.slice(last)}`;
}

/** Up to the last @: a password may hold others. */
function withoutCredentials(found: string, authority: string): string {
  const end = authority.lastIndexOf('@');
  return end < 0 ? found : `://***${authority.slice(end)}`;
}

/** A text for the log without the credentials in URLs and the link tokens it holds. */
export function redactSecrets(text: string): string {
  return text
    .replace(URL_AUTHORITY, withoutCredentials)
    .replace(PASSWORD, '$1***')
    .replace(LINK_TOKEN, '$1***');
}
