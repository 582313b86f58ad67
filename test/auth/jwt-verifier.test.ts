import { createHmac, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { SignJWT } from 'jose';
import {
  DEVELOPMENT_AUDIENCE,
  DEVELOPMENT_ISSUER,
  type DevelopmentKey,
  loadOrCreateDevelopmentKey,
  signDevelopmentToken,
} from '../../src/auth/development-key.ts';
import { createJwtVerifier, InvalidCredentialError, type JwtVerifier } from '../../src/auth/jwt-verifier.ts';
import { loadOrCreateLinkSigner } from '../../src/auth/links.ts';

const ISSUER = 'https://issuer.example';
const AUDIENCE = 'https://state-archive.example';
const NOW = new Date('2026-03-02T10:00:00Z');
const NOW_SECONDS = NOW.getTime() / 1000;

/** Claims as a stranger may send them; undefined stands for a claim that is left out. */
type Claims = Record<string, unknown>;

let directory: string;
let developmentKey: DevelopmentKey;
let keyServer: Server;
let keyServerUrl: string;

const issuerKeys = {
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: generateKeyPairSync('ed25519'),
};
const keySet = JSON.stringify({
  keys: Object.entries(issuerKeys).map(([kid, pair]) => ({
    ...pair.publicKey.export({ format: 'jwk' }),
    kid,
  })),
});

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'jwt-verifier-'));
  developmentKey = await loadOrCreateDevelopmentKey(directory);
  keyServer = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(keySet);
  });
  keyServer.listen(0, '127.0.0.1');
  await once(keyServer, 'listening');
  const { port } = keyServer.address() as AddressInfo;
  keyServerUrl = `http://127.0.0.1:${port}/jwks`;
});

afterAll(async () => {
  keyServer.closeAllConnections();
  keyServer.close();
  await rm(directory, { recursive: true });
});

function verifierOf(options: { url?: string; now?: Date } = {}): JwtVerifier {
  return createJwtVerifier({
    developmentKey,
    jwks: { url: options.url ?? keyServerUrl, issuer: ISSUER, audience: AUDIENCE },
    now: () => options.now ?? NOW,
  });
}

/** A development token with these claims in place of its own; undefined takes one away. */
function developmentToken(claims: Claims = {}, header: { alg?: string; kid?: string } = {}): Promise<string> {
  return new SignJWT({
    iss: DEVELOPMENT_ISSUER,
    aud: DEVELOPMENT_AUDIENCE,
    sub: 'user-1',
    exp: NOW_SECONDS + 60,
    ...claims,
  })
    .setProtectedHeader({ alg: 'EdDSA', kid: developmentKey.keyId, ...header })
    .sign(developmentKey.privateKey);
}

function issuerToken(
  key: KeyObject,
  header: { alg: string; kid?: string },
  claims: Claims = {},
): Promise<string> {
  return new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: 'user-1', exp: NOW_SECONDS + 60, ...claims })
    .setProtectedHeader(header)
    .sign(key);
}

/** The reason for the log; fails the test when the credential is accepted or refused in another way. */
async function refusalOf(token: string, verifier = verifierOf()): Promise<string> {
  const outcome = await verifier.verify(token).catch((error: unknown) => error);
  if (!(outcome instanceof InvalidCredentialError))
    throw new Error(`not refused: ${JSON.stringify(outcome)}`);
  expect(outcome.message).toBe(
    outcome.reason === 'expired' ? 'The credential has expired.' : 'The credential is not valid.',
  );
  return outcome.reason;
}

