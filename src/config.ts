import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { isRecipient, MAX_RECIPIENTS } from './archive/seal.ts';
import { readSigningKey, readVerificationKeys } from './archive/signing-keys.ts';
import { OperatorError } from './base/operator-error.ts';
import type { Quotas } from './base/quotas.ts';
import { trimEnd } from './base/text.ts';
import type { ArchiveStoreLocation } from './store/archive-store.ts';

/**
 * What the process is told by its environment, read once at start-up. Every name the project reads is here and
 * nowhere else; README.md lists them for people.
 */
export type Config = ReturnType<typeof readConfig>;

/** The environment holds a value that cannot be used. `message` is one line that names the variable. */
export class ConfigError extends OperatorError {
  override readonly name = 'ConfigError';
}

function unusable(problem: string): ConfigError {
  return new ConfigError(`The environment cannot be used: ${problem}`);
}

const MEBIBYTE = 1024 * 1024;

const bytes = z.coerce.number().int().positive().max(Number.MAX_SAFE_INTEGER);
const flag = z.enum(['true', 'false', '1', '0', 'on', 'off']).transform((text) => /^(true|1|on)$/.test(text));
const webUrl = z
  .url({ protocol: /^https?$/, error: 'expected http://… or https://…' })
  // Links are built on one and requests made to the other: both would tell them to others, or fail.
  .refine((text) => !hasCredentials(text), 'expected no user and password in it')
  .transform((text) => trimEnd(text, '/'));
/** Secrets parted by commas. Whoever guesses one of them has guessed enough, however long the others are. */
const secretsOf = (minLength: number) =>
  z
    .string()
    .transform((text) =>
      text
        .split(',')
        .map((secret) => secret.trim())
        .filter((secret) => secret !== ''),
    )
    .refine(
      (secrets) => secrets.length > 0 && secrets.every((secret) => secret.length >= minLength),
      `expected at least ${minLength} characters, in each when there are several parted by commas`,
    );

/** What `read` makes of a text; it is refused when that is null. */
const readBy = <Value>(read: (text: string) => Value | null, expected: string) =>
  z.string().transform((text, context): Value => {
    const value = read(text);
    if (value !== null) return value;
    context.addIssue(`expected ${expected}`);
    return z.NEVER;
  });

