import { createSecretKey } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose';
import { loadOrCreateDevelopmentKey, signDevelopmentToken } from '../../src/auth/development-key.ts';
import { linkKeysOf, rotateLinkKeys } from '../../src/auth/link-keys.ts';
import {
  createLinkSigner,
  type Link,
  type LinkSigner,
  loadOrCreateLinkSigner,
} from '../../src/auth/links.ts';
import { SecretFileError } from '../../src/base/secret-file.ts';

const START = new Date('2026-03-02T10:00:00.500Z');

let directory: string;
let clock: Date;
let signer: LinkSigner;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'links-'));
  clock = START;
  signer = await loadOrCreateLinkSigner(directory, () => clock);
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

function sign(changes: Partial<Link> = {}, by: LinkSigner = signer): Promise<string> {
  return by.sign({
    purpose: 'download',
    resourceId: 'op-1',
    workspace: 'ws_1',
    environment: 'env_1',
    subject: 'user-1',
    token: null,
    expiresInSeconds: 60,
    ...changes,
  });
}

/** A link as the signer makes it but for these changes, signed with the signer's own key. */
async function resign(link: string, claims: object, header: object = {}): Promise<string> {
  const [newest] = JSON.parse(await readFile(join(directory, 'link-keys.jwks'), 'utf8')).keys;
  return new SignJWT({ ...decodeJwt(link), ...claims })
    .setProtectedHeader({ alg: 'HS256', ...decodeProtectedHeader(link), ...header })
    .sign(createSecretKey(newest.k, 'base64url'));
}

describe('a signed link', () => {
  test('says whom and which environment it was made for, and until when it is good', async () => {
    expect(await signer.verify(await sign(), 'download', 'op-1')).toEqual({
      workspace: 'ws_1',
      environment: 'env_1',
      subject: 'user-1',
      token: null,
    });
  });

  test('stands in a URL as it is', async () => {
    const link = await sign({ subject: 'Ada Lovelace <ada@example.com>&=?' });
    expect(encodeURIComponent(link)).toBe(link);
    expect((await signer.verify(link, 'download', 'op-1'))?.subject).toBe(
      'Ada Lovelace <ada@example.com>&=?',
    );
  });

  test('is good until its last second, and not a second longer', async () => {
    const link = await sign();
    clock = new Date('2026-03-02T10:00:59.999Z');
    expect(await signer.verify(link, 'download', 'op-1')).not.toBeNull();
    clock = new Date('2026-03-02T10:01:00.000Z');
    expect(await signer.verify(link, 'download', 'op-1')).toBeNull();
  });

  test('is good for its own operation alone', async () => {
    expect(await signer.verify(await sign(), 'download', 'op-2')).toBeNull();
  });

  test('is useless for a download when it was made for another purpose', async () => {
    const link = await sign();
    expect(await signer.verify(await resign(link, {}), 'download', 'op-1')).not.toBeNull();
    expect(await signer.verify(await resign(link, { purpose: 'upload' }), 'download', 'op-1')).toBeNull();
    expect(await signer.verify(await resign(link, { purpose: undefined }), 'download', 'op-1')).toBeNull();
  });

  test.each<[name: string, claims: object, header: object]>([
    ['without an expiry', { exp: undefined }, {}],
    ['without a subject', { sub: undefined }, {}],
    ['without a workspace', { workspace: undefined }, {}],
    ['without an environment', { environment: undefined }, {}],
    ['with a subject that is no text', { sub: 7 }, {}],
    ['of another issuer', { iss: 'kilolock-state-archive/development' }, {}],
    ['of the type of a credential', {}, { typ: 'JWT' }],
    ['that names another key', {}, { kid: 'another' }],
  ])('is refused %s, even when it is signed with the right key', async (_name, claims, header) => {
    expect(await signer.verify(await resign(await sign(), claims, header), 'download', 'op-1')).toBeNull();
  });

  test('is refused when any character of it was changed', async () => {
    const link = await sign();
    for (let index = 0; index < link.length - 1; index += 1) {
      const changed = `${link.slice(0, index)}${link[index] === 'A' ? 'B' : 'A'}${link.slice(index + 1)}`;
      expect([index, await signer.verify(changed, 'download', 'op-1')]).toEqual([index, null]);
    }
  });

  test('is refused when it was made with the key of another directory', async () => {
    const otherDirectory = join(directory, 'other');
    const link = await sign({}, await loadOrCreateLinkSigner(otherDirectory, () => clock));
    expect(await signer.verify(link, 'download', 'op-1')).toBeNull();
  });

  test('cannot be a credential', async () => {
    const token = await signDevelopmentToken(await loadOrCreateDevelopmentKey(directory), {
      subject: 'user-1',
      scopes: ['state.export'],
      ttlSeconds: 60,
    });
    expect(await signer.verify(token, 'download', 'op-1')).toBeNull();
  });

  test.each(['', 'x', 'a.b.c', '..', 'é'])('is refused when it is none: %j', async (text) => {
    expect(await signer.verify(text, 'download', 'op-1')).toBeNull();
  });

  test.each([0, -1, 1.5, 86_401, Number.NaN, Number.POSITIVE_INFINITY])(
    'is never made for %p seconds',
    async (seconds) => {
      await expect(sign({ expiresInSeconds: seconds })).rejects.toThrow(RangeError);
    },
  );
});

