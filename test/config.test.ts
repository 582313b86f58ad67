import { generateKeyPairSync } from 'node:crypto';
import { resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { ConfigError, readConfig } from '../src/config.ts';

const JWKS = {
  AUTH_JWKS_URL: 'https://id.example.org/jwks',
  AUTH_ISSUER: 'https://id.example.org',
  AUTH_AUDIENCE: 'kilolock',
};
const DATABASE_URL = 'postgresql://user:secret@db.example.org/kilolock';

const SIGNING_PEM = String(
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }),
);
const PUBLIC_PEM = String(generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' }));

const AGE_RECIPIENT = await identityToRecipient(await generateX25519Identity());

/** The one line a process with this environment would end with. */
function refusal(env: Readonly<Record<string, string>>): string {
  try {
    readConfig(env);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    const { message } = error as ConfigError;
    expect(message).not.toContain('\n');
    return message;
  }
  throw new Error('The environment was accepted.');
}

describe('without any variable', () => {
  test('the service is a development one: on this machine, with a database of its own and the development key', () => {
    expect(readConfig({})).toMatchObject({
      port: 4001,
      host: '127.0.0.1',
      publicUrl: null,
      dataDirectory: resolve('.data'),
      databaseUrl: null,
      logLevel: 'info',
      auth: { jwks: null, developmentKey: true },
      playground: true,
      archiveRetentionSeconds: 7 * 86400,
      maxInlineUploadBytes: 32 * 1024 * 1024,
      maxArchiveBytes: 4 * 1024 ** 3,
      quotas: { maxOperationsPerPrincipal: 3, maxArchivesPerPrincipal: 1000 },
    });
  });

  test('or with empty ones, which count as absent', () => {
    const names = ['PORT', 'HOST', 'PUBLIC_URL', 'DATA_DIR', 'DATABASE_URL', 'AUTH_DEV_KEY', 'PLAYGROUND'];
    const empty = Object.fromEntries(names.map((name) => [name, '']));
    expect(readConfig(empty)).toEqual(readConfig({}));
  });
});

test('nobody is told anything unless asked for, and only in ways that are there', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };
  const observed = (env: Readonly<Record<string, string>>) => readConfig(env).observability;
  expect([
    observed({}),
    observed({ METRICS_PORT: '9464' }),
    observed({ METRICS_TOKEN: 'one-of-sixteen-or-more, another-of-sixteen' }),
    observed(endpoint),
    observed({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector/v1/traces' }),
    observed({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }),
    observed({ ...endpoint, OTEL_SDK_DISABLED: 'true' }),
    observed({ OTEL_SERVICE_NAME: 'mine', OTEL_TRACES_EXPORTER: 'otlp' }),
  ]).toEqual([
    { metrics: null, traces: false },
    { metrics: { port: 9464, tokens: [] }, traces: false },
    { metrics: { port: null, tokens: ['one-of-sixteen-or-more', 'another-of-sixteen'] }, traces: false },
    { metrics: null, traces: true },
    { metrics: null, traces: true },
    { metrics: null, traces: false },
    { metrics: null, traces: false },
    { metrics: null, traces: false },
  ]);
  expect(refusal({ METRICS_TOKEN: 'short' })).toContain('METRICS_TOKEN');
  expect(refusal({ METRICS_PORT: '65536' })).toContain('METRICS_PORT');
  expect(refusal({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toContain(
    'OTEL_EXPORTER_OTLP_PROTOCOL',
  );
});

test('addresses of a bucket are given out only where there is one', () => {
  const presigned = { ARCHIVE_STORE_LINKS: 'presigned' };
  expect(refusal(presigned)).toContain('ARCHIVE_STORE_LINKS=presigned needs an ARCHIVE_STORE_URL');
  expect(readConfig({ ...presigned, ARCHIVE_STORE_URL: 's3://the-bucket' })).toMatchObject({
    archiveStore: { isAddressed: true },
  });
});

test('another way to the database goes with one', () => {
  expect(refusal({ DATABASE_DIRECT_URL: DATABASE_URL })).toContain('DATABASE_URL, which is missing');
});

describe('signatures', () => {
  test('count by the keys that are named, and by the one that signs here', () => {
    const { archiveSigner, archiveTrust } = readConfig({
      ARCHIVE_SIGNING_KEY: SIGNING_PEM,
      ARCHIVE_VERIFICATION_KEYS: PUBLIC_PEM,
      REQUIRE_SIGNATURE: 'true',
    });
    expect(archiveTrust).toMatchObject({
      isRequired: true,
      keys: [{ keyId: archiveSigner?.keyId }, { keyId: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    });
    expect(readConfig({})).toMatchObject({
      archiveSigner: null,
      archiveTrust: { keys: [], isRequired: false },
    });
  });

  test('are not required where no key could give one', () => {
    expect(refusal({ REQUIRE_SIGNATURE: 'true' })).toContain(
      'REQUIRE_SIGNATURE needs ARCHIVE_VERIFICATION_KEYS',
    );
  });
});

describe('each variable', () => {
  test.each([
    [{ PORT: '0' }, { port: 0 }],
    [{ PORT: '65535' }, { port: 65535 }],
    [{ HOST: '0.0.0.0' }, { host: '0.0.0.0' }],
    [{ PUBLIC_URL: 'https://states.example.org/' }, { publicUrl: 'https://states.example.org' }],
    [{ PUBLIC_URL: 'http://localhost:8080/archives//' }, { publicUrl: 'http://localhost:8080/archives' }],
    [{ DATA_DIR: '/var/lib/archive' }, { dataDirectory: '/var/lib/archive' }],
    [{ DATA_DIR: 'somewhere' }, { dataDirectory: resolve('somewhere') }],
    [{ LOG_LEVEL: 'silent' }, { logLevel: 'silent' }],
    [{}, { linkKeys: [] }],
    [{ LINK_KEYS: `${'n'.repeat(32)}, ${'o'.repeat(40)}` }, { linkKeys: ['n'.repeat(32), 'o'.repeat(40)] }],
    [{ PLAYGROUND: 'off' }, { playground: false }],
    [{ PLAYGROUND: '0' }, { playground: false }],
    [{ DATA_DIR: '/d' }, { archiveStore: { kind: 'file', directory: '/d/store' } }],
    [{ ARCHIVE_STORE_URL: 'file:///srv/a%20b' }, { archiveStore: { kind: 'file', directory: '/srv/a b' } }],
    [
      { ARCHIVE_STORE_URL: 's3://the-bucket/a/prefix/' },
      {
        archiveStore: {
          kind: 's3',
          bucket: 'the-bucket',
          prefix: 'a/prefix',
          hasOwnEndpoint: false,
          isAddressed: false,
        },
      },
    ],
    [
      { ARCHIVE_STORE_URL: 's3://the-bucket', AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9000' },
      {
        archiveStore: {
          kind: 's3',
          bucket: 'the-bucket',
          prefix: '',
          hasOwnEndpoint: true,
          isAddressed: false,
        },
      },
    ],
    [{ ARCHIVE_RETENTION: '45s' }, { archiveRetentionSeconds: 45 }],
    [{ ARCHIVE_RETENTION: '15m' }, { archiveRetentionSeconds: 900 }],
    [{ ARCHIVE_RETENTION: '24h' }, { archiveRetentionSeconds: 86400 }],
    [{ ARCHIVE_RETENTION: '7d' }, { archiveRetentionSeconds: 604800 }],
    [{ MAX_INLINE_UPLOAD_BYTES: '1048576' }, { maxInlineUploadBytes: 1048576 }],
    [
      { ARCHIVE_AGE_RECIPIENTS: `${AGE_RECIPIENT}\n${AGE_RECIPIENT}` },
      { archiveRecipients: [AGE_RECIPIENT, AGE_RECIPIENT] },
    ],
    [{ MAX_ARCHIVE_BYTES: '1' }, { maxArchiveBytes: 1 }],
    [{ MAX_OPERATIONS_PER_PRINCIPAL: '12' }, { quotas: { maxOperationsPerPrincipal: 12 } }],
    [{ MAX_ARCHIVES_PER_PRINCIPAL: '7' }, { quotas: { maxArchivesPerPrincipal: 7 } }],
    [{ DATABASE_URL, ...JWKS }, { databaseUrl: DATABASE_URL }],
    [{ DATABASE_URL, ...JWKS }, { databaseDirectUrl: null }],
    [{ DATABASE_URL, DATABASE_DIRECT_URL: DATABASE_URL, ...JWKS }, { databaseDirectUrl: DATABASE_URL }],
    [
      { DATABASE_URL: 'postgres://localhost/kilolock', ...JWKS },
      { databaseUrl: 'postgres://localhost/kilolock' },
    ],
  ])('is read: %j', (env, expected) => {
    expect(readConfig(env)).toMatchObject(expected);
  });

  test.each([
    ['PORT', ['hunter2', '-1', '65536', '80.5']],
    [
      'PUBLIC_URL',
      ['hunter2', 'https://hunter2@states.example.org', 'ftp://hunter2.example.org', '//hunter2'],
    ],
    ['LOG_LEVEL', ['hunter2', 'INFO']],
    ['AUTH_JWKS_URL', ['hunter2', 'file:///hunter2', 'https://user:hunter2@id.example.org/jwks']],
    ['ARCHIVE_STORE_LINKS', ['hunter2']],
    [
      'ARCHIVE_SIGNING_KEY',
      ['hunter2', '/etc/signing-key.pem', PUBLIC_PEM, SIGNING_PEM.replace('MC4', 'MC')],
    ],
    ['ARCHIVE_VERIFICATION_KEYS', ['hunter2', SIGNING_PEM, `${PUBLIC_PEM}hunter2`]],
    ['ARCHIVE_AGE_RECIPIENTS', ['hunter2', 'age1hunter2', `${AGE_RECIPIENT},AGE-SECRET-KEY-1HUNTER2`]],
    ['REQUIRE_SIGNATURE', ['yes']],
    ['LINK_KEYS', ['hunter2', ',', 'a-secret-of-31-characters-is-no', `${'x'.repeat(32)},hunter2`]],
    ['GATEWAY_SECRET', ['hunter2', ',', 'hunter2,long-enough-to-be-one', 'long-enough-to-be-one, hunter2 ,']],
    ['AUTH_DEV_KEY', ['hunter2', 'yes']],
    ['PLAYGROUND', ['hunter2', 'TRUE']],
    [
      'ARCHIVE_STORE_URL',
      [
        'hunter2',
        '/srv/x',
        'file:x',
        'file://host/x',
        'file:///',
        's3://',
        's3://B',
        'https://x/y',
        's3://bucket/a b',
      ],
    ],
    ['ARCHIVE_RETENTION', ['hunter2', '7', '0d', '-1d', '1w', '1.5h', '7 d', '9999999999s']],
    ['MAX_INLINE_UPLOAD_BYTES', ['hunter2', '0', '-1', '1.5', '32MiB', '1e999']],
    ['MAX_ARCHIVE_BYTES', ['hunter2', '0', '9007199254740993000']],
  ])('%s that cannot be used is named, and its value is not', (name, values) => {
    for (const value of values) {
      const line = refusal({ [name]: value });
      expect(line).toContain(`${name}: `);
      expect(line).not.toContain('hunter2');
    }
  });

  test('of the gateway is a list, whose members are each by themselves', () => {
    const { auth } = readConfig({ GATEWAY_SECRET: ' the-old-one-of-ours,the-next-one-of-ours, ' });
    expect(auth.gatewaySecrets).toEqual(['the-old-one-of-ours', 'the-next-one-of-ours']);
    expect(readConfig({}).auth.gatewaySecrets).toEqual([]);
  });

  test.each([
    ['GATEWAY_SECRETS', 'GATEWAY_SECRET'],
    ['GATEWAY_SECRE', 'GATEWAY_SECRET'],
    ['AUTH_JKWS_URL', 'AUTH_JWKS_URL'],
    ['AUTH_DEV_KAY', 'AUTH_DEV_KEY'],
    ['MAX_ARCHIVE_BYTE', 'MAX_ARCHIVE_BYTES'],
  ])('that is misspelt is told of, for what it was to restrict would be open: %s', (name, meant) => {
    const line = refusal({ [name]: 'hunter2' });
    expect(line).toContain(`${name} is no variable of this service: ${meant} is`);
    expect(line).not.toContain('hunter2');
  });

  test.each(['POST', 'HOSTS', 'AUTH_TOKEN', 'DATABASE_URI_RO', 'MAX_OPERATIONS', 'GATEWAY_SECRET_FILE'])(
    'of others is left alone: %s',
    (name) => expect(readConfig({ [name]: 'x' })).toEqual(readConfig({})),
  );

  test('that cannot be used is named beside every other one', () => {
    const line = refusal({ PORT: 'x', LOG_LEVEL: 'y', ARCHIVE_RETENTION: 'z' });
    for (const name of ['PORT', 'LOG_LEVEL', 'ARCHIVE_RETENTION']) expect(line).toContain(name);
  });
});

describe('the way tokens are verified', () => {
  test('a database of yours turns the development key and the playground off', () => {
    expect(readConfig({ DATABASE_URL, ...JWKS })).toMatchObject({
      auth: {
        jwks: { url: JWKS.AUTH_JWKS_URL, issuer: JWKS.AUTH_ISSUER, audience: JWKS.AUTH_AUDIENCE },
        developmentKey: false,
      },
      playground: false,
    });
  });

  test('both may be turned on by name', () => {
    expect(readConfig({ DATABASE_URL, AUTH_DEV_KEY: 'true', PLAYGROUND: 'true' })).toMatchObject({
      auth: { jwks: null, developmentKey: true },
      playground: true,
    });
  });

  test('a key set, its issuer and its audience are refused without each other', () => {
    const { AUTH_ISSUER, AUTH_AUDIENCE, AUTH_JWKS_URL } = JWKS;
    for (const env of [
      { AUTH_JWKS_URL },
      { AUTH_JWKS_URL, AUTH_ISSUER },
      { AUTH_JWKS_URL, AUTH_AUDIENCE },
      { AUTH_ISSUER, AUTH_AUDIENCE },
      { AUTH_ISSUER },
      { AUTH_AUDIENCE },
    ]) {
      const line = refusal(env);
      for (const name of Object.keys(JWKS)) expect(line).toContain(name);
    }
  });

  test('the embedded database with the development key off and no key set is refused: nobody could get in', () => {
    expect(refusal({ AUTH_DEV_KEY: 'false' })).toContain('AUTH_JWKS_URL');
  });

  test('the embedded database may have a key set beside the development key, or instead of it', () => {
    expect(readConfig(JWKS).auth).toMatchObject({ jwks: { url: JWKS.AUTH_JWKS_URL }, developmentKey: true });
    expect(readConfig({ ...JWKS, AUTH_DEV_KEY: 'off' }).auth).toMatchObject({ developmentKey: false });
  });
});

test('an IPv6 address may stand in brackets, as in a URL', () => {
  expect(readConfig({ HOST: '[::1]' }).host).toBe('::1');
  expect(readConfig({ HOST: '::1' }).host).toBe('::1');
});
