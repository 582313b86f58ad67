import type { IncomingHttpHeaders } from 'node:http';
import { MIMEType } from 'node:util';
import { ApolloServer } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import { ApolloServerPluginInlineTrace } from '@apollo/server/plugin/inlineTrace';
import { fastifyApolloHandler } from '@as-integrations/fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { GraphQLFormattedError, GraphQLSchema } from 'graphql';
import type { Logger } from 'pino';
import { InvalidCredentialError } from '../auth/jwt-verifier.ts';
import type { Principal } from '../auth/principal.ts';
import { KeySetUnavailableError } from '../auth/remote-key-set.ts';
import { describeError, originalError, redactSecrets } from '../base/error-log.ts';
import { present } from '../base/invariant.ts';
import { noteRefusal } from '../base/telemetry.ts';
import { DatabaseUnavailableError } from '../database/errors.ts';
import { fragmentRingsRule, MAX_VALIDATION_ERRORS } from './fragment-rings.ts';
import { HttpError } from './http-error.ts';
import { receiveJsonBody, refuseCodings } from './json-body.ts';
import { MAX_DOCUMENT_TOKENS } from './limits.ts';
import { maskError } from './masking.ts';
import { receiveMultipartBody } from './multipart-body.ts';
import { operationPlugin } from './operation-check.ts';
import { type RequestScope, requestScope } from './request-scope.ts';
import { refuseOtherMethods } from './route-methods.ts';

/** Where GraphQL is served. */
export const GRAPHQL_PATH = '/graphql';

/** Asks for a trace beside the answer, which tells a gateway how long each field took. */
const TRACE_HEADER = 'apollo-federation-include-trace';
/** The largest JSON body of a caller without a credential, in bytes. */
const MAX_ANONYMOUS_BODY_BYTES = 1024 * 1024;
/** What a browser does not send to another site without asking first; one of them must be there and not empty. */
const CSRF_HEADERS = ['apollo-require-preflight', 'x-apollo-operation-name'];

/** What a context is made from. */
export interface ContextRequest
  extends Readonly<Pick<RequestScope, 'principal' | 'fromGateway' | 'requestId' | 'logger' | 'signal'>> {
  /** The address clients reach the service at, without a trailing slash. It is never taken from the request. */
  readonly publicUrl: string;
}

/** What GraphQL over HTTP needs from the rest. */
export interface GraphqlRouteOptions<Context extends object> {
  /** The schema, which enforces its own authorisation: callers without a credential get as far as it. */
  readonly schema: GraphQLSchema;
  /**
   * Tells who calls from the `Authorization` header.
   *
   * @throws InvalidCredentialError for a credential that is not accepted.
   * @throws KeySetUnavailableError when nobody can tell.
   */
  authenticate(authorization: string | undefined): Promise<Principal | null>;
  /** Makes the context of one request. Apollo hands a shallow copy of it to the resolvers. */
  createContext(request: ContextRequest): Context;
  /** Whether the schema can be asked for by introspection; a gateway asks for `_service`. */
  readonly introspection: boolean;
  /** The largest file of a multipart request, and the largest JSON body of an authenticated caller, in bytes. */
  readonly maxInlineUploadBytes: number;
  /** Whether there is a playground to lead browsers to. */
  readonly playground: boolean;
  /** Where request lines and failures go. */
  readonly logger: Logger;
}

/**
 * `POST /graphql`, as JSON or as a multipart request with one file. The credential, the media type and the protection
 * against cross-site requests are settled before the first byte of the body is looked at.
 *
 * @param publicUrl the address clients reach the service at, known once the server listens.
 */
export async function addGraphqlRoute<Context extends object>(
  server: FastifyInstance,
  publicUrl: () => string,
  options: GraphqlRouteOptions<Context>,
): Promise<void> {
  const apollo = createApollo(options);
  await apollo.start();
  // When the requests at work have their answers.
  server.addHook('onClose', () => apollo.stop());
  const handle = fastifyApolloHandler(apollo, {
    context: async (request: FastifyRequest) => {
      const { principal, fromGateway, requestId, logger, signal } = request.scope;
      const known = { principal, fromGateway, requestId, logger, signal };
      return options.createContext({ ...known, publicUrl: publicUrl() });
    },
  });
  const { maxInlineUploadBytes } = options;
  const maxAnonymousBytes = Math.min(MAX_ANONYMOUS_BODY_BYTES, maxInlineUploadBytes);
  server.register(async (scoped) => {
    scoped.removeAllContentTypeParsers();
    scoped.addContentTypeParser('application/json', async ({ raw, scope }: FastifyRequest) =>
      receiveJsonBody(raw, scope.principal === null ? maxAnonymousBytes : maxInlineUploadBytes),
    );
    scoped.addContentTypeParser('multipart/form-data', async ({ raw, scope }: FastifyRequest) => {
      refuseCodings(raw);
      return receiveMultipartBody(raw, scope.response, maxInlineUploadBytes);
    });
    scoped.route({
      method: 'POST',
      url: GRAPHQL_PATH,
      async onRequest(request) {
        if (!request.scope.fromGateway) delete request.raw.headers[TRACE_HEADER];
        request.scope.principal = await authenticate(request, options);
        const mediaType = acceptedMediaType(request.headers);
        // As everything behind knows it: graphql-upload-minimal takes another case, or a space before its parameters, which mean
        // nothing (RFC 9110, section 8.3.1), for another type.
        request.raw.headers['content-type'] = String(mediaType);
        if (mediaType.essence === 'multipart/form-data') {
          refuseCrossSite(request.headers);
          if (request.scope.principal === null) {
            throw new HttpError('UNAUTHENTICATED', 'Authentication is required.', {
              'www-authenticate': 'Bearer',
            });
          }
        }
      },
      handler(request, reply) {
        const { scope } = request;
        return scope.observed.run(() =>
          requestScope.run(scope, () => Reflect.apply(handle, scoped, [request, reply])),
        );
      },
    });
  });
  if (options.playground) {
    server.get(GRAPHQL_PATH, async (request, reply) => {
      if (request.headers.accept?.includes('text/html')) return reply.redirect('/playground', 302);
      throw new HttpError('METHOD_NOT_ALLOWED', 'This address serves POST.', {
        allow: 'POST',
      });
    });
  }
  refuseOtherMethods(server, GRAPHQL_PATH, options.playground ? ['POST', 'GET'] : ['POST']);
}

