import { strictEqual } from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  type DevelopmentTokenClaims,
  loadOrCreateDevelopmentKey,
  signDevelopmentToken,
} from '../../src/auth/development-key.ts';
import { multipartForm } from '../support/multipart-form.ts';
import {
  EXPORT,
  IMPORT,
  OPERATION_BY_ID,
  type Operation,
  type OperationPayload,
  PREVIEW,
  type Preview,
  type Scope,
} from './documents.ts';
import type { Processes, Running } from './processes.ts';

const PROJECT = fileURLToPath(new URL('../../', import.meta.url));
const POLL_MS = 200;
const ALL_SCOPES = ['state.read', 'state.export', 'state.import', 'state.overwrite', 'state.raw.read'];

/** How the service is started. */
export interface ServiceOptions {
  readonly processes: Processes;
  /** For the service alone. */
  readonly dataDirectory: string;
  readonly connectionString: string;
  /** Variables of the service beside the usual ones. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** This project's service, as a process of its own on a Kilolock database. */
export class ArchiveService {
  readonly #url: string;
  readonly #dataDirectory: string;
  readonly #running: Running;

  private constructor(url: string, dataDirectory: string, running: Running) {
    this.#url = url;
    this.#dataDirectory = dataDirectory;
    this.#running = running;
  }

  /** @throws Error with what it printed when it does not start. */
  static async start(options: ServiceOptions): Promise<ArchiveService> {
    const { processes, dataDirectory, connectionString, environment } = options;
    let url: string | undefined;
    const running = await processes.serve(
      process.execPath,
      ['src/main.ts'],
      {
        directory: PROJECT,
        environment: {
          HOME: dataDirectory,
          NO_COLOR: '1',
          PORT: '0',
          DATA_DIR: dataDirectory,
          DATABASE_URL: connectionString,
          AUTH_DEV_KEY: 'on',
          ...environment,
        },
      },
      (log) => {
        url = /^Endpoint +(\S+)\/graphql$/m.exec(log)?.[1];
        return url !== undefined;
      },
    );
    return new ArchiveService(url ?? '', dataDirectory, running);
  }

  /** The address of `/graphql`. */
  get endpoint(): string {
    return `${this.#url}/graphql`;
  }

  /** All it printed so far. */
  get log(): string {
    return this.#running.log;
  }

  /** A token signed with its development key; every scope, self-hosted, unless the claims say otherwise. */
  async token(claims: Partial<DevelopmentTokenClaims> = {}): Promise<string> {
    const key = await loadOrCreateDevelopmentKey(this.#dataDirectory);
    return signDevelopmentToken(key, {
      subject: 'dev@localhost',
      scopes: ALL_SCOPES,
      ttlSeconds: 3600,
      ...claims,
    });
  }

  /** The service as the bearer of a token sees it. */
  as(token: string): ArchiveClient {
    return this.withAuthorization(`Bearer ${token}`);
  }

  /** The service as it answers to an `Authorization` header. */
  withAuthorization(authorization: string): ArchiveClient {
    return new ArchiveClient(this.endpoint, authorization);
  }

  async stop(): Promise<void> {
    await this.#running.stop();
  }
}

/** What a GraphQL request was answered. */
export interface GraphqlAnswer<Data> {
  readonly data: Data | null;
  /** The codes of the errors. */
  readonly codes: readonly string[];
  /** What they say. */
  readonly messages: readonly string[];
}

/** A finished export. */
export interface Exported {
  readonly operation: Operation;
  readonly historyDigest: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** How an import is asked for, beside its file. */
export interface ImportOptions {
  readonly name?: string;
  readonly scope?: Scope;
  readonly onConflict?: 'REFUSE' | 'ARCHIVED_COPY' | 'OVERWRITE';
  readonly confirmName?: string;
  readonly expectedCurrentSerial?: string;
  readonly allowSharedLineage?: boolean;
  readonly dryRun?: boolean;
}

/** What became of an export or import. */
export interface Ended {
  readonly operation: Operation | null;
  /** The codes of user errors and of GraphQL errors; empty when it succeeded. */
  readonly codes: readonly string[];
  /** What the errors say. */
  readonly messages: readonly string[];
}

/** The service as one caller sees it. */
export class ArchiveClient {
  readonly #endpoint: string;
  readonly #authorization: string;