const storeUrl = readBy((text) => {
  const s3 = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9!_.*'()/-]*))?$/.exec(text);
  if (s3) return { kind: 's3', bucket: s3[1] ?? '', prefix: trimEnd(s3[2] ?? '', '/') } as const;
  const isFile = /^file:\/\/\/[^?#]/.test(text) && URL.canParse(text);
  return isFile ? ({ kind: 'file', directory: fileURLToPath(text) } as const) : null;
}, 'file:///an/absolute/directory or s3://bucket/prefix');

const signingKey = readBy(readSigningKey, 'a private Ed25519 key, in PEM (PKCS#8) without a passphrase');

const verificationKeys = readBy(
  readVerificationKeys,
  'public Ed25519 keys in PEM, one behind the other, 32 at most',
);

const recipients = z
  .string()
  .transform((text) => text.split(/[\s,]+/).filter((recipient) => recipient !== ''))
  .refine(
    (all) => all.length <= MAX_RECIPIENTS && all.every(isRecipient),
    `expected age recipients (age1…) parted by commas, ${MAX_RECIPIENTS} at most`,
  );

/** A duration such as 15m, 24h or 7d, in seconds. */
export const duration = readBy((text) => {
  const [, count, unit = ''] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? [];
  const unitSeconds = { s: 1, m: 60, h: 3600, d: 86400 }[unit];
  return unitSeconds === undefined ? null : Number(count) * unitSeconds;
}, 'a duration such as 15m, 24h or 7d');

const portNumber = z
  .string()
  .regex(/^\d{1,5}$/, 'expected a port number')
  .transform(Number)
  .refine((port) => port <= 65535, 'expected a port number');

const environment = z.object({
  PORT: portNumber.default(4001),
  // An IPv6 address as URLs write it is one too.
  HOST: z
    .string()
    .transform((text) => text.replace(/^\[(.*)\]$/, '$1'))
    .default('127.0.0.1'),
  PUBLIC_URL: webUrl.optional(),
  DATA_DIR: z.string().default('.data'),
  // Read where it is used, as libpq reads it: database/dsn.ts.
  DATABASE_URL: z.string().optional(),
  DATABASE_DIRECT_URL: z.string().optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  AUTH_JWKS_URL: webUrl.optional(),
  AUTH_ISSUER: z.string().optional(),
  AUTH_AUDIENCE: z.string().optional(),
  AUTH_DEV_KEY: flag.optional(),
  ALLOW_TOKEN_EXPORT: flag.default(false),
  ALLOW_TOKEN_IMPORT: flag.default(false),
  ALLOW_OWNER_EXPORT: flag.default(false),
  ALLOW_OWNER_IMPORT: flag.default(false),
  GATEWAY_SECRET: secretsOf(16).optional(),
  LINK_KEYS: secretsOf(32).optional(),
  PLAYGROUND: flag.optional(),
  INTROSPECTION: flag.optional(),
  ARCHIVE_STORE_URL: storeUrl.optional(),
  ARCHIVE_STORE_LINKS: z.enum(['own', 'presigned']).default('own'),
  // The AWS SDK reads them itself; that there is one decides how buckets are named to it.
  AWS_ENDPOINT_URL_S3: z.string().optional(),
  AWS_ENDPOINT_URL: z.string().optional(),
  ARCHIVE_SIGNING_KEY: signingKey.optional(),
  ARCHIVE_VERIFICATION_KEYS: verificationKeys.optional(),
  ARCHIVE_AGE_RECIPIENTS: recipients.optional(),
  REQUIRE_SIGNATURE: flag.default(false),
  ARCHIVE_RETENTION: duration.default(7 * 86400),
  MAX_INLINE_UPLOAD_BYTES: bytes.default(32 * MEBIBYTE),
  MAX_ARCHIVE_BYTES: bytes.default(4096 * MEBIBYTE),
  MAX_OPERATIONS_PER_PRINCIPAL: z.coerce.number().int().min(1).max(1000).default(3),
  MAX_ARCHIVES: z.coerce.number().int().min(1).max(1_000_000).default(10_000),
  MAX_ARCHIVE_BYTES_KEPT: bytes.default(100 * 1024 * MEBIBYTE),
  MAX_UPLOADS_PER_PRINCIPAL: z.coerce.number().int().min(1).max(1000).default(10),
  MAX_UPLOAD_BYTES_PER_PRINCIPAL: bytes.default(16 * 1024 * MEBIBYTE),
  MAX_ARCHIVES_PER_PRINCIPAL: z.coerce.number().int().min(1).max(1_000_000).default(1000),
  MAX_OPERATIONS_PER_ENVIRONMENT: z.coerce.number().int().min(1).max(10_000).default(20),
  WORKER_CONCURRENCY: z.coerce.number().int().min(0).max(64).default(4),
  DRAIN_SECONDS: z.coerce.number().int().min(0).max(600).optional(),
  METRICS_PORT: portNumber.optional(),
  METRICS_TOKEN: secretsOf(16).optional(),
  // OpenTelemetry's SDK reads these and others of theirs itself; that there is an endpoint sets it going.
  OTEL_EXPORTER_OTLP_ENDPOINT: webUrl.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: webUrl.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: z.literal('http/protobuf').optional(),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: z.literal('http/protobuf').optional(),
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none']).optional(),
  OTEL_SDK_DISABLED: flag.optional(),
});

/**
 * Reads the environment. An empty value counts as absent. A name that is one letter off one of ours is taken for a slip:
 * what it was meant to restrict would be open.
 *
 * @throws ConfigError naming every variable that cannot be used; values are not repeated, they may be secret.
 */
export function readConfig(env: Readonly<Record<string, string | undefined>>) {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  refuseMisspeltNames(Object.keys(given));
  const parsed = environment.safeParse(given);
  if (!parsed.success) {
    throw unusable(
      parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '),
    );
  }
  const value = parsed.data;
  const dataDirectory = resolve(value.DATA_DIR);
  const embedded = value.DATABASE_URL === undefined;
  const developmentKey = value.AUTH_DEV_KEY ?? embedded;
  const { AUTH_JWKS_URL: url, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = value;
  const jwks = url && issuer && audience ? { url, issuer, audience } : null;
  const absent = (['AUTH_JWKS_URL', 'AUTH_ISSUER', 'AUTH_AUDIENCE'] as const).filter((name) => !value[name]);
  if (absent.length === 1 || absent.length === 2) {
    throw unusable(
      `AUTH_JWKS_URL, AUTH_ISSUER and AUTH_AUDIENCE tell together whose tokens are accepted, and ${absent.join(' and ')} is missing`,
    );
  }
  if (embedded && value.DATABASE_DIRECT_URL !== undefined) {
    throw unusable('DATABASE_DIRECT_URL is another way to the database of DATABASE_URL, which is missing');
  }
  if (embedded && jwks === null && !developmentKey) {
    throw unusable(
      'without DATABASE_URL there are no tokens of Kilolock to verify, so AUTH_DEV_KEY=false needs AUTH_JWKS_URL',
    );
  }
  const archiveSigner = value.ARCHIVE_SIGNING_KEY ?? null;
  const trusted = [
    ...(archiveSigner === null ? [] : [archiveSigner.verificationKey]),
    ...(value.ARCHIVE_VERIFICATION_KEYS ?? []),
  ];
  if (value.REQUIRE_SIGNATURE && trusted.length === 0) {
    throw unusable(
      'REQUIRE_SIGNATURE needs ARCHIVE_VERIFICATION_KEYS, or an ARCHIVE_SIGNING_KEY of its own; without a key no archive could be imported',
    );
  }
  return {
    /** TCP port to listen on; 0 picks a free one. */
    port: value.PORT,
    /** Address to listen on. */
    host: value.HOST,
    /** The address clients reach the service at, without a trailing slash; links are built on it. */
    publicUrl: value.PUBLIC_URL ?? null,
    /** Absolute directory for what the service keeps on disk: the embedded database, development keys, what it is working on. */
    dataDirectory,
    /** The Kilolock database; null starts the embedded one under `dataDirectory`. A secret: it holds a password. */
    databaseUrl: value.DATABASE_URL ?? null,
    /** An address of the same database past every pooler, to be told there of new operations; null: they are asked for. A secret. */
    databaseDirectUrl: value.DATABASE_DIRECT_URL ?? null,
    /** The least severe level that is logged. */
    logLevel: value.LOG_LEVEL,
    /** How tokens are verified. */
    auth: {
      /** The issuer whose tokens are accepted; null: none but the development key. */
      jwks,
      /** Whether tokens signed with the development key of `dataDirectory` are accepted. */
      developmentKey,
      /** What Kilolock's own tokens may do besides reading, where no role grants it. */
      policies: {
        token: { export: value.ALLOW_TOKEN_EXPORT, import: value.ALLOW_TOKEN_IMPORT },
        owner: { export: value.ALLOW_OWNER_EXPORT, import: value.ALLOW_OWNER_IMPORT },
      },
      /** What the gateway proves itself with, each by itself; none: nobody has to. */
      gatewaySecrets: value.GATEWAY_SECRET ?? [],
    },
    /** Whether `GET /playground` is served. */
    playground: value.PLAYGROUND ?? embedded,
    /** Whether the schema can be asked for by introspection. */
    introspection: value.INTROSPECTION ?? value.PLAYGROUND ?? embedded,
    /** What links are signed with, the one that signs first; none: keys of `dataDirectory`. Secrets. */
    linkKeys: value.LINK_KEYS ?? [],
    /** Where archives and received files are kept. */
    archiveStore: storeLocation(value, dataDirectory),
    /** What archives are signed with; null: they are not. A secret is in it. */
    archiveSigner,
    /** Whose signatures count of an archive that is imported: the own one's always. */
    archiveTrust: { keys: trusted, isRequired: value.REQUIRE_SIGNATURE },
    /** age recipients that archives are encrypted for; none: they are not, unless an export names some. */
    archiveRecipients: value.ARCHIVE_AGE_RECIPIENTS ?? [],
    /** How long a finished archive is kept, in seconds. */
    archiveRetentionSeconds: value.ARCHIVE_RETENTION,
    /** The largest file accepted inside a GraphQL request, in bytes. */
    maxInlineUploadBytes: value.MAX_INLINE_UPLOAD_BYTES,
    /** The largest archive accepted or written, in bytes of the file. */
    maxArchiveBytes: value.MAX_ARCHIVE_BYTES,
    quotas: {
      maxOperationsPerPrincipal: value.MAX_OPERATIONS_PER_PRINCIPAL,
      maxArchivesPerPrincipal: value.MAX_ARCHIVES_PER_PRINCIPAL,
      maxArchives: value.MAX_ARCHIVES,
      maxArchiveBytesKept: value.MAX_ARCHIVE_BYTES_KEPT,
      maxUploadsPerPrincipal: value.MAX_UPLOADS_PER_PRINCIPAL,
      maxUploadBytesPerPrincipal: value.MAX_UPLOAD_BYTES_PER_PRINCIPAL,
    } satisfies Quotas,
    /** How many exports and imports of one environment may be running at a time, over all processes. */
    maxOperationsPerEnvironment: value.MAX_OPERATIONS_PER_ENVIRONMENT,
    /** How many exports and imports this process works on at a time; 0: it leaves them to others. */
    workerConcurrency: value.WORKER_CONCURRENCY,
    /** How the process can be watched from outside. */
    observability: {
      /**
       * The port that metrics are served on, on `host`, and nothing else: 0 picks a free one, null: with all the rest, on `port`.
       * And what whoever asks has to show one of, none: nothing, where they have a port of their own. Secrets. Null: no metrics
       * are kept.
       */
      metrics:
        value.METRICS_PORT === undefined && value.METRICS_TOKEN === undefined
          ? null
          : { port: value.METRICS_PORT ?? null, tokens: value.METRICS_TOKEN ?? [] },
      /** Whether traces are sent to where OTEL_EXPORTER_OTLP_ENDPOINT says. */
      traces:
        (value.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? value.OTEL_EXPORTER_OTLP_ENDPOINT) !== undefined &&
        value.OTEL_TRACES_EXPORTER !== 'none' &&
        value.OTEL_SDK_DISABLED !== true,
    },
    /**
     * How long a process that is asked to end says so, by `/readyz`, before it takes no more work, in seconds. Nobody balances
     * between processes that have a database of their own.
     */
    drainSeconds: value.DRAIN_SECONDS ?? (embedded ? 0 : 10),
  } as const;
}

function storeLocation(
  value: Pick<
    z.output<typeof environment>,
    'ARCHIVE_STORE_LINKS' | 'ARCHIVE_STORE_URL' | 'AWS_ENDPOINT_URL_S3' | 'AWS_ENDPOINT_URL'
  >,
  dataDirectory: string,
): ArchiveStoreLocation {
  const location = value.ARCHIVE_STORE_URL ?? {
    kind: 'file' as const,
    directory: join(dataDirectory, 'store'),
  };
  if (location.kind === 'file') {
    if (value.ARCHIVE_STORE_LINKS === 'own') return location;
    throw unusable('ARCHIVE_STORE_LINKS=presigned needs an ARCHIVE_STORE_URL that begins with s3://');
  }
  return {
    ...location,
    hasOwnEndpoint: Boolean(value.AWS_ENDPOINT_URL_S3 ?? value.AWS_ENDPOINT_URL),
    isAddressed: value.ARCHIVE_STORE_LINKS === 'presigned',
  };
}

/**
 * Reads DATA_DIR alone, for programs that need nothing else.
 *
 * @throws ConfigError when a variable is misspelt, which might be this one.
 */
export function readDataDirectory(env: Readonly<Record<string, string | undefined>>): string {
  refuseMisspeltNames(Object.keys(env));
  return readConfig({ DATA_DIR: env.DATA_DIR }).dataDirectory;
}

/**
 * Reads DATA_DIR for a program that works on the link keys in it.
 *
 * @throws ConfigError when the link keys are elsewhere.
 */
export function readLinkKeyDirectory(env: Readonly<Record<string, string | undefined>>): string {
  if (env.LINK_KEYS) {
    throw new ConfigError(
      'LINK_KEYS holds the keys of links: put a new secret in front there, and take the old one out after a day',
    );
  }
  return readDataDirectory(env);
}

/** Names shorter than this are one letter off too many others. */
const MIN_TELLING_LENGTH = 8;

function refuseMisspeltNames(names: readonly string[]): void {
  const ours = Object.keys(environment.shape);
  const misspelt = names
    .filter((name) => !ours.includes(name))
    .flatMap((name) => {
      const meant = ours.find((our) => our.length >= MIN_TELLING_LENGTH && isOneLetterOff(name, our));
      return meant === undefined ? [] : [`${name} is no variable of this service: ${meant} is`];
    });
  if (misspelt.length > 0) throw unusable(misspelt.join('; '));
}

/** Whether one letter added, left out, changed, or exchanged with the next makes one text of the other. */
function isOneLetterOff(one: string, other: string): boolean {
  let start = 0;
  while (start < one.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < Math.min(one.length, other.length) - start && one.at(-1 - end) === other.at(-1 - end))
    end += 1;
  const middle = one.slice(start, one.length - end);
  const otherMiddle = other.slice(start, other.length - end);
  const isExchange = middle.length === 2 && middle === [...otherMiddle].reverse().join('');
  return isExchange || Math.max(middle.length, otherMiddle.length) === 1;
}

function hasCredentials(url: string): boolean {
  const parsed = URL.parse(url);
  return parsed !== null && parsed.username + parsed.password !== '';
}