describe('a development token', () => {
  test('gives the principal it was signed for', async () => {
    const token = await signDevelopmentToken(developmentKey, {
      subject: 'user-1',
      name: 'Ada Lovelace',
      scopes: ['state.read', 'state.export'],
      workspace: 'ws_3f9a1c2b4d5e',
      environment: 'env_7b8c9d0e1f2a',
      states: ['prod/*', 'a label with spaces'],
      ttlSeconds: 60,
    });
    const verifier = createJwtVerifier({ developmentKey, jwks: null });
    expect(await verifier.verify(token)).toEqual({
      subject: 'user-1',
      actor: 'Ada Lovelace',
      expiresAt: expect.any(Number),
      scopes: new Set(['state.read', 'state.export']),
      workspace: 'ws_3f9a1c2b4d5e',
      environment: 'env_7b8c9d0e1f2a',
      statePatterns: ['prod/*', 'a label with spaces'],
    });
  });

  test('that says the least permits no scope, every state, and names its subject', async () => {
    expect(await verifierOf().verify(await developmentToken())).toEqual({
      subject: 'user-1',
      actor: 'user-1',
      expiresAt: expect.any(Number),
      scopes: new Set(),
      workspace: null,
      environment: null,
      statePatterns: null,
    });
  });

  test('is refused where the development key is off', async () => {
    const verifier = createJwtVerifier({
      developmentKey: null,
      jwks: { url: keyServerUrl, issuer: ISSUER, audience: AUDIENCE },
      now: () => NOW,
    });
    expect(await refusalOf(await developmentToken(), verifier)).toBe('unknown issuer');
  });
});

describe('a token that is not accepted', () => {
  test.each(['', 'kl_c2VjcmV0', 'a.b.c', '..', 'e30.e30.', 'e30.e30.e 30', 'e30.e30.e30=', 'é.é.é'])(
    'is refused when it is no JWT: %j',
    async (token) => {
      expect(await refusalOf(token)).toBeTruthy();
    },
  );

  test('is refused without repeating any part of the token', async () => {
    const token = await developmentToken({ sub: 'sensitive-subject', exp: NOW_SECONDS - 3600 });
    const error: unknown = await verifierOf()
      .verify(token)
      .catch((caught: unknown) => caught);
    const told = JSON.stringify([error, Object.getOwnPropertyDescriptors(error)]);
    expect(told).toContain('expired');
    expect(told).not.toContain('sensitive-subject');
    for (const part of token.split('.')) expect(told).not.toContain(part);
  });
});

describe('the times of a token', () => {
  test('let it live for the clock skew beyond its expiry, and no second longer', async () => {
    const within = await developmentToken({ exp: NOW_SECONDS - 29 });
    const beyond = await developmentToken({ exp: NOW_SECONDS - 30 });
    expect((await verifierOf().verify(within)).subject).toBe('user-1');
    expect(await refusalOf(beyond)).toBe('expired');
  });

  test('are told of when they are over, to whom the token was given alone', async () => {
    const token = await developmentToken({ exp: NOW_SECONDS - 3600 });
    expect(await refusalOf(token)).toBe('expired');
    const forged = await new SignJWT({
      iss: DEVELOPMENT_ISSUER,
      aud: DEVELOPMENT_AUDIENCE,
      sub: 'user-1',
      exp: 1,
    })
      .setProtectedHeader({ alg: 'EdDSA', kid: developmentKey.keyId })
      .sign(generateKeyPairSync('ed25519').privateKey);
    expect(await refusalOf(forged)).toBe('ERR_JWS_SIGNATURE_VERIFICATION_FAILED');
    expect(await refusalOf(await developmentToken({ exp: 1, aud: 'another' }))).toContain('aud');
  });

  test('must include an expiry', async () => {
    expect(await refusalOf(await developmentToken({ exp: undefined }))).toBe('claim "exp": missing');
  });

  test('keep it from being used earlier than the clock skew before its start', async () => {
    const within = await developmentToken({ nbf: NOW_SECONDS + 30 });
    const beyond = await developmentToken({ nbf: NOW_SECONDS + 31 });
    expect((await verifierOf().verify(within)).subject).toBe('user-1');
    expect(await refusalOf(beyond)).toContain('nbf');
  });

  test.each(['soon', null, {}])('must be times: %j is none', async (nbf) => {
    expect(await refusalOf(await developmentToken({ nbf }))).toContain('nbf');
  });
});

