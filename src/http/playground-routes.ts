import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { present } from '../base/invariant.ts';
import { HttpError } from './http-error.ts';
import { refuseOtherMethods } from './route-methods.ts';

const OWN = new URL('./playground/', import.meta.url);
const OWN_FILES = ['session.js', 'upload.js', 'start.js', 'page.css'];
/** What SHA-256 needs of the package that has it. */
const HASH_FILES = ['sha2.js', '_md.js', '_u64.js', 'utils.js'];

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

/** What is smaller when it is packed, as text is and fonts and pictures are not. */
const PACKABLE = /^text\/|json|svg/;
const pack = promisify(gzip);

/**
 * `GET /playground`: the support playground, which is Altair with a bar above it. All of it comes from this server, out of
 * the installed packages and `playground/`, and its policy lets nothing come from, or go, elsewhere. Its files stand below a
 * name that changes with any of them, so that a browser asks for each once.
 */
export function addPlaygroundRoutes(server: FastifyInstance): void {
  const files = servedFiles();
  const release = releaseOf(files);
  const renderPage = preparePage(release);
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
          'cache-control': 'no-store',
        })
        .type('text/html; charset=utf-8')
        .send(renderPage(nonce));
    },
  });

  const packed = packOnce();
  const url = '/playground/:release/*';
  server.route<{ Params: { release: string; '*': string } }>({
    method: ['GET', 'HEAD'],
    url,
    async handler({ params, headers }, reply) {
      const name = params['*'];
      const path = files.get(name);
      const mediaType = MEDIA_TYPES[extname(name)];
      if (path === undefined || mediaType === undefined)
        throw new HttpError('NOT_FOUND', 'The playground has no such file.');
      const isPacked = PACKABLE.test(mediaType) && acceptsGzip(headers['accept-encoding']);
      const etag = `"${release}${isPacked ? '-gzip' : ''}"`;
      reply.headers({
        etag,
        vary: 'accept-encoding',
        // Another release's page may ask while releases change: it gets what there is, for this once.
        'cache-control': params.release === release ? 'public, max-age=31536000, immutable' : 'no-cache',
      });
      if (headers['if-none-match'] === etag) return reply.code(304).send();
      reply.type(mediaType);
      if (!isPacked) return reply.send(await readFile(path));
      return reply.header('content-encoding', 'gzip').send(await packed(path));
    },
  });
  for (const address of ['/playground', url]) refuseOtherMethods(server, address, ['GET', 'HEAD']);
}

/** A job of support, which has a tab of the playground. */
interface Job {
  /** What the tab is called: its number, and the first line of its document. */
  readonly name: string;
  /** The document, to be sent as it is or with other names in it. */
  readonly query: string;
}

/** The jobs of support, in the order of their files' names. */
export function readJobs(): readonly Job[] {
  const directory = new URL('jobs/', OWN);
  return readdirSync(directory)
    .sort()
    .map((file, index) => {
      const query = readFileSync(new URL(file, directory), 'utf8');
      const title = present(/^# (.+)/.exec(query)?.[1], `${file} begins with its name`);
      return { name: `${index + 1} ${title}`, query };
    });
}

/**
 * @param release what the addresses of the page's files begin with.
 * @returns the page of the playground, for the nonce that its answer's policy lets styles carry.
 */
function preparePage(release: string): (nonce: string) => string {
  const jobs = JSON.stringify(readJobs()).replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  const page = readFileSync(new URL('page.html', OWN), 'utf8')
    .replace('{{release}}', release)
    .replace('{{jobs}}', () => jobs);
  return (nonce) => page.replace('{{nonce}}', nonce);
}

/** Where each file is, by its address below the release. No other path is ever opened. */
function servedFiles(): ReadonlyMap<string, string> {
  // Its code would take 8 MB to say so.
  const altair = fileURLToPath(new URL('./dist/', import.meta.resolve('altair-static')));
  const memory = fileURLToPath(new URL('../../', import.meta.resolve('fake-indexeddb')));
  const hashes = fileURLToPath(new URL('./', import.meta.resolve('@noble/hashes/sha2.js')));
  const files = new Map(OWN_FILES.map((name) => [name, fileURLToPath(new URL(name, OWN))]));
  for (const name of HASH_FILES) files.set(`hashes/${name}`, join(hashes, name));
  for (const [prefix, directory] of [
    ['static', altair],
    ['memory/auto', join(memory, 'auto')],
    ['memory/build/esm', join(memory, 'build/esm')],
  ] as const) {
    for (const entry of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
      // Altair would run scripts in this frame. Without it none is run: the policy allows no other frame.
      if (entry.startsWith('iframe-sandbox') || MEDIA_TYPES[extname(entry)] === undefined) continue;
      files.set(`${prefix}/${entry.replaceAll('\\', '/')}`, join(directory, entry));
    }
  }
  return files;
}

/** @returns packs a file when it is first asked for, and has it ready from then on. */
function packOnce(): (path: string) => Promise<Buffer> {
  const known = new Map<string, Promise<Buffer>>();
  return (path) => {
    const bytes = known.get(path) ?? readFile(path).then((plain) => pack(plain, { level: 9 }));
    known.set(path, bytes);
    return bytes;
  };
}

/** A name for all the files as they are: any other byte of them, and it is another. */
function releaseOf(files: ReadonlyMap<string, string>): string {
  const hash = createHash('sha256');
  for (const [name, path] of files) hash.update(name).update(readFileSync(path));
  return hash.digest('base64url').slice(0, 16);
}

/** Whether a client takes gzip. No quality but none at all counts: there is no third choice. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  return String(header ?? '')
    .split(',')
    .map((coding) => coding.split(';').map((part) => part.trim().toLowerCase()))
    .some(([name, quality = 'q=1']) => name === 'gzip' && !/^q=0(\.0*)?$/.test(quality));
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
