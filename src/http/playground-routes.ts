import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { type RuruClientConfig, ruruHTML } from 'ruru/server';
import { getStaticFile } from 'ruru/static';
import { HttpError } from './http-error.ts';
import { refuseOtherMethods } from './route-methods.ts';

const STATIC_PATH = '/playground/static/';

const DEFAULT_QUERY = `# Put your token into "Headers" below:
#   { "authorization": "Bearer …" }
# Ctrl+Enter runs, Ctrl+Space completes.

query States {
  stateArchives(first: 20) {
    nodes {
      name
      lineage
      lifecycleStatus
      status {
        versionCount
        exportable
        lastExport { status finishedAt }
      }
    }
  }
}
`;

/** `GET /playground`: the support playground, served whole from the installed package; nothing comes from elsewhere. */
export function addPlaygroundRoutes(server: FastifyInstance): void {
  const page = playgroundPage();
  const policy = contentSecurityPolicy(page);
  server.route({
    method: ['GET', 'HEAD'],
    url: '/playground',
    async handler(_request, reply) {
      return reply
        .headers({
          'content-security-policy': policy,
          'x-frame-options': 'DENY',
          'referrer-policy': 'no-referrer',
          'cache-control': 'no-cache',
        })
        .type('text/html; charset=utf-8')
        .send(page);
    },
  });
  server.route<{ Params: { '*': string } }>({
    method: ['GET', 'HEAD'],
    url: `${STATIC_PATH}*`,
    async handler(request, reply) {
      const file = await getStaticFile({
        staticPath: STATIC_PATH,
        urlPath: `${STATIC_PATH}${request.params['*']}`,
        acceptEncoding: request.headers['accept-encoding'],
        disallowDevAssets: true,
      });
      if (file === null) throw new HttpError(404, 'NOT_FOUND', 'The playground has no such file.');
      reply.headers({ ...file.headers, vary: 'accept-encoding', 'cache-control': 'no-cache' });
      if (request.headers['if-none-match'] === file.headers.etag) {
        return reply.removeHeader('content-length').code(304).send();
      }
      return reply.send(file.content);
    },
  });
  for (const url of ['/playground', `${STATIC_PATH}*`]) refuseOtherMethods(server, url, ['GET', 'HEAD']);
}

function playgroundPage(): string {
  return ruruHTML({
    endpoint: '/graphql',
    staticPath: STATIC_PATH,
    clientConfig: {
      isHeadersEditorEnabled: true,
      // Headers hold tokens, which are not to be kept in the browser: neither on request, nor in the history, which
      // keeps the headers of every query. Zero would mean a history without end.
      showPersistHeadersSettings: false,
      maxHistoryLength: -1,
      defaultQuery: DEFAULT_QUERY,
      // Not empty, so that the pane is open.
      defaultHeaders: '{}',
      debugTools: [],
      // Ruru's types take every setting for required, because they build on React's types, which are not installed.
    } as Partial<RuruClientConfig> as RuruClientConfig,
    // The icon is empty, so that browsers do not ask for /favicon.ico.
    htmlParts: { titleTag: '<title>State archives</title><link rel="icon" href="data:,">' },
  });
}

/** Allows this server, and of inline scripts those of the page alone, by their digests. */
function contentSecurityPolicy(page: string): string {
  const inlineScripts = [...page.matchAll(/<script(?:\s+type="module")?>(.*?)<\/script>/gs)].map(
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  );
  return [
    "default-src 'self'",
    `script-src 'self' ${inlineScripts.join(' ')}`,
    // The editor writes style elements and attributes as it goes.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "worker-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
