import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { verifyArchive } from '../../src/archive/reader.ts';
import { readSigningKey } from '../../src/archive/signing-keys.ts';
import type { WrittenArchive } from '../../src/archive/writer.ts';
import { buildArchive } from './support/build-archive.ts';
import { sampleHistory } from './support/sample-history.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const path = temporaryDirectory();
let written: WrittenArchive;
let opening: string;
let digesting: string;
let checking: string;
let writing: string;
let fromStateFiles: string;
let hashing: string;

beforeAll(async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const signer = readSigningKey(String(privateKey.export({ format: 'pem', type: 'pkcs8' }))) ?? undefined;
  await writeFile(path('key.pem'), publicKey.export({ format: 'pem', type: 'spki' }));
  written = await buildArchive(sampleHistory, path('sample.klstate'), { signer });
  const page = await readFile(new URL('../../docs/archive-format.md', import.meta.url), 'utf8');
  const scripts = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, script]) => script ?? '');
  expect(scripts).toHaveLength(5);
  [opening = '', digesting = '', checking = '', writing = '', fromStateFiles = ''] = scripts;
  hashing = /^```bash\n(.*?)^```$/ms.exec(page)?.[1] ?? '';
  mkdirSync(path('unpacked'));
  run(opening);
});

/** Runs commands of the page in a directory, that of the unpacked archive unless told otherwise. */
function run(script: string, directory = 'unpacked', shell = ['bash', '-euo', 'pipefail']): string {
  const [program = '', ...options] = shell;
  return execFileSync(program, [...options, '-c', script], {
    cwd: path(directory),
    env: {
      ...process.env,
      F: path('sample.klstate'),
      KEY: path('key.pem'),
      OUT: path('by-hand.klstate'),
      STATES: path('states'),
      LABEL: 'by-hand',
    },
    encoding: 'utf8',
  });
}

describe('the commands of docs/archive-format.md', () => {
  it('open an archive, check its sums and list its versions', async () => {
    const printed = run(opening);
    expect(printed).toContain('versions/9223372036854775806.tfstate.json: OK\n');
    expect(printed).toContain('2\t2026-03-02T10:00:02.000118Z\t\thttp_backend\n');
    expect(await readFile(path('unpacked/versions/10.tfstate.json'), 'utf8')).toBe(
      sampleHistory.versions[2]?.rawState,
    );
  });

  it('reproduce the history digest', () => {
    expect(run(digesting)).toBe(`${written.historyDigest}\n`);
  });

  it('check the attestation with openssl, and refuse another signature, statement or sum', async () => {
    const printed = run(checking);
    expect(printed).toContain('Signature Verified Successfully\nSHA256SUMS: OK\nsupport@example.org\n');
    const kept = await readFile(path('unpacked/attestation.dsse.json'), 'utf8');
    const { payload, payloadType, signatures } = JSON.parse(kept);
    const [signature] = signatures;
    const wrong = Buffer.from(signature.sig, 'base64').fill(1, 3, 4).toString('base64');
    const other = Buffer.from(payload, 'base64').toString().replace('support@', 'nobody@');
    for (const changes of [
      { signatures: [{ ...signature, sig: wrong }] },
      { signatures: [{ ...signature, keyid: 'another' }] },
      { payload: Buffer.from(other).toString('base64') },
      { payloadType: 'text/plain' },
    ]) {
      const changed = JSON.stringify({ payload, payloadType, signatures, ...changes });
      await writeFile(path('unpacked/attestation.dsse.json'), changed);
      expect(() => run(checking)).toThrow();
    }
    await writeFile(path('unpacked/attestation.dsse.json'), kept);
    const sums = await readFile(path('unpacked/SHA256SUMS'));
    await writeFile(path('unpacked/SHA256SUMS'), Buffer.concat([sums, Buffer.from('\n')]));
    expect(() => run(checking)).toThrow();
    await writeFile(path('unpacked/SHA256SUMS'), sums);
  });

  it('make an archive that the reader accepts, and the same one from the same members', async () => {
    run(writing);
    const original = await verifyArchive(path('sample.klstate'));
    const byHand = await verifyArchive(path('by-hand.klstate'));
    expect(byHand.historyDigest).toBe(original.historyDigest);
    expect(byHand.versionDigests).toEqual(original.versionDigests);

    const exportRecord = await readFile(path('unpacked/export.json'), 'utf8');
    await writeFile(path('unpacked/export.json'), exportRecord.replace('support@', 'other@'));
    run(writing);
    expect((await verifyArchive(path('by-hand.klstate'))).exportRecord.exportedBy).toBe('other@example.org');
  });

  it('reproduce the history digest whatever the order of the tags', async () => {
    const { tags } = JSON.parse(await readFile(path('unpacked/tags.json'), 'utf8'));
    mkdirSync(path('unsorted'));
    run(opening, 'unsorted');
    await writeFile(path('unsorted/tags.json'), JSON.stringify({ tags: tags.reverse() }));
    expect(run(digesting, 'unsorted')).toBe(`${written.historyDigest}\n`);
  });

  it('compute the hash of a resource as the page says it', () => {
    const [, expected = ''] = /^# ([0-9a-f]{64})$/m.exec(hashing) ?? [];
    expect(run(hashing)).toBe(`${expected}  -\n`);
  });

  it('make an archive of state files that a double, a lineage column or one line would spoil', async () => {
    mkdirSync(path('states'));
    const states: [serial: string, lineage: string, indentation: number][] = [
      ['9007199254740993', '7C1E5D1A-3B52-4C8E-9A44-0D8F2B6C9E10', 2],
      ['9007199254740992', '', 0],
      ['10', 'of-nobody', 2],
      ['9', '', 2],
    ];
    for (const [index, [serial, lineage, indentation]] of states.entries()) {
      const outputs = { serial: { value: 7, type: 'number' } };
      const document = {
        version: 4,
        terraform_version: '1.9.8',
        serial: 'SERIAL',
        lineage,
        outputs,
        resources: [],
      };
      const text = JSON.stringify(document, null, indentation).replace('"SERIAL"', serial);
      await writeFile(path(`states/${index}.tfstate`), text);
    }
    for (const [name, shell] of [
      ['by-bash', ['bash', '-euo', 'pipefail']],
      ['by-sh', ['sh', '-eu']],
    ] as const) {
      mkdirSync(path(name));
      run(fromStateFiles + writing, name, [...shell]);
      const { manifest } = await verifyArchive(path('by-hand.klstate'));
      expect(manifest.versions.map(({ serial }) => serial)).toEqual([
        9n,
        10n,
        9007199254740992n,
        9007199254740993n,
      ]);
      expect(manifest.state.lineage).toBe('7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10');
    }
  });

  it('find one frame with a window of 2 MiB and a checksum in it', () => {
    const printed = run('zstd -lv "$F"');
    expect(printed).toMatch(/# Zstandard Frames: 1\n/);
    expect(printed).toMatch(/Window Size: 2.00 MiB/);
    expect(printed).toMatch(/Check: XXH64/);
  });
});
