import { createWriteStream, openAsBlob } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** The service answered with an error instead of data. */
export class GraphqlRequestError extends Error {
  override readonly name = 'GraphqlRequestError';
}

/** Talks to one state archive service with one credential. */
export class GraphqlClient {
  readonly #endpoint: string;
  readonly #headers: Readonly<Record<string, string>>;

  /**
   * @param endpoint the address of `/graphql`.
   * @param headers what each request carries beside the token.
   */
  constructor(endpoint: string, token: string, headers: Readonly<Record<string, string>> = {}) {
    this.#endpoint = endpoint;
    this.#headers = { ...headers, authorization: `Bearer ${token}` };
  }

  /**
   * Runs one GraphQL document. A file goes along as the variable `$file`, streamed from disk.
   *
   * @returns the data, unchecked: its shape is what the document asks for.
   * @throws GraphqlRequestError with what the service said.
   */
  async run<Data>(
    query: string,
    variables: Readonly<Record<string, unknown>>,
    file?: { readonly path: string; readonly name: string },
  ): Promise<Data> {
    const { status, text } =
      file === undefined
        ? await post(this.#endpoint, this.#headers, JSON.stringify({ query, variables }))
        : await postForm(this.#endpoint, this.#headers, await multipartBody(query, variables, file));
    const answer = JSON.parse(text) as {
      data?: Data | null;
      errors?: { message: string }[];
      error?: { message: string };
    };
    const problem = answer.errors?.[0]?.message ?? answer.error?.message;
    if (problem !== undefined) throw new GraphqlRequestError(problem);
    if (answer.data === undefined || answer.data === null) {
      throw new GraphqlRequestError(`The service answered ${status} without data.`);
    }
    return answer.data;
  }
}

interface Answer {
  readonly status: number | undefined;
  readonly text: string;
}

const connections = new Agent({ keepAlive: true });

/** By Node.js's own client, as `pg` is what the database is asked by: `fetch` takes half a millisecond of its own. */
async function post(
  endpoint: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<Answer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(endpoint, {
      method: 'POST',
      agent: connections,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    })
      .on('response', resolve)
      .on('error', reject)
      .end(body);
  });
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return { status: response.statusCode, text };
}

async function postForm(
  endpoint: string,
  headers: Readonly<Record<string, string>>,
  body: FormData,
): Promise<Answer> {
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { ...headers, 'apollo-require-preflight': 'true' },
    body,
  });
  return { status: response.status, text: await response.text() };
}

/** The GraphQL multipart request specification: operations, then the map, then the file. */
async function multipartBody(
  query: string,
  variables: Readonly<Record<string, unknown>>,
  file: { readonly path: string; readonly name: string },
): Promise<FormData> {
  const form = new FormData();
  form.set('operations', JSON.stringify({ query, variables: { ...variables, file: null } }));
  form.set('map', JSON.stringify({ '0': ['variables.file'] }));
  form.set('0', await openAsBlob(file.path), file.name);
  return form;
}

/**
 * Saves what a download link gives, for the owner alone (0600).
 *
 * @throws GraphqlRequestError when the link is refused.
 */
export async function download(url: string, path: string): Promise<void> {
  const response = await fetch(url);
  if (!response.ok || response.body === null) {
    throw new GraphqlRequestError(`The download was refused with status ${response.status}.`);
  }
  await pipeline(Readable.fromWeb(response.body), createWriteStream(path, { mode: 0o600 }));
}