describe('the signature of a token', () => {
  test('must be there: alg none is refused', async () => {
    const unsigned = [
      { alg: 'none' },
      { iss: DEVELOPMENT_ISSUER, aud: DEVELOPMENT_AUDIENCE, sub: 'x', exp: NOW_SECONDS + 60 },
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    expect(await refusalOf(`${unsigned}.`)).toBeTruthy();
  });

  test.each([
    ['the development key', DEVELOPMENT_ISSUER, DEVELOPMENT_AUDIENCE],
    ['a published key', ISSUER, AUDIENCE],
  ])('cannot be an HMAC keyed with the public half of %s', async (_name, iss, aud) => {
    const [publicKey, kid] =
      iss === ISSUER
        ? [issuerKeys.RS256.publicKey, 'RS256']
        : [developmentKey.publicKey, developmentKey.keyId];
    const signed = [
      { alg: 'HS256', kid },
      { iss, aud, sub: 'x', exp: NOW_SECONDS + 60 },
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const mac = createHmac('sha256', publicKey.export({ type: 'spki', format: 'pem' })).update(signed);
    expect(await refusalOf(`${signed}.${mac.digest('base64url')}`)).toBe('ERR_JOSE_ALG_NOT_ALLOWED');
  });

  test('must be by the development key: another key under its key id is refused', async () => {
    const stranger = generateKeyPairSync('ed25519').privateKey;
    const token = await new SignJWT({
      iss: DEVELOPMENT_ISSUER,
      aud: DEVELOPMENT_AUDIENCE,
      sub: 'x',
      exp: NOW_SECONDS + 60,
    })
      .setProtectedHeader({ alg: 'EdDSA', kid: developmentKey.keyId })
      .sign(stranger);
    expect(await refusalOf(token)).toBe('ERR_JWS_SIGNATURE_VERIFICATION_FAILED');
  });

  test('must name the development key: the key id of another is refused', async () => {
    expect(await refusalOf(await developmentToken({}, { kid: 'EdDSA' }))).toBe('ERR_JWKS_NO_MATCHING_KEY');
  });

  test('covers the claims: a changed claim is refused', async () => {
    const [header, , signature] = (await developmentToken()).split('.');
    const payload = Buffer.from(
      JSON.stringify({ iss: DEVELOPMENT_ISSUER, aud: DEVELOPMENT_AUDIENCE, sub: 'x', exp: NOW_SECONDS + 60 }),
    ).toString('base64url');
    expect(await refusalOf(`${header}.${payload}.${signature}`)).toBe(
      'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
    );
  });
});

describe('the issuer and audience of a token', () => {
  test.each<[name: string, claims: Claims, reason: string]>([
    ['another issuer', { iss: 'https://elsewhere.example' }, 'unknown issuer'],
    ['no issuer', { iss: undefined }, 'unknown issuer'],
    ['another audience', { aud: 'https://elsewhere.example' }, 'claim "aud": check_failed'],
    ['no audience', { aud: undefined }, 'claim "aud": missing'],
    ['the audience of the published issuer', { aud: AUDIENCE }, 'claim "aud": check_failed'],
  ])('are refused when it has %s', async (_name, claims, reason) => {
    expect(await refusalOf(await developmentToken(claims))).toBe(reason);
  });

  test('bind it to its own keys: the development key cannot sign for the published issuer', async () => {
    const token = await developmentToken({ iss: ISSUER, aud: AUDIENCE });
    expect(await refusalOf(token)).toBe('ERR_JWKS_NO_MATCHING_KEY');
  });

  test('bind it to its own keys: a published key cannot sign for the development issuer', async () => {
    const claims = { iss: DEVELOPMENT_ISSUER, aud: DEVELOPMENT_AUDIENCE };
    const token = await issuerToken(issuerKeys.EdDSA.privateKey, { alg: 'EdDSA', kid: 'EdDSA' }, claims);
    expect(await refusalOf(token)).toBe('ERR_JWKS_NO_MATCHING_KEY');
  });

  test('of a download link are no credential', async () => {
    const signer = await loadOrCreateLinkSigner(directory, () => NOW);
    const link = await signer.sign({
      purpose: 'download',
      resourceId: 'op-1',
      workspace: 'ws_1',
      environment: 'env_1',
      subject: 'user-1',
      token: null,
      expiresInSeconds: 60,
    });
    expect(await refusalOf(link)).toBe('unknown issuer');
  });
});

describe('the claims of a token', () => {
  test.each<[name: string, claims: Claims, expected: object]>([
    ['scopes in a string', { scope: 'state.read  openid' }, { scopes: new Set(['state.read', 'openid']) }],
    [
      'scopes in an array',
      { scope: ['state.read', 'state.export'] },
      { scopes: new Set(['state.read', 'state.export']) },
    ],
    ['an empty scope', { scope: '' }, { scopes: new Set() }],
    ['a name that is spelt with a joiner', { name: 'می\u200cخواهم' }, { actor: 'می\u200cخواهم' }],
    [
      'states parted by the space alone',
      { states: 'a\u00a0b c\td' },
      { statePatterns: ['a\u00a0b', 'c\td'] },
    ],
    ['a name before an email', { name: 'Ada', email: 'ada@example.com' }, { actor: 'Ada' }],
    [
      'an email before the subject',
      { email: 'ada@example.com' },
      { actor: 'ada@example.com', subject: 'user-1' },
    ],
    ['states in a string', { states: 'prod/* dev/network' }, { statePatterns: ['prod/*', 'dev/network'] }],
    ['states in an array', { states: ['prod/*'] }, { statePatterns: ['prod/*'] }],
    ['no states', { states: [] }, { statePatterns: [] }],
    ['no states in a string', { states: '' }, { statePatterns: [] }],
    ['all states', { states: '*' }, { statePatterns: null }],
    ['all states in an array', { states: ['*'] }, { statePatterns: null }],
  ])('are understood: %s', async (_name, claims, expected) => {
    expect(await verifierOf().verify(await developmentToken(claims))).toMatchObject(expected);
  });

  test.each<[name: string, claims: Claims, claim: string]>([
    ['no subject', { sub: undefined }, 'sub'],
    ['an empty subject', { sub: '' }, 'sub'],
    ['a subject with a NUL', { sub: 'a\0b' }, 'sub'],
    ['a subject with half a surrogate pair', { sub: '\ud800' }, 'sub'],
    ['a subject that is a number', { sub: 7 }, 'sub'],
    ["a subject of Kilolock's own kind", { sub: 'kilolock:api-token:1' }, 'sub'],
    ['a name that is an object', { name: {} }, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['an email with a line break', { email: 'a@example.com\n' }, 'email'],
    ['a scope that is a number', { scope: 7 }, 'scope'],
    ['a scope that is null', { scope: null }, 'scope'],
    ['two scopes in one item', { scope: ['state.read state.export'] }, 'scope'],
    ['a subject with a zero width space', { sub: 'ali\u200bce' }, 'sub'],
    ['a subject written from right to left', { sub: '\u202eecila' }, 'sub'],
    ['a subject with a joiner', { sub: 'ali\u200dce' }, 'sub'],
    ['a subject on two lines', { sub: 'alice\u2028bob' }, 'sub'],
    ['a subject of 257 characters', { sub: 'a'.repeat(257) }, 'sub'],
    ['a name written from right to left', { name: 'Ada \u202e' }, 'name'],
    ['a name of joiners', { name: '\u200d' }, 'name'],
    ['scopes parted by what looks like a space', { scope: 'openid\u00a0state.export' }, 'scope'],
    ['scopes parted by a tab', { scope: 'openid\tstate.export' }, 'scope'],
    ['scopes parted by an ideographic space', { scope: 'openid\u3000state.export' }, 'scope'],
    ['a workspace alone', { workspace: 'ws_1' }, 'workspace'],
    ['an environment alone', { environment: 'env_1' }, 'environment'],
    ['a workspace that reaches into another', { workspace: 'ws_1/env_2', environment: 'env_1' }, 'workspace'],
    ['an empty environment', { workspace: 'ws_1', environment: '' }, 'environment'],
    ['a workspace that is null', { workspace: null, environment: null }, 'workspace'],
    ['states that are null', { states: null }, 'states'],
    ['states that are an object', { states: { '*': true } }, 'states'],
    ['a star within a pattern', { states: ['prod/*/network'] }, 'states'],
    ['two stars', { states: ['prod/**'] }, 'states'],
    ['an empty pattern', { states: [''] }, 'states'],
  ])('are refused, never ignored: %s', async (_name, claims, claim) => {
    expect(await refusalOf(await developmentToken(claims))).toContain(claim);
  });
});

describe('a token that was accepted before', () => {
  test('is looked into no more while nothing has changed', async () => {
    const verifier = verifierOf();
    const token = await developmentToken();
    const principal = await verifier.verify(token);
    const verify = jest.spyOn(crypto.subtle, 'verify');
    expect(await verifier.verify(token)).toBe(principal);
    expect(verify).not.toHaveBeenCalled();
    verify.mockRestore();
  });

  test('is refused once it has expired, and while it has not begun', async () => {
    let now = NOW;
    const verifier = createJwtVerifier({ developmentKey, jwks: null, now: () => now });
    const token = await developmentToken({ nbf: NOW_SECONDS });
    await verifier.verify(token);
    now = new Date(NOW.getTime() + 91_000);
    expect(await refusalOf(token, verifier)).toBe('expired');
    now = new Date(NOW.getTime() - 31_000);
    expect(await refusalOf(token, verifier)).toMatch(/^claim "nbf"/);
    now = NOW;
    await verifier.verify(token);
  });

  test('helps no other with the same claims', async () => {
    const verifier = verifierOf();
    const token = await developmentToken();
    await verifier.verify(token);
    const forged = new SignJWT({ iss: DEVELOPMENT_ISSUER, aud: DEVELOPMENT_AUDIENCE, sub: 'user-1' })
      .setExpirationTime(NOW_SECONDS + 60)
      .setProtectedHeader({ alg: 'EdDSA', kid: developmentKey.keyId })
      .sign(generateKeyPairSync('ed25519').privateKey);
    expect(await refusalOf(await forged, verifier)).toBe('ERR_JWS_SIGNATURE_VERIFICATION_FAILED');
  });

  test('is refused when its issuer has withdrawn the key, and when it has given the key id to another', async () => {
    const signing = generateKeyPairSync('ed25519');
    const published = { kid: 'one', ...signing.publicKey.export({ format: 'jwk' }) };
    const other = { kid: 'one', ...generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }) };
    let keys: unknown[] = [published];
    const issuer = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ keys }));
    });
    issuer.listen(0, '127.0.0.1');
    await once(issuer, 'listening');
    const clock = jest.spyOn(Date, 'now').mockReturnValue(NOW.getTime());
    try {
      const { port } = issuer.address() as AddressInfo;
      const verifier = verifierOf({ url: `http://127.0.0.1:${port}/jwks` });
      const token = await issuerToken(signing.privateKey, { alg: 'EdDSA', kid: 'one' });
      const afterMinutes = (minutes: number) => clock.mockReturnValue(NOW.getTime() + minutes * 60_000);
      await verifier.verify(token);
      keys = [other];
      afterMinutes(11);
      expect(await refusalOf(token, verifier)).toBe('ERR_JWS_SIGNATURE_VERIFICATION_FAILED');
      keys = [];
      afterMinutes(22);
      expect(await refusalOf(token, verifier)).toBe('ERR_JWKS_NO_MATCHING_KEY');
      keys = [published];
      afterMinutes(33);
      await verifier.verify(token);
    } finally {
      clock.mockRestore();
      issuer.closeAllConnections();
      issuer.close();
    }
  });
});