/** The GraphQL server. Nothing of it depends on the environment, and nothing of it reports to anyone. */
function createApollo<Context extends object>({
  schema,
  introspection,
  logger,
}: GraphqlRouteOptions<Context>) {
  return new ApolloServer<Context>({
    schema,
    introspection,
    csrfPrevention: { requestHeaders: CSRF_HEADERS },
    allowBatchedHttpRequests: false,
    persistedQueries: false,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    nodeEnv: 'production',
    parseOptions: { maxTokens: MAX_DOCUMENT_TOKENS },
    validationRules: [fragmentRingsRule],
    validationOptions: { maxErrors: MAX_VALIDATION_ERRORS },
    logger: {
      debug: () => {},
      info: () => {},
      warn: (message: unknown) => logger.warn(redactSecrets(String(message))),
      error: (message: unknown) => logger.error(redactSecrets(String(message))),
    },
    formatError: maskAndLog,
    plugins: [
      ApolloServerPluginCacheControlDisabled(),
      // Answers whoever asks with TRACE_HEADER, which only the gateway's requests get this far with.
      ApolloServerPluginInlineTrace({ includeErrors: { masked: true } }),
      ApolloServerPluginLandingPageDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
      ApolloServerPluginUsageReportingDisabled(),
      operationPlugin(),
    ],
  });
}

async function authenticate(
  request: FastifyRequest,
  options: Pick<GraphqlRouteOptions<never>, 'authenticate'>,
): Promise<Principal | null> {
  try {
    return await options.authenticate(request.headers.authorization);
  } catch (error) {
    if (error instanceof InvalidCredentialError) {
      request.scope.logger.info({ reason: error.reason }, 'credential refused');
      throw new HttpError('UNAUTHENTICATED', error.message, {
        'www-authenticate': `Bearer error="invalid_token", error_description="${error.message}"`,
      });
    }
    if (error instanceof KeySetUnavailableError) {
      request.scope.logger.error({ reason: error.reason }, 'credentials cannot be verified');
      throw new HttpError('NOT_READY', error.message);
    }
    throw error;
  }
}

function acceptedMediaType(headers: IncomingHttpHeaders): MIMEType {
  let mediaType: MIMEType | undefined;
  try {
    mediaType = new MIMEType(headers['content-type'] ?? '');
  } catch {
    // Answered below, with every other type that is not accepted.
  }
  const charset = mediaType?.params.get('charset')?.toLowerCase() ?? 'utf-8';
  if (mediaType?.essence === 'multipart/form-data') return mediaType;
  if (mediaType?.essence === 'application/json' && charset === 'utf-8') return mediaType;
  throw new HttpError(
    'UNSUPPORTED_MEDIA_TYPE',
    'Send application/json in UTF-8, or multipart/form-data with a file.',
  );
}

/** The rule Apollo Server has for JSON, here for multipart: a form on another site can send that type unasked. */
function refuseCrossSite(headers: IncomingHttpHeaders): void {
  if (CSRF_HEADERS.some((name) => headers[name])) return;
  throw new HttpError(
    'BAD_REQUEST',
    `A multipart request needs a header "${CSRF_HEADERS.join('" or "')}" that is not empty, as proof that no other site's form sent it.`,
  );
}

function maskAndLog(formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError {
  const { requestId, logger, loggedErrors } = present(requestScope.getStore(), 'a request is answered');
  const answered = maskError(formatted, error, requestId);
  noteRefusal('graphql', String(answered.extensions?.code));
  const origin = originalError(error);
  const isUnavailable = origin instanceof DatabaseUnavailableError;
  const isFailure = answered.extensions?.code === 'INTERNAL';
  if ((isFailure || isUnavailable) && !loggedErrors.has(origin)) {
    loggedErrors.add(origin);
    logger[isUnavailable ? 'warn' : 'error'](
      { error: describeError(error), path: formatted.path },
      isUnavailable ? 'the database is unavailable' : 'GraphQL request failed',
    );
  }
  return answered;
}
