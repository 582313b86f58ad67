import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  GraphQLBoolean,
  GraphQLEnumType,
  GraphQLError,
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
} from 'graphql';
import { GraphQLUpload } from 'graphql-upload-minimal';
import pino from 'pino';
import { InvalidCredentialError } from '../../../src/auth/jwt-verifier.ts';
import type { Principal } from '../../../src/auth/principal.ts';
import { KeySetUnavailableError } from '../../../src/auth/remote-key-set.ts';
import type { ContextRequest } from '../../../src/http/graphql-route.ts';
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../../../src/http/server.ts';
import { type FileUpload, type SpooledUpload, spoolUpload } from '../../../src/http/upload.ts';

export const TOKEN = 'Bearer good-token-of-alice';

export const alice: Principal = {
  subject: 'user-alice',
  actor: 'Alice',
  scopes: new Set(['state.read', 'state.import']),
  workspace: null,
  environment: null,
  statePatterns: null,
};

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly server: HttpServer;
  /** Every line logged so far, parsed. */
  readonly log: readonly Record<string, unknown>[];
  /** The contexts made so far. */
  readonly contexts: readonly ContextRequest[];
  /** How every call of the resolver `receive` ended, in order. */
  readonly received: readonly Promise<SpooledUpload>[];
  /** The names of what `receive` left on disk. */
  spooledFiles(): Promise<readonly string[]>;
  /** What the resolver `fail` throws. */
  failure: unknown;
  stop(): Promise<void>;
}

type TestContext = ContextRequest & { spool(file: Promise<FileUpload>): Promise<SpooledUpload> };

/** What the test's gateway proves itself with. */
export const GATEWAY_SECRET = 'the-secret-of-the-gateway';

/** Starts a server of the HTTP layer alone, with a schema of the test's own, on a free port. */
export async function startTestServer(
  overrides: Partial<HttpServerOptions<TestContext>> = {},
): Promise<TestServer> {
  const directory = await mkdtemp(join(tmpdir(), 'http-test-'));
  const log: Record<string, unknown>[] = [];
  const contexts: ContextRequest[] = [];
  const received: Promise<SpooledUpload>[] = [];
  const maxInlineUploadBytes = overrides.maxInlineUploadBytes ?? 8 * 1024 * 1024;
  const server = await createHttpServer<TestContext>({
    schema: testSchema(() => testServer.failure),
    async authenticate(authorization) {
      if (authorization === undefined) return null;
      if (authorization === TOKEN) return alice;
      if (authorization === 'Bearer outage') throw new KeySetUnavailableError('connection refused');
      throw new InvalidCredentialError('bad signature');
    },
    isGateway: (secret) => secret === GATEWAY_SECRET,
    metrics: null,
    introspection: true,
    createContext(request) {
      contexts.push(request);
      return {
        ...request,
        spool(file) {
          const path = join(directory, `${received.length}.upload`);
          const spooled = spoolUpload(file, path, { maxBytes: maxInlineUploadBytes, signal: request.signal });
          spooled.catch(() => {});
          received.push(spooled);
          return spooled;
        },
      };
    },
    openDownload: async () => null,
    openUpload: async () => null,
    isReady: async () => true,
    logger: pino({ level: 'debug' }, { write: (line: string) => void log.push(JSON.parse(line)) }),
    playground: false,
    publicUrl: null,
    maxInlineUploadBytes,
    ...overrides,
  });
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const testServer: TestServer = {
    url,
    port: Number(new URL(url).port),
    server,
    log,
    contexts,
    received,
    spooledFiles: () => readdir(directory),
    failure: undefined,
    async stop() {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return testServer;
}

function testSchema(failure: () => unknown): GraphQLSchema {
  const file = { type: new GraphQLNonNull(GraphQLUpload) };
  const Policy = new GraphQLEnumType({ name: 'Policy', values: { REFUSE: {}, OVERWRITE: {} } });
  const EchoInput = new GraphQLInputObjectType({
    name: 'EchoInput',
    fields: {
      name: { type: new GraphQLNonNull(GraphQLString) },
      count: { type: GraphQLInt },
      policy: { type: Policy },
    },
  });
  const FileInput = new GraphQLInputObjectType({
    name: 'Input',
    fields: { file: { type: GraphQLUpload }, files: { type: new GraphQLList(GraphQLUpload) } },
  });
  const Received = new GraphQLObjectType<SpooledUpload>({
    name: 'Received',
    fields: {
      sizeBytes: { type: GraphQLString, resolve: ({ sizeBytes }) => String(sizeBytes) },
      sha256: { type: GraphQLString },
      fileName: { type: GraphQLString },
    },
  });
  return new GraphQLSchema({
    query: new GraphQLObjectType<unknown, TestContext>({
      name: 'Query',
      fields: {
        hello: { type: GraphQLString, args: { name: { type: GraphQLString } }, resolve: () => 'hello' },
        subject: {
          type: GraphQLString,
          resolve: (_root, _args, context) => context.principal?.subject ?? null,
        },
        echo: {
          type: GraphQLString,
          args: { input: { type: new GraphQLNonNull(EchoInput) } },
          resolve: (_root, { input }) => input.name,
        },
        fail: {
          type: GraphQLString,
          resolve() {
            throw failure();
          },
        },
        untilGone: {
          type: GraphQLString,
          resolve: (_root, _args, { signal }) =>
            new Promise((resolve) => signal.addEventListener('abort', () => resolve('gone'))),
        },
      },
    }),
    mutation: new GraphQLObjectType<unknown, TestContext>({
      name: 'Mutation',
      fields: {
        receive: {
          type: Received,
          args: { file },
          resolve: (_root, args, context) => context.spool(args.file),
        },
        receiveIn: {
          type: Received,
          args: { input: { type: new GraphQLNonNull(FileInput) } },
          resolve: (_root, { input }, context) =>
            context.spool(input.file ?? input.files.find((each: unknown) => each !== null)),
        },
        ignore: { type: GraphQLBoolean, args: { file }, resolve: () => true },
        refuse: {
          type: GraphQLBoolean,
          args: { file },
          resolve() {
            throw new GraphQLError('Not permitted.', { extensions: { code: 'FORBIDDEN' } });
          },
        },
        lengthOf: {
          type: GraphQLInt,
          args: { document: { type: new GraphQLNonNull(GraphQLString) } },
          resolve: (_root, { document }) => document.length,
        },
      },
    }),
  });
}
