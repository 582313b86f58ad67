import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from './context.ts';
import { callerOf, findCredential } from './credentials.ts';
import type { Document } from './documents.ts';
import { failure, KlError, refused } from './endings.ts';

/** An answer of the service, or of whatever stands at its address. */
interface Answer {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions?: { readonly code?: string } }[];
  readonly error?: { readonly code: string; readonly message: string };
}

/** What every mutation answers beside what it is asked for. */
interface Payload {
  readonly userErrors: readonly { readonly code: string; readonly message: string }[];
}

const ANSWER_MS = 60_000;
/** What a file that is sent inside a request may take; such files are small. */
const UPLOAD_MS = 600_000;
/** How long a service that has answered before is waited for: a restart takes less. */
const PATIENCE_MS = 120_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** What passes by when it is waited for. What a caller has to mend, or another has to release, does not. */
const PASSING = new Set(['UNREACHABLE', 'UNAVAILABLE', 'NOT_READY', 'REQUEST_TIMEOUT', 'UPLOAD_INTERRUPTED']);
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
type Scope = ReturnType<typeof scopeOf>;

/** @throws KlError USAGE for half a scope. */
function scopeOf({ workspace, environment, reason }: Context['elsewhere']) {
  if (workspace !== undefined && environment !== undefined) {
    return { workspaceId: workspace, environmentId: environment, reason: reason ?? null };
  }
  if (workspace === undefined && environment === undefined && reason === undefined) return null;
  throw failure('USAGE', '--workspace and --environment go together, and --reason goes with them.');
}

/** Talks to one state archive service with one credential. */
export class Service {
  readonly endpoint: string;
  /** Given when somebody interrupts. */
  readonly signal: AbortSignal;
  readonly #token: string;
  readonly #scope: Scope;
  #hasAnswered = false;

  constructor(endpoint: string, token: string, signal: AbortSignal, scope: Scope = null) {
    this.endpoint = endpoint;
    this.#scope = scope;
    this.#token = token;
    this.signal = signal;
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
   * Runs a query, again and again while a service that has answered before is away. The variable `$scope` is this one's to say.
   *
   * @param options `partly`: what could be answered is taken, with nulls in place of what failed alone.
   * @returns what the field at the root answers, unchecked: its shape is what the document asks for.
   * @throws KlError with the code that the service gave, UNREACHABLE when there is none, UNKNOWN_ANSWER when what answers is no
   *   such service.
   */
  ask<Answered>(
    document: Document<Answered>,
    variables: Readonly<Record<string, unknown>>,
    { partly = false }: { readonly partly?: boolean } = {},
  ): Promise<Answered> {
    return this.#run({ query: document, variables: { ...variables, scope: this.#scope } }, { partly });
  }

  /**
   * Runs a mutation, likewise. One that must not be done twice carries its idempotency key.
   *
   * @param input the variable `$input`; its scope is this one's to say.
   * @param file goes along as the field `file` of the input.
   * @throws KlError as {@link ask} does, and with what the service refuses.
   */
  async change<Answered>(
    document: Document<Answered>,
    input: Readonly<Record<string, unknown>>,
    file?: File,
  ): Promise<Answered> {
    const variables = { input: { ...input, scope: this.#scope, ...(file && { file: null }) } };
    const answered = await this.#run<Answered & Payload>({ query: document, variables }, { file });
    const [refusal] = answered.userErrors;
    if (refusal !== undefined) throw refused(refusal);
    return answered;
  }

  #run<Answered>(
    body: object,
    { file, partly = false }: { readonly file?: File | undefined; readonly partly?: boolean },
  ): Promise<Answered> {
    return this.patiently(async () => {
      const { status, answer } = await this.#post(body, file);
      const [data] = Object.values(answer.data ?? {});
      const [problem] = answer.errors ?? [];
      if (problem !== undefined && !(partly && data)) {
        throw new KlError(problem.extensions?.code ?? 'UNKNOWN_ANSWER', problem.message);
      }
      if (answer.error !== undefined) throw new KlError(answer.error.code, answer.error.message);
      if (data === undefined) throw this.#unknownAnswer(status);
      this.#hasAnswered = true;
      return data as Answered;
    });
  }

  /** Does some work anew while it fails for reasons that pass by, for as long as a restart takes. */
  async patiently<Result>(work: () => Promise<Result>): Promise<Result> {
    const began = performance.now();
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      try {
        return await work();
      } catch (error) {
        if (this.signal.aborted) throw this.signal.reason;
        if (!isPassing(error) || !this.#hasAnswered || performance.now() - began > PATIENCE_MS) throw error;
        await this.pause(pause);
      }
    }
  }

  /** Waits. @throws what the interruption says. */
  async pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.signal }).catch(() => {
      throw this.signal.reason;
    });
  }

  /** A request; it is over when somebody interrupts, or when `end` says so. @throws KlError UNREACHABLE. */
  async reach(url: string, request: RequestInit, end: AbortSignal): Promise<Response> {
    try {
      return await fetch(url, { ...request, signal: AbortSignal.any([this.signal, end]) });
    } catch (error) {
      throw this.unreachable(url, error);
    }
  }

  /** Why a request came to nothing. Never with the address's query: it may be a link's token. */
  unreachable(url: string, error: unknown): unknown {
    if (this.signal.aborted) return this.signal.reason;
    const { origin } = new URL(url);
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    return failure('UNREACHABLE', `${origin} ${isLate ? 'does not answer' : `cannot be reached${code}`}.`, {
      cause: error,
    });
  }

  async #post(body: object, file: File | undefined) {
    const json = JSON.stringify(body);
    const request: RequestInit = {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#token}`, 'apollo-require-preflight': 'true' },
      // Either has its content type with it.
      body: file ? multipartBody(json, file) : new Blob([json], { type: 'application/json' }),
      // It could take the token elsewhere.
      redirect: 'error',
    };
    const end = AbortSignal.timeout(file ? UPLOAD_MS : ANSWER_MS);
    const response = await this.reach(this.endpoint, request, end);
    const { status } = response;
    const text = await response.text().catch((error: unknown) => {
      throw this.unreachable(this.endpoint, error);
    });
    try {
      return { status, answer: (JSON.parse(text) ?? {}) as Answer };
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

/** Whether an error passes by when the same is tried again. */
export function isPassing(error: unknown): boolean {
  return error instanceof KlError && PASSING.has(error.code);
}

/** What came of a request that was neither met nor refused. @throws KlError UNKNOWN_ANSWER, always. */
export function unexplained(what: string): never {
  throw failure('UNKNOWN_ANSWER', `The service ${what}, and says nothing of why.`);
}

/** The GraphQL multipart request specification: operations, then the map, then the file. */
function multipartBody(operations: string, file: File): FormData {
  const form = new FormData();
  form.set('operations', operations);
  form.set('map', JSON.stringify({ '0': ['variables.input.file'] }));
  form.set('0', file);
  return form;
}
