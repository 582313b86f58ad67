import { generateKeyPairSync } from 'node:crypto';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { loadSampleHistory } from '../../src/development/sample-history.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { kl, klJson } from './support/kl.ts';

const keys = generateKeyPairSync('ed25519');
const pem = (key: 'publicKey' | 'privateKey') =>
  String(
    key === 'publicKey'
      ? keys.publicKey.export({ format: 'pem', type: 'spki' })
      : keys.privateKey.export({ format: 'pem', type: 'pkcs8' }),
  );

let service: TestService;
let directory: string;
let env: Record<string, string>;
/** Of the service, and of the one who calls. */
let kept: string;
let mine: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kl-sealed-'));
  [kept, mine] = [await generateX25519Identity(), await generateX25519Identity()];
  service = await startTestService({
    ARCHIVE_SIGNING_KEY: pem('privateKey'),
    REQUIRE_SIGNATURE: 'true',
    ARCHIVE_AGE_RECIPIENTS: await identityToRecipient(kept),
  });
  await loadSampleHistory(service.database);
  const token = await service.token({ scopes: ['state.read', 'state.export', 'state.import'] });
  env = { KL_ENDPOINT: `${service.url}/graphql`, KL_TOKEN: token, HOME: directory };
  await writeKey('kept.txt', `# of the service\n${kept}\n`);
  await writeKey('mine.txt', `${mine}\n`);
  await writeFile(at('signer.pem'), pem('publicKey'));
  // The archive that the tests below look into.
  const recipient = await identityToRecipient(mine);
  await json(
    'export',
    'state',
    'demo/network',
    '-o',
    'n.klstate.age',
    '--recipient',
    recipient,
    '--identity',
    'mine.txt',
  );
});
afterAll(async () => {
  await service.stop();
  await rm(directory, { recursive: true });
});

const at = (name: string) => join(directory, name);
const call = (...args: string[]) => kl(args, { env, cwd: directory });
const json = <Result = Record<string, unknown>>(...args: string[]) =>
  klJson<Result>(args, { env, cwd: directory });

async function writeKey(name: string, text: string): Promise<void> {
  await writeFile(at(name), text);
  await chmod(at(name), 0o600);
}

async function digestIn(file: string, identity: string): Promise<unknown> {
  const [result] = await json<{ historyDigest: string }[]>('archive', 'verify', file, '--identity', identity);
  return result?.historyDigest;
}

describe('kl export state', () => {
  test('verifies an encrypted archive with a key, and names the file by what it is', async () => {
    const exported = await json('export', 'state', 'demo/network', '--identity', 'kept.txt');
    expect(exported).toMatchObject({
      file: 'demo-network.klstate.age',
      versionCount: 10,
      currentSerial: '10',
    });
    expect((await stat(at('demo-network.klstate.age'))).mode & 0o777).toBe(0o600);
    expect(await digestIn('demo-network.klstate.age', 'kept.txt')).toBe(exported.historyDigest);
  });

  test('without a key takes the file that the service made, and says that nobody looked into it', async () => {
    const { exitCode, stdout } = await call('export', 'state', 'demo/network', '-o', 'unseen.klstate.age');
    expect([exitCode, stdout]).toEqual([
      0,
      expect.stringMatching(/^Verified +as the file that the service made/m),
    ]);
    expect(await digestIn('unseen.klstate.age', 'kept.txt')).toBe(
      await digestIn('n.klstate.age', 'mine.txt'),
    );
    const [, history] = /^History digest +([0-9a-f]{64})$/m.exec(stdout) ?? [];
    expect((await readFile(at('unseen.klstate.age'))).includes(history ?? '')).toBe(false);
  });

  test('lets the digest of the history be read without a key when it is asked to', async () => {
    const exported = await json(
      'export',
      'state',
      'demo/network',
      '-o',
      'told.klstate.age',
      '--disclose-digest',
    );
    expect((await readFile(at('told.klstate.age'))).includes(`${exported.historyDigest}`)).toBe(true);
  });

  test('tells what is no recipient from one', async () => {
    const ended = await call('export', 'state', 'demo/network', '-o', 'x', '--recipient', 'hunter2');
    expect([ended.exitCode, ended.stderr]).toEqual([2, expect.stringContaining('INVALID_INPUT')]);
  });
});

test('kl export states keeps encrypted archives under names of their own, and again only what has changed', async () => {
  const first = await json<{ outcome: string; file: string }[]>('export', 'states', 'demo/*', '-o', 'kept');
  expect(first).toMatchObject([
    { outcome: 'EXPORTED', file: 'demo/network.klstate.age', currentSerial: '10' },
  ]);
  expect(await readdir(at('kept/demo'))).toEqual(['network.klstate.age']);
  const again = await json<{ outcome: string }[]>('export', 'states', 'demo/*', '-o', 'kept');
  expect(again).toMatchObject([{ outcome: 'UNCHANGED' }]);
  const brought = await json('import', 'archives', 'kept', '--dry-run', '--identity', 'kept.txt');
  expect(brought).toMatchObject([{ outcome: 'ALREADY_THERE', file: 'demo/network.klstate.age' }]);
});

