import { openAsBlob } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, ScopeOptions } from './context.ts';
import { callerOf, findCredential } from './credentials.ts';
import type { UserError } from './documents.ts';
import { endingOf, failure, KlError } from './endings.ts';

/** A file that goes along as the variable `$file`. */
export interface SentFile {
  readonly name: string;
  /** Opened anew for each attempt. */
  open(): Promise<Blob>;
}

/** A file of the disk, streamed from there. */
export function sentFile(path: string): SentFile {
  return { name: basename(path), open: () => openAsBlob(path) };
}

/** An answer of the service, or of whatever stands at its address. */
interface Answer {
  readonly data?: unknown;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
  readonly error?: { readonly code: string; readonly message: string };
}

const ANSWER_MS = 60_000;
/** What a file that is sent inside a request may take; such files are small. */
const UPLOAD_MS = 600_000;
/** How long a service that has answered before is waited for: a restart takes less. */
const PATIENCE_MS = 120_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** The service with the credential there is. @throws KlError USAGE, NO_CREDENTIAL. */
export async function connect({ terminal, signal, elsewhere }: Context): Promise<Service> {
  const scope = scopeOf(elsewhere);
  const { endpoint, token } = await findCredential();
  const { protocol, hostname } = new URL(endpoint);
  if (protocol === 'http:' && !LOOPBACK.test(hostname)) {
    terminal.warn(`The token and the states go to ${hostname} unencrypted: KL_ENDPOINT begins with http:.`);
  }
  return new Service(endpoint, token, signal, scope);
}

/** The schema's StateScopeInput. */
interface Scope {
  readonly workspaceId: string;
  readonly environmentId: string;
  readonly reason: string | null;
}

/** @throws KlError USAGE for half a scope. */
function scopeOf({ workspace, environment, reason }: ScopeOptions): Scope | null {
  if (workspace !== undefined && environment !== undefined) {
    return { workspaceId: workspace, environmentId: environment, reason: reason ?? null };
  }
  if (workspace === undefined && environment === undefined && reason === undefined) return null;
  throw failure('USAGE', '--workspace and --environment go together, and --reason goes with them.');
}

/** Talks to one state archive service with one credential. */
export class Service {
  readonly endpoint: string;
  readonly #token: string;
  readonly #signal: AbortSignal;
  readonly #scope: Scope | null;
  #hasAnswered = false;

  constructor(endpoint: string, token: string, signal: AbortSignal, scope: Scope | null = null) {
    this.endpoint = endpoint;
    this.#scope = scope;
    this.#token = token;
    this.#signal = signal;
  }

  /** The public id of the environment that is worked in; null for the credential's own. */
  get environment(): string | null {
    return this.#scope?.environmentId ?? null;
  }

  /** Who works with which service, and where in it: another token of the same subject is the same caller. */
  get caller(): string {
    return JSON.stringify([this.endpoint, this.environment, callerOf(this.#token)]);
  }

  /**
   * Runs one GraphQL document, again and again while a service that has answered before is away. A mutation must carry its
   * idempotency key, so that a repetition does nothing twice. The variable `$scope` is this one's to say.
   *
   * @param options `partly`: what could be answered is taken, with nulls in place of what failed alone.
   * @returns the data, unchecked: its shape is what the document asks for.
   * @throws KlError with the code that the service gave, UNREACHABLE when there is none, UNKNOWN_ANSWER when what answers is no
   *   such service.
   */
  async ask<Data>(
    document: string,
    variables: Readonly<Record<string, unknown>>,
    { file, partly = false }: { readonly file?: SentFile; readonly partly?: boolean } = {},
  ): Promise<Data> {
    return this.patiently(async () => {
      const { status, answer } = await this.#post(document, { ...variables, scope: this.#scope }, file);
      const [problem] = answer.errors ?? [];
      if (problem !== undefined && !(partly && hasAnyData(answer.data))) {
        throw new KlError(problem.extensions?.code ?? 'UNKNOWN_ANSWER', problem.message);
      }
      if (answer.error !== undefined) throw new KlError(answer.error.code, answer.error.message);
      if (answer.data === undefined || answer.data === null) throw this.#unknownAnswer(status);
      this.#hasAnswered = true;
      return answer.data as Data;
    });
  }

  /** Does some work anew while it fails for reasons that pass by, for as long as a restart takes. */
  async patiently<Result>(work: () => Promise<Result>): Promise<Result> {
    const began = performance.now();
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        return await work();
      } catch (error) {
        if (this.#signal.aborted) throw this.#signal.reason;
        if (!isPassing(error) || !this.#hasAnswered || performance.now() - began > PATIENCE_MS) throw error;
        await this.pause(pause);
      }
    }
  }

  /** Waits. @throws what the interruption says. */
  async pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.#signal }).catch(() => {
      throw this.#signal.reason;
    });
  }

