import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { loadOrCreateLinkSigner } from '../../src/auth/links.ts';

const PROGRAM = fileURLToPath(new URL('../../src/cli/rotate-link-keys.ts', import.meta.url));
const LINK = {
  purpose: 'download',
  resourceId: 'operation-1',
  workspace: 'ws_a',
  environment: 'env_a',
  subject: 'alice',
  token: null,
  expiresInSeconds: 60,
} as const;

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'link-keys-'));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

async function rotate(more: Readonly<Record<string, string>> = {}) {
  const environment = { PATH: process.env.PATH, DATA_DIR: directory, ...more };
  return promisify(execFile)(process.execPath, [PROGRAM], { env: environment });
}

test('a running signer signs with the new key at once, and links made before stay good', async () => {
  const signer = await loadOrCreateLinkSigner(directory);
  const before = await signer.sign(LINK);
  const { stdout, stderr } = await rotate();
  expect([stdout, stderr]).toEqual(['Links are signed with a new key; 2 keys are accepted.\n', '']);
  const after = await signer.sign(LINK);
  const keyIdOf = (token: string) =>
    JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid;
  expect(keyIdOf(after)).not.toBe(keyIdOf(before));
  for (const token of [before, after]) {
    expect(await signer.verify(token, 'download', 'operation-1')).toMatchObject({ subject: 'alice' });
  }
});

test('a key file that others can read is refused with one line, and left as it is', async () => {
  await loadOrCreateLinkSigner(directory);
  await chmod(join(directory, 'link-keys.jwks'), 0o644);
  await expect(rotate()).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^[^\n]*link-keys\.jwks[^\n]*\n$/),
  });
});

test('where LINK_KEYS holds the keys nothing is made, and one line says what to do', async () => {
  await expect(rotate({ LINK_KEYS: 'hunter2'.repeat(5) })).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^LINK_KEYS holds (?!.*hunter2)[^\n]*\n$/),
  });
  expect(await readdir(directory)).toEqual([]);
});
