import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type TestServer, TOKEN } from './test-server.ts';

export const BOUNDARY = 'test-boundary-3f1a';

/** The headers of a multipart request that nothing is wrong with. */
export const multipartHeaders: Readonly<Record<string, string>> = {
  authorization: TOKEN,
  'apollo-require-preflight': '1',
  'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
};

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // The tests look into answers of every shape.
  // biome-ignore lint/suspicious/noExplicitAny: a parsed answer
  readonly json: any;
}

export interface Part {
  readonly name: string;
  readonly body: string | Uint8Array;
  readonly fileName?: string;
  readonly type?: string;
}

export const MAP = JSON.stringify({ 0: ['variables.file'] });

/** The `operations` field for one of the test schema's mutations. */
export function operationsFor(
  field: 'receive' | 'ignore' | 'refuse',
  variables: unknown = { file: null },
): string {
  const selection = field === 'receive' ? '{ sizeBytes sha256 fileName }' : '';
  return JSON.stringify({
    query: `mutation M($file: Upload!) { ${field}(file: $file) ${selection} }`,
    variables,
  });
}

export function encodePart({ name, body, fileName, type }: Part): Buffer {
  const head = [
    `--${BOUNDARY}`,
    `content-disposition: form-data; name="${name}"${fileName === undefined ? '' : `; filename="${fileName}"`}`,
    ...(type === undefined ? [] : [`content-type: ${type}`]),
    '',
    '',
  ].join('\r\n');
  return Buffer.concat([Buffer.from(head), Buffer.from(body), Buffer.from('\r\n')]);
}

export const CLOSING = Buffer.from(`--${BOUNDARY}--\r\n`);

export function encodeMultipart(parts: readonly Part[]): Buffer {
  return Buffer.concat([...parts.map(encodePart), CLOSING]);
}

/** A whole upload request's body. */
export function uploadBody(field: 'receive' | 'ignore' | 'refuse', file: Uint8Array): Buffer {
  return encodeMultipart([
    { name: 'operations', body: operationsFor(field) },
    { name: 'map', body: MAP },
    { name: '0', body: file, fileName: 'state.klstate', type: 'application/octet-stream' },
  ]);
}

/** Sends a request over a connection of its own; an async iterable body goes out chunked. */
export function send(
  { port }: Pick<TestServer, 'port'>,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: Uint8Array | string | AsyncIterable<Uint8Array>,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, method, path, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = response.headers['content-type']?.includes('json');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: isJson && text ? JSON.parse(text) : undefined,
          });
        });
      },
    );
    request.on('error', reject);
    if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) request.end(body);
    else Readable.from(body).pipe(request);
  });
}

/** A POST of GraphQL as JSON. */
export function query(
  server: Pick<TestServer, 'port'>,
  body: object,
  headers: Readonly<Record<string, string>> = { authorization: TOKEN },
): Promise<Answer> {
  return send(
    server,
    'POST',
    '/graphql',
    { 'content-type': 'application/json', ...headers },
    JSON.stringify(body),
  );
}

/** A connection on which a test writes what it likes, when it likes. */
export function openSocket({ port }: Pick<TestServer, 'port'>): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port }, () => resolve(socket));
    socket.on('error', reject);
  });
}

/** The head of an HTTP request as bytes. */
export function head(method: string, path: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${path} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}

/** Resolves with everything received once it contains `text`. */
export function receivedUntil(socket: Socket, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = '';
    const onData = (chunk: Buffer) => {
      received += chunk.toString();
      if (!received.includes(text)) return;
      socket.off('data', onData);
      resolve(received);
    };
    socket.on('data', onData);
    socket.on('close', () => reject(new Error(`the connection closed after: ${received}`)));
  });
}
