import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { loadOrCreateDevelopmentKey, signDevelopmentToken } from '../../src/auth/development-key.ts';
import { ClaimsError } from '../../src/auth/token-claims.ts';
import { SecretFileError } from '../../src/base/secret-file.ts';

let directory: string;

beforeEach(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'development-key-')), 'data');
});

afterEach(async () => {
  await rm(join(directory, '..'), { recursive: true });
});

describe('the development key', () => {
  test('is made once, and is the same ever after', async () => {
    const first = await loadOrCreateDevelopmentKey(directory);
    const second = await loadOrCreateDevelopmentKey(directory);
    expect(second.keyId).toBe(first.keyId);
    expect(second.privateKey.equals(first.privateKey)).toBe(true);
  });

  test('is private to its owner, and leaves nothing else behind', async () => {
    await loadOrCreateDevelopmentKey(directory);
    expect(await readdir(directory)).toEqual(['development-key.jwk']);
    expect((await stat(join(directory, 'development-key.jwk'))).mode & 0o777).toBe(0o600);
    expect((await stat(directory)).mode & 0o777).toBe(0o711);
  });

  test('is one, however many ask for the first at the same time', async () => {
    const keys = await Promise.all(Array.from({ length: 20 }, () => loadOrCreateDevelopmentKey(directory)));
    expect(new Set(keys.map((key) => key.keyId)).size).toBe(1);
    expect(await readdir(directory)).toEqual(['development-key.jwk']);
  });

  test('is refused when others may read it', async () => {
    await loadOrCreateDevelopmentKey(directory);
    await chmod(join(directory, 'development-key.jwk'), 0o640);
    await expect(loadOrCreateDevelopmentKey(directory)).rejects.toThrow(/development-key\.jwk .*chmod 600/);
  });

  test.each([
    ['empty', ''],
    ['cut off', '{"crv":"Ed25519","d":"c2VjcmV0'],
    ['no private key', '{"crv":"Ed25519","kty":"OKP","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'],
    [
      'a key of another kind',
      '{"crv":"X25519","d":"YD2_WDwVZtUDWrVxQ9QjBP4Em8QT8lkCd_fNkqPcDW0","x":"YgQ7k8OJgFmEG1BR3Ys7SGLKkVqcUMgmm4bvbVPDHFo","kty":"OKP"}',
    ],
  ])('is never replaced when the file is %s, and the error does not quote it', async (_name, contents) => {
    const path = join(directory, 'development-key.jwk');
    await loadOrCreateDevelopmentKey(directory);
    await writeFile(path, contents);
    const error: unknown = await loadOrCreateDevelopmentKey(directory).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(SecretFileError);
    expect(String(error)).toContain(path);
    expect(String(error)).not.toContain('c2VjcmV0');
    expect(await readFile(path, 'utf8')).toBe(contents);
  });

  test('signs no token that would not be understood', async () => {
    const key = await loadOrCreateDevelopmentKey(directory);
    const claims = { subject: 'user-1', scopes: ['state.read'], ttlSeconds: 60 };
    await expect(signDevelopmentToken(key, { ...claims, workspace: 'ws_1' })).rejects.toThrow(ClaimsError);
    await expect(signDevelopmentToken(key, { ...claims, states: ['a*b'] })).rejects.toThrow(ClaimsError);
    await expect(signDevelopmentToken(key, { ...claims, subject: '' })).rejects.toThrow(ClaimsError);
  });
});