  async #post(document: string, variables: Readonly<Record<string, unknown>>, file: SentFile | undefined) {
    const authorization = `Bearer ${this.#token}`;
    const body =
      file === undefined
        ? JSON.stringify({ query: document, variables })
        : await multipartBody(document, variables, file);
    const headers =
      file === undefined
        ? { authorization, 'content-type': 'application/json' }
        : { authorization, 'apollo-require-preflight': 'true' };
    const milliseconds = file === undefined ? ANSWER_MS : UPLOAD_MS;
    const response = await reach(
      this.endpoint,
      {
        method: 'POST',
        headers,
        body,
        // A redirect could take the token elsewhere.
        redirect: 'error',
        signal: AbortSignal.any([this.#signal, AbortSignal.timeout(milliseconds)]),
      },
      this.#signal,
    );
    const { status } = response;
    const text = await response.text().catch((error: unknown) => {
      throw unreachable(this.endpoint, error, this.#signal);
    });
    try {
      return { status, answer: JSON.parse(text) as Answer };
    } catch {
      throw this.#unknownAnswer(status);
    }
  }

  #unknownAnswer(status: number): KlError {
    if ([502, 503, 504].includes(status)) {
      return new KlError('UNAVAILABLE', `${this.endpoint} answers ${status}.`);
    }
    return failure('UNKNOWN_ANSWER', `${this.endpoint} answers ${status}, and not as the service does.`, {
      advice: 'Is KL_ENDPOINT the address of /graphql?',
    });
  }
}

/** Whether something at the root was answered. */
function hasAnyData(data: unknown): boolean {
  return typeof data === 'object' && data !== null && Object.values(data).some((value) => value !== null);
}

/** What passes by when it is waited for. What a caller has to mend, or another has to release, does not. */
const PASSING = new Set(['UNREACHABLE', 'UNAVAILABLE', 'NOT_READY', 'REQUEST_TIMEOUT', 'UPLOAD_INTERRUPTED']);

/** Whether an error passes by when the same is tried again. */
export function isPassing(error: unknown): boolean {
  return error instanceof KlError && PASSING.has(error.code);
}

/** A request; that nobody answers becomes UNREACHABLE. */
export async function reach(url: string, request: RequestInit, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, request);
  } catch (error) {
    throw unreachable(url, error, signal);
  }
}

/** Why a request came to nothing. Never with the address's query: it may be a link's token. */
export function unreachable(url: string, error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const { origin } = new URL(url);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
  const isLate = error instanceof Error && error.name === 'TimeoutError';
  return failure('UNREACHABLE', `${origin} ${isLate ? 'does not answer' : `cannot be reached${code}`}.`, {
    cause: error,
  });
}

/** Refuses what the service refused, in its words. */
export function refuseErrors({ userErrors }: { readonly userErrors: readonly UserError[] }): void {
  const [first] = userErrors;
  if (first !== undefined) throw new KlError(first.code, first.message, { advice: adviceOn(first.code) });
}

function adviceOn(code: string): string | null {
  return endingOf(code).again ? 'The same call may go through later.' : null;
}

/** The GraphQL multipart request specification: operations, then the map, then the file. */
async function multipartBody(
  query: string,
  variables: Readonly<Record<string, unknown>>,
  file: SentFile,
): Promise<FormData> {
  const form = new FormData();
  form.set('operations', JSON.stringify({ query, variables: { ...variables, file: null } }));
  form.set('map', JSON.stringify({ '0': ['variables.file'] }));
  form.set('0', await file.open(), file.name);
  return form;
}
