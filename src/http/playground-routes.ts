import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getDistDirectory } from 'altair-static';
import type { FastifyInstance } from 'fastify';
import { HttpError } from './http-error.ts';
import { preparePlaygroundPage, readJobs } from './playground-page.ts';
import { refuseOtherMethods } from './route-methods.ts';

const PREFIX = '/playground/';

/** The media types of the files that are served. What has none of them is not served: so is the page of a sandbox. */
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff': 'font/woff',
  '.woff2': 'font/woff2',
};

/** A file as it is sent, read when it is first asked for. */
interface StaticFile {
  readonly bytes: Buffer;
  readonly etag: string;
}

/**
 * `GET /playground`: the support playground, which is Altair with a bar above it. All of it comes from this server, out of
 * the installed packages and `playground/`, and its policy lets nothing come from, or go, elsewhere.
 */
export function addPlaygroundRoutes(server: FastifyInstance): void {
  const renderPage = preparePlaygroundPage();
  server.route({
    method: ['GET', 'HEAD'],
    url: '/playground',
    async handler(_request, reply) {
      const nonce = randomBytes(16).toString('base64');
      return reply
        .headers({
          'content-security-policy': contentSecurityPolicy(nonce),
          'x-frame-options': 'DENY',
          'referrer-policy': 'no-referrer',
        })
        .type('text/html; charset=utf-8')
        .send(renderPage(nonce));
    },
  });

  const jobs = readJobs();
  server.route({
    method: ['GET', 'HEAD'],
    url: `${PREFIX}jobs.json`,
    handler: async () => jobs,
  });

  const paths = servedFiles();
  const read = new Map<string, StaticFile>();
  server.route<{ Params: { '*': string } }>({
    method: ['GET', 'HEAD'],
    url: `${PREFIX}*`,
    async handler(request, reply) {
      const name = request.params['*'];
      const path = paths.get(name);
      const mediaType = MEDIA_TYPES[extname(name)];
      if (path === undefined || mediaType === undefined)
        throw new HttpError(404, 'NOT_FOUND', 'The playground has no such file.');
      const file = read.get(name) ?? readStaticFile(path);
      read.set(name, file);
      reply.headers({ etag: file.etag, 'cache-control': 'no-cache' });
      if (request.headers['if-none-match'] === file.etag) return reply.code(304).send();
      return reply.type(mediaType).send(file.bytes);
    },
  });
  for (const url of ['/playground', `${PREFIX}jobs.json`, `${PREFIX}*`])
    refuseOtherMethods(server, url, ['GET', 'HEAD']);
}

/** Where each file is, by its address below `/playground/`. No other path is ever opened. */
function servedFiles(): ReadonlyMap<string, string> {
  const own = fileURLToPath(new URL('./playground/', import.meta.url));
  const memory = fileURLToPath(new URL('../../', import.meta.resolve('fake-indexeddb')));
  const directories = [
    ['static', getDistDirectory()],
    ['memory/auto', join(memory, 'auto')],
    ['memory/build/esm', join(memory, 'build/esm')],
  ] as const;
  const files = new Map(['session.js', 'start.js', 'page.css'].map((name) => [name, join(own, name)]));
  for (const [prefix, directory] of directories) {
    for (const entry of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
      // Altair would run scripts in this frame. Without it none is run: the policy allows no other frame.
      if (entry.startsWith('iframe-sandbox')) continue;
      files.set(`${prefix}/${entry.replaceAll('\\', '/')}`, join(directory, entry));
    }
  }
  return files;
}

function readStaticFile(path: string): StaticFile {
  const bytes = readFileSync(path);
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` };
}

/** Scripts come from this server's files alone; what Altair puts into the page as a style carries the nonce. */
function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "worker-src 'self'",
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