describe('the link key', () => {
  test('is private to its owner, named in every link, and outlives the process', async () => {
    const link = await sign();
    expect((await stat(join(directory, 'link-keys.jwks'))).mode & 0o777).toBe(0o600);
    expect(decodeProtectedHeader(link).kid).toMatch(/^[\w-]{43}$/);
    const later = await loadOrCreateLinkSigner(directory, () => clock);
    expect(await later.verify(link, 'download', 'op-1')).not.toBeNull();
  });

  test('is one, however many ask for the first at the same time', async () => {
    const fresh = join(directory, 'fresh');
    const signers = await Promise.all(
      Array.from({ length: 10 }, () => loadOrCreateLinkSigner(fresh, () => clock)),
    );
    const links = await Promise.all(signers.map((each) => sign({}, each)));
    expect(new Set(links).size).toBe(1);
    expect(await readdir(fresh)).toEqual(['link-keys.jwks']);
  });

  test.each([
    '',
    '{"keys":[]}',
    '{"keys":[{"kty":"oct","created":0}]}',
    '{"keys":[{"kty":"oct","k":"c2hvcnQ","created":0}]}',
  ])('is refused when the file holds %j', async (contents) => {
    await writeFile(join(directory, 'link-keys.jwks'), contents);
    await expect(loadOrCreateLinkSigner(directory)).rejects.toThrow(SecretFileError);
  });
});

describe('a rotation of the link keys', () => {
  const HOUR = 3_600_000;

  function later(hours: number): void {
    clock = new Date(START.getTime() + hours * HOUR);
  }

  test('has every process sign with the new key at once, and still take links of the old', async () => {
    const otherProcess = await loadOrCreateLinkSigner(directory, () => clock);
    const old = await sign();
    expect(await rotateLinkKeys(directory, clock)).toBe(2);
    const fresh = await sign({}, otherProcess);
    expect(decodeProtectedHeader(fresh).kid).not.toBe(decodeProtectedHeader(old).kid);
    for (const link of [old, fresh]) {
      expect(await signer.verify(link, 'download', 'op-1')).not.toBeNull();
      expect(await otherProcess.verify(link, 'download', 'op-1')).not.toBeNull();
    }
  });

  test('retires no key before the last link made with it has ended', async () => {
    later(100);
    const link = await sign({ expiresInSeconds: 86_400 });
    await rotateLinkKeys(directory, clock);
    later(123.9);
    expect(await rotateLinkKeys(directory, clock)).toBe(3);
    expect(await signer.verify(link, 'download', 'op-1')).not.toBeNull();
    later(124);
    expect(await rotateLinkKeys(directory, clock)).toBe(3);
  });

  test('makes a link void whose key is retired, whatever it says of its expiry', async () => {
    const link = await resign(await sign(), { exp: Math.floor(START.getTime() / 1000) + 1_000_000 });
    await rotateLinkKeys(directory, clock);
    later(24);
    expect(await signer.verify(link, 'download', 'op-1')).not.toBeNull();
    expect(await rotateLinkKeys(directory, clock)).toBe(2);
    expect(await signer.verify(link, 'download', 'op-1')).toBeNull();
  });

  test('leaves one private file behind', async () => {
    await rotateLinkKeys(directory, clock);
    expect(await readdir(directory)).toEqual(['link-keys.jwks']);
    expect((await stat(join(directory, 'link-keys.jwks'))).mode & 0o777).toBe(0o600);
  });

  test('by removing the file makes every link void, without a restart', async () => {
    const link = await sign();
    await rm(join(directory, 'link-keys.jwks'));
    expect(await signer.verify(link, 'download', 'op-1')).toBeNull();
    expect(await signer.verify(await sign(), 'download', 'op-1')).not.toBeNull();
  });
});

describe('keys that are configured', () => {
  const [old, next, other] = ['o', 'n', 'x'].map((letter) => letter.repeat(32)) as [string, string, string];
  const signerOf = (...secrets: [string, ...string[]]) => createLinkSigner(linkKeysOf(secrets), () => clock);
  const accepts = async (by: LinkSigner, link: string) =>
    (await by.verify(link, 'download', 'op-1')) !== null;

  test('are the same for all who are given the same secrets, whatever is on their disks', async () => {
    expect(await accepts(signerOf(next), await sign({}, signerOf(next)))).toBe(true);
    expect(await accepts(signerOf(other), await sign({}, signerOf(next)))).toBe(false);
    expect(await accepts(signer, await sign({}, signerOf(next)))).toBe(false);
  });

  test('sign with the first and accept all, so that one can be replaced while links last', async () => {
    expect(await accepts(signerOf(next, old), await sign({}, signerOf(old)))).toBe(true);
    expect(await accepts(signerOf(old), await sign({}, signerOf(next, old)))).toBe(false);
    expect(await accepts(signerOf(old, next), await sign({}, signerOf(next, old)))).toBe(true);
  });
});

test('a link for an upload is good for no download, and the reverse', async () => {
  const upload = await sign({ purpose: 'upload' });
  expect(await signer.verify(upload, 'download', 'op-1')).toBeNull();
  expect(await signer.verify(await sign(), 'upload', 'op-1')).toBeNull();
  expect(await signer.verify(upload, 'upload', 'op-1')).not.toBeNull();
});
