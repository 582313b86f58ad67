import { setTimeout as pause } from 'node:timers/promises';
import { multipartForm } from '../support/multipart-form.ts';
import type { Machine } from './machines.ts';

/** How the last answer about an operation reads. */
export interface ToldOperation {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** An answer that is neither data nor a failure that comes with a kill. */
export class UnexpectedAnswerError extends Error {
  override readonly name = 'UnexpectedAnswerError';
}

/** Longer than an answer takes: a frozen machine gives none. */
const ANSWER_MS = 60_000;

/** What a caller is told when a machine goes down with the request, and may ask again for. */
const WORTH_ASKING_AGAIN = ['UNAVAILABLE', 'OPERATION_INTERRUPTED', 'TOO_MANY_OPERATIONS'];

/** Asks whichever replica answers, as a client behind a balancer would, until one does. */
export class Client {
  readonly #replicas: readonly Machine[];
  readonly #token: string;
  readonly #choose: (below: number) => number;

  constructor(replicas: readonly Machine[], token: string, choose: (below: number) => number) {
    this.#replicas = replicas;
    this.#token = token;
    this.#choose = choose;
  }

  /**
   * @param isDone whether an answer is one to keep; others are asked for again.
   * @throws UnexpectedAnswerError for an error that no kill explains.
   */
  async ask<Data>(
    query: string,
    variables: Readonly<Record<string, unknown>>,
    file: Uint8Array<ArrayBuffer> | null = null,
  ): Promise<Data> {
    for (;;) {
      const answer = await this.once<Data>(query, variables, file);
      if (answer !== null) return answer;
      await pause(200);
    }
  }

  /** One try; null when the machine went away, says nothing for so long, or that it may be asked again. */
  async once<Data>(
    query: string,
    variables: Readonly<Record<string, unknown>>,
    file: Uint8Array<ArrayBuffer> | null = null,
    patienceMs = ANSWER_MS,
  ): Promise<Data | null> {
    const replica = this.#replicas[this.#choose(this.#replicas.length)];
    let answer: { data?: Data; errors?: { message: string; extensions?: { code?: string } }[] };
    try {
      const response = await fetch(`${replica?.url}/graphql`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.#token}`,
          'apollo-require-preflight': 'true',
          ...(file === null && { 'content-type': 'application/json' }),
        },
        body:
          file === null
            ? JSON.stringify({ query, variables })
            : multipartForm(query, variables, { bytes: file, name: 'chaos.klstate' }),
        signal: AbortSignal.timeout(patienceMs),
      });
      if (response.status === 503) return null;
      answer = (await response.json()) as typeof answer;
    } catch {
      return null;
    }
    const problem = answer.errors?.[0] ?? payloadProblem(answer.data);
    if (problem === undefined) return answer.data ?? null;
    const code = 'code' in problem ? problem.code : problem.extensions?.code;
    if (WORTH_ASKING_AGAIN.includes(String(code))) return null;
    throw new UnexpectedAnswerError(`${code}: ${problem.message}`);
  }

  /** The bytes behind a link, from whichever replica has them. */
  async download(link: string): Promise<Uint8Array<ArrayBuffer>> {
    const { pathname, search } = new URL(link);
    for (;;) {
      const replica = this.#replicas[this.#choose(this.#replicas.length)];
      try {
        const response = await fetch(`${replica?.url}${pathname}${search}`);
        if (response.ok) return new Uint8Array(await response.arrayBuffer());
      } catch {
        // It was killed.
      }
      await pause(200);
    }
  }
}

/** The problem of a mutation that gave no operation. */
function payloadProblem(data: unknown): { readonly code: string; readonly message: string } | undefined {
  for (const payload of Object.values((data ?? {}) as Record<string, unknown>)) {
    const { operation, userErrors } = (payload ?? {}) as {
      operation?: unknown;
      userErrors?: { code: string; message: string }[];
    };
    if (userErrors?.[0] !== undefined && operation === null) return userErrors[0];
  }
  return undefined;
}