describe('an encrypted archive', () => {
  test('is looked into with a key, named on the command line or in the environment', async () => {
    const here = { cwd: directory };
    const inEnvironment = { ...here, env: { KL_AGE_IDENTITY: at('kept.txt') } };
    const [inspected, extracted, compared] = await Promise.all([
      kl(['archive', 'inspect', 'n.klstate.age'], inEnvironment),
      kl(['archive', 'extract', 'n.klstate.age', '--version', '3', '--identity', 'mine.txt'], here),
      kl(['archive', 'diff', 'n.klstate.age@2', 'n.klstate.age@3', '--identity', 'mine.txt'], here),
    ]);
    expect(inspected.stdout).toMatch(/^Versions +10, serial 1 to 10$/m);
    expect(JSON.parse(extracted.stdout).serial).toBe(3);
    expect([compared.exitCode, compared.stderr]).toEqual([1, '']);
  });

  test('is verified as the file that it is: with its digest and length', async () => {
    const bytes = await readFile(at('n.klstate.age'));
    const [result] = await json<object[]>('archive', 'verify', 'n.klstate.age', '--identity', 'mine.txt');
    expect(result).toMatchObject({ complete: true, valid: true, sizeBytes: String(bytes.length) });
  });

  test('is told from a damaged one, where it is damaged', async () => {
    const bytes = await readFile(at('n.klstate.age'));
    const changed = Buffer.from(bytes);
    changed[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await writeFile(at('changed.age'), changed);
    await writeFile(at('cut.age'), bytes.subarray(0, 100));
    await writeKey('other.txt', await generateX25519Identity());
    for (const [file, key, code] of [
      ['changed.age', 'mine.txt', 'ARCHIVE_CORRUPT'],
      ['cut.age', 'mine.txt', 'ARCHIVE_TRUNCATED'],
      ['n.klstate.age', 'other.txt', 'ARCHIVE_ENCRYPTED'],
    ] as const) {
      const { exitCode, stdout } = await call('archive', 'verify', file, '--identity', key);
      expect([exitCode, stdout]).toEqual([5, expect.stringContaining(`FATAL  ${code}`)]);
    }
  });

  test('is opened by no key that others can read, nor by what is none, and by none at all', async () => {
    await writeFile(at('open.txt'), mine);
    await chmod(at('open.txt'), 0o644);
    await writeKey('none.txt', 'hunter2');
    for (const [args, exitCode, said] of [
      [['--identity', 'open.txt'], 4, /NO_CREDENTIAL/],
      [['--identity', 'none.txt'], 2, /FILE_UNUSABLE/],
      [['--identity', 'absent.txt'], 2, /FILE_UNUSABLE/],
      [[], 5, /ARCHIVE_ENCRYPTED[\s\S]*--identity/],
    ] as const) {
      const ended = await call('archive', 'extract', 'n.klstate.age', ...args);
      expect([ended.exitCode, ended.stderr, ended.stdout]).toEqual([
        exitCode,
        expect.stringMatching(said),
        '',
      ]);
      expect(ended.stderr).not.toContain('hunter2');
    }
  });

  test('is imported: opened here, sent as it is inside, and gone from the disk again', async () => {
    const place = ['--as', 'demo/restored', '--allow-shared-lineage', '--yes'];
    const aside = await mkdtemp(at('aside-'));
    const inAside = { ...env, TMPDIR: aside };
    const refused = await kl(['import', 'archive', 'n.klstate.age', ...place], {
      env: inAside,
      cwd: directory,
    });
    expect([refused.exitCode, refused.stderr]).toEqual([5, expect.stringContaining('ARCHIVE_ENCRYPTED')]);
    const args = ['import', 'archive', 'n.klstate.age', ...place, '--identity', 'mine.txt'];
    const imported = await klJson(args, { env: inAside, cwd: directory });
    expect(imported).toMatchObject({ digestEqual: true, report: { versionCount: 10, warnings: [] } });
    expect(await readdir(aside)).toEqual([]);
  });
});

describe('kl archive verify', () => {
  const verify = (...args: string[]) =>
    call('archive', 'verify', 'n.klstate.age', '--identity', 'mine.txt', ...args);

  test('says who has signed, and whether that is somebody who is known', async () => {
    const known = await verify('--keys', 'signer.pem', '--require-signature');
    expect([known.exitCode, known.stdout]).toEqual([
      0,
      expect.stringMatching(/^Signed +yes: by [0-9a-f]{64}$/m),
    ]);
    const unknown = await verify();
    expect([unknown.exitCode, unknown.stdout]).toEqual([
      0,
      expect.stringMatching(/ATTESTATION_NOT_VERIFIED/),
    ]);
  });

  test('ends with 5 where a signature is required and none of the keys has given it', async () => {
    const other = generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' });
    await writeFile(at('other.pem'), other);
    const { exitCode, stdout } = await verify('--keys', 'other.pem', '--require-signature');
    expect([exitCode, stdout]).toEqual([5, expect.stringContaining('which --keys does not name')]);
    const unusable = await Promise.all([verify('--require-signature'), verify('--keys', 'mine.txt')]);
    expect(unusable.map((ended) => ended.exitCode)).toEqual([2, 2]);
  });
});