describe('a published key set', () => {
  test.each<[alg: string, kid: keyof typeof issuerKeys]>([
    ['RS256', 'RS256'],
    ['PS256', 'RS256'],
    ['ES256', 'ES256'],
    ['EdDSA', 'EdDSA'],
  ])('verifies tokens signed with %s', async (alg, kid) => {
    const token = await issuerToken(issuerKeys[kid].privateKey, { alg, kid });
    expect((await verifierOf().verify(token))?.subject).toBe('user-1');
  });

  test('is used only with the algorithms allowed, though a key could do others', async () => {
    const token = await issuerToken(issuerKeys.RS256.privateKey, { alg: 'RS512', kid: 'RS256' });
    expect(await refusalOf(token)).toBe('ERR_JOSE_ALG_NOT_ALLOWED');
  });

  test('refuses a key id it does not hold, and the key id of another key', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(await refusalOf(await issuerToken(privateKey, { alg: 'ES256', kid: 'unknown' }))).toBe(
      'ERR_JWKS_NO_MATCHING_KEY',
    );
    expect(await refusalOf(await issuerToken(privateKey, { alg: 'ES256', kid: 'ES256' }))).toBe(
      'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
    );
  });

  test('that cannot be reached hinders no development token', async () => {
    const verifier = verifierOf({ url: 'http://127.0.0.1:1/jwks' });
    expect((await verifier.verify(await developmentToken())).subject).toBe('user-1');
  });
});