  constructor(endpoint: string, authorization: string) {
    this.#endpoint = endpoint;
    this.#authorization = authorization;
  }

  /** Sends a document; a file goes along as the variable `$file`. */
  async ask<Data>(
    query: string,
    variables: Readonly<Record<string, unknown>> = {},
    file?: Uint8Array<ArrayBuffer>,
  ): Promise<GraphqlAnswer<Data>> {
    const response = await fetch(this.#endpoint, {
      method: 'POST',
      headers: {
        authorization: this.#authorization,
        accept: 'application/json',
        ...(file === undefined
          ? { 'content-type': 'application/json' }
          : { 'apollo-require-preflight': '1' }),
      },
      body:
        file === undefined
          ? JSON.stringify({ query, variables })
          : multipartForm(query, variables, { bytes: file, name: 'state.klstate' }),
    });
    const { data, errors = [] } = (await response.json()) as {
      data?: Data | null;
      errors?: { message: string; extensions?: { code?: string } }[];
    };
    return {
      data: data ?? null,
      codes: errors.map(({ extensions }) => extensions?.code ?? ''),
      messages: errors.map(({ message }) => message),
    };
  }

  /** The state of a name; null when this caller is told of none. */
  async preview(name: string, scope?: Scope): Promise<Preview | null> {
    const { data, messages } = await this.ask<{ stateArchive: Preview | null }>(PREVIEW, { name, scope });
    if (messages.length > 0) throw new Error(`The preview of ${name} was refused: ${messages.join('; ')}`);
    return data?.stateArchive ?? null;
  }

  /** The preview of a state that has to be there. */
  async manifest(name: string): Promise<Preview['manifest']> {
    const preview = await this.preview(name);
    if (preview === null) throw new Error(`There is no state ${name}.`);
    return preview.manifest;
  }

  /** Exports a state and downloads the archive. @throws Error when that is refused. */
  async export(name: string, scope?: Scope): Promise<Exported> {
    const answer = await this.ask<{ exportStateArchive: OperationPayload | null }>(EXPORT, { name, scope });
    const { operation, messages, codes } = await this.#ended(answer, answer.data?.exportStateArchive, scope);
    if (!operation?.archive?.downloadUrl || operation.status !== 'SUCCEEDED') {
      const status = operation?.status ?? 'no operation';
      throw new Error(`The export of ${name} was refused (${status}): ${[...codes, ...messages].join('; ')}`);
    }
    const response = await fetch(operation.archive.downloadUrl);
    strictEqual(response.status, 200, 'the download succeeds');
    const bytes = new Uint8Array(await response.arrayBuffer());
    strictEqual(createHash('sha256').update(bytes).digest('hex'), operation.archive.sha256);
    return { operation, historyDigest: operation.archive.historyDigest, bytes };
  }

  /** Imports an archive, and waits for what becomes of it. */
  async import(bytes: Uint8Array<ArrayBuffer>, options: ImportOptions = {}): Promise<Ended> {
    const answer = await this.ask<{ importStateArchive: OperationPayload | null }>(
      IMPORT,
      { ...options },
      bytes,
    );
    return this.#ended(answer, answer.data?.importStateArchive, options.scope);
  }

  /** What became of an operation; on a busy machine that takes longer than a mutation waits. */
  async #ended(
    answer: GraphqlAnswer<unknown>,
    payload: OperationPayload | null | undefined,
    scope: Scope | undefined,
  ): Promise<Ended> {
    const { userErrors = [] } = payload ?? {};
    let { operation = null } = payload ?? {};
    const errors = [...userErrors];
    while (operation?.status === 'PENDING' || operation?.status === 'RUNNING') {
      await pause(POLL_MS);
      const { id } = operation;
      const { data } = await this.ask<{ stateArchiveOperation: Operation }>(OPERATION_BY_ID, { id, scope });
      operation = data?.stateArchiveOperation ?? null;
      if (operation?.error) errors.push(operation.error);
    }
    return {
      operation,
      codes: [...answer.codes, ...errors.map(({ code }) => code)],
      messages: [...answer.messages, ...errors.map(({ message }) => message)],
    };
  }
}
