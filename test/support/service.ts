import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import {
  type DevelopmentTokenClaims,
  loadOrCreateDevelopmentKey,
  signDevelopmentToken,
} from '../../src/auth/development-key.ts';
import { readConfig } from '../../src/config.ts';
import { connectDatabase, type KilolockDatabase } from '../../src/database/connection.ts';
import { startService } from '../../src/service.ts';
import { createTestDatabase } from './database.ts';
import { multipartForm } from './multipart-form.ts';
import { PlantedSecrets } from './planted-secrets.ts';

/** What a GraphQL request was answered. */
export interface GraphqlAnswer<Data> {
  readonly status: number;
  /** As the document asks for it; unchecked. */
  readonly data: Data;
  readonly errors: readonly GraphqlProblem[];
  /** `path: CODE` of every error, as in `stateArchive.manifest: FORBIDDEN`. */
  readonly denials: readonly string[];
  /** The whole body, to look for what must not be in it; its request ids, which differ each time, are blotted out. */
  readonly text: string;
}

export interface GraphqlProblem {
  readonly message: string;
  readonly path?: readonly (string | number)[];
  readonly extensions: { readonly code: string };
}

/** How a request is sent. */
export interface AskOptions {
  readonly variables?: Readonly<Record<string, unknown>>;
  /** The credential; null sends none, absent sends one with every scope of the self-hosted environment. */
  readonly token?: string | null;
  /** Headers beside the usual ones, in place of those of the same name; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Goes along as the variable `$file`, in a multipart request. */
  readonly file?: { readonly bytes: Uint8Array<ArrayBuffer>; readonly name?: string };
}

/** The real service on a database of its own, listening on a free port. */
export interface TestService {
  readonly url: string;
  readonly database: KilolockDatabase;
  readonly dataDirectory: string;
  /** Every line logged so far, as text. */
  readonly log: readonly string[];
  /** A token the service accepts; every scope, self-hosted, unless the claims say otherwise. */
  token(claims?: Partial<DevelopmentTokenClaims>): Promise<string>;
  /** Sends a GraphQL document over HTTP. */
  ask<Data = unknown>(query: string, options?: AskOptions): Promise<GraphqlAnswer<Data>>;
  /**
   * Starts another replica: with the same variables, on the same database, by connections and with a `DATA_DIR` of its own. It
   * stops with the service.
   *
   * @returns where it listens.
   */
  startReplica(): Promise<string>;
  /** The SQL statements that `work` made the service send, its housekeeping left out. */
  statementsOf(work: () => Promise<unknown>): Promise<readonly string[]>;
  /** Stops it, and fails when its log or its records hold a secret: see {@link PlantedSecrets}. */
  stop(): Promise<void>;
}

export const ALL_SCOPES = ['state.read', 'state.export', 'state.import', 'state.raw.read'] as const;

/** Starts the service. `environment` holds variables of `readConfig`, such as `MAX_INLINE_UPLOAD_BYTES`. */
export async function startTestService(
  environment: Readonly<Record<string, string>> = {},
): Promise<TestService> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'state-archive-service-'));
  const { database, connectionString, drop } = await createTestDatabase();
  const statements: string[] = [];
  recordStatements(database, statements);
  const log: string[] = [];
  const startOn = (directory: string, itsDatabase: KilolockDatabase) => {
    const config = readConfig({ DATA_DIR: directory, PORT: '0', LOG_LEVEL: 'debug', ...environment });
    const logger = pino({ level: config.logLevel }, { write: (line) => void log.push(line) });
    return startService(config, itsDatabase, logger);
  };
  const service = await startOn(dataDirectory, database);
  const replicas = new AsyncDisposableStack();
  const key = await loadOrCreateDevelopmentKey(dataDirectory);

  const secrets = new PlantedSecrets();
  const token: TestService['token'] = async (claims = {}) =>
    secrets.add(
      await signDevelopmentToken(key, {
        subject: 'alice@test',
        scopes: ALL_SCOPES,
        ttlSeconds: 600,
        ...claims,
      }),
    );

  return {
    url: service.url,
    database,
    dataDirectory,
    log,
    token,
    async ask<Data>(query: string, options: AskOptions = {}) {
      const { variables = {}, file } = options;
      const credential = options.token === undefined ? await token() : options.token;
      const response = await fetch(`${service.url}/graphql`, {
        method: 'POST',
        headers: {
          ...(credential !== null && { authorization: `Bearer ${credential}` }),
          ...(file === undefined
            ? { 'content-type': 'application/json' }
            : { 'apollo-require-preflight': 'true' }),
          ...options.headers,
        },
        body:
          file === undefined
            ? JSON.stringify({ query, variables })
            : multipartForm(query, variables, { name: 'state.klstate', ...file }),
      });
      const text = await response.text();
      secrets.checkAnswer(query, text);
      return answerOf<Data>(response.status, withoutRequestId(text));
    },
    async startReplica() {
      const directory = await mkdtemp(join(tmpdir(), 'state-archive-replica-'));
      replicas.defer(() => rm(directory, { recursive: true, force: true }));
      const own = connectDatabase({ connectionString });
      replicas.defer(() => own.close());
      const replica = await startOn(directory, own);
      replicas.defer(() => replica.close());
      return replica.url;
    },
    async statementsOf(work) {
      const before = statements.length;
      await work();
      return statements.slice(before);
    },
    async stop() {
      await replicas.disposeAsync();
      await service.close();
      try {
        await secrets.checkRecords(database);
        secrets.checkText('The log', log.join(''));
      } finally {
        await drop();
        await rm(dataDirectory, { recursive: true, force: true });
      }
    },
  };
}

/** An answer's body with nothing in it that is different for each request, to be compared with another's. */
export function withoutRequestId(text: string): string {
  return text.replace(/("requestId":")[^"]*"/g, '$1…"');
}

function answerOf<Data>(status: number, text: string): GraphqlAnswer<Data> {
  const { data, errors = [] } = JSON.parse(text) as { data: Data; errors?: GraphqlProblem[] };
  const denials = errors.map(({ path = [], extensions }) => `${path.join('.')}: ${extensions.code}`);
  return { status, data, errors, denials, text };
}

/** Notes the text of every statement that goes over any connection but the queue's, which is asked by the clock. */
function recordStatements({ pools }: KilolockDatabase, statements: string[]): void {
  for (const pool of [pools.reads, pools.writes, pools.streams]) {
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      const recording = (...args: unknown[]) => {
        const [statement] = args;
        const text = typeof statement === 'string' ? statement : (statement as { text?: string }).text;
        if (text !== undefined && !isHousekeeping(text)) statements.push(text);
        return query(...args);
      };
      client.query = recording as typeof client.query;
    });
  }
}

/** What the service does by the clock and not for a request: the sweep for operations that nobody looks after. */
function isHousekeeping(statement: string): boolean {
  return statement.includes('heartbeat_at + make_interval');
}
