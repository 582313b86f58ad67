import { createWriteStream, openAsBlob } from 'node:fs';
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
    const response =
      file === undefined
        ? await fetch(this.#endpoint, {
            method: 'POST',
            headers: { ...this.#headers, 'content-type': 'application/json' },
            body: JSON.stringify({ query, variables }),
          })
        : await fetch(this.#endpoint, {
            method: 'POST',
            headers: { ...this.#headers, 'apollo-require-preflight': 'true' },
            body: await multipartBody(query, variables, file),
          });
    const answer = (await response.json()) as {
      data?: Data | null;
      errors?: { message: string }[];
      error?: { message: string };
    };
    const problem = answer.errors?.[0]?.message ?? answer.error?.message;
    if (problem !== undefined) throw new GraphqlRequestError(problem);
    if (answer.data === undefined || answer.data === null) {
      throw new GraphqlRequestError(`The service answered ${response.status} without data.`);
    }
    return answer.data;
  }
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
