import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { verifyArchive } from '../../src/archive/reader.ts';
import { writeArchive } from '../../src/archive/writer.ts';
import { buildHistory } from '../../src/kl/built-history.ts';
import { kl, klJson } from './support/kl.ts';

const GOLDEN = fileURLToPath(new URL('../archive/golden/v1.klstate', import.meta.url));
const DOCUMENTS = fileURLToPath(new URL('../fixtures/terraform-history/', import.meta.url));

let directory: string;
/** An archive of the ten documents that Terraform wrote, with a tag. */
let sample: string;
beforeAll(async () => {
  const made = await mkdtemp(join(tmpdir(), 'kl-sample-'));
  sample = join(made, 'n.klstate');
  await klJson(['archive', 'build', DOCUMENTS, '--name', 'demo/network', '-o', sample, '--tag', 'release=7']);
});
afterAll(() => rm(dirname(sample), { recursive: true }));
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kl-offline-'));
});
afterEach(() => rm(directory, { recursive: true }));

const call = (...args: string[]) => kl(args, { cwd: directory });
const json = <Result = Record<string, unknown>>(...args: string[]) =>
  klJson<Result>(args, { cwd: directory });
const at = (name: string) => join(directory, name);

/** Has the sample as `n.klstate`. */
const haveSample = () => copyFile(sample, at('n.klstate'));

/** The same archive as a bare tar, in which a byte can be damaged at a known place. */
async function asTar(): Promise<Buffer> {
  await promisify(execFile)('zstd', ['-dq', at('n.klstate'), '-o', at('n.tar')]);
  return readFile(at('n.tar'));
}

describe('kl archive inspect', () => {
  test('tells what an archive says of itself, at once, and that nothing was verified', async () => {
    await haveSample();
    const bytes = await asTar();
    // Nothing behind the first members is looked at. Compressed, all of so small an archive is one block.
    await writeFile(at('cut.klstate'), bytes.subarray(0, bytes.length / 2));
    const { exitCode, stdout, stderr } = await call('archive', 'inspect', 'cut.klstate');
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('Nothing was verified')]);
    expect(stdout).toMatch(/^State +demo\/network$/m);
    expect(stdout).toMatch(/^Versions +10, serial 1 to 10$/m);
    expect(await json('archive', 'inspect', 'cut.klstate')).toMatchObject({
      verified: false,
      currentSerial: '10',
    });
  });

  test('lists versions, tags, events and resources, with nothing in them that a terminal obeys, and no payload', async () => {
    const lists = ['--versions', '--tags', '--events', '--resources'];
    const { stdout } = await call('archive', 'inspect', GOLDEN, ...lists);
    expect(stdout).toMatch(/^9223372036854775806 .*Zoë/m);
    expect(stdout).toContain('release 1\\u{a}with a newline');
    expect(stdout).toContain('state_rollback');
    expect(stdout).not.toMatch(/[^\n\P{Cc}]/u);
    const value = await json<{ events: object[] }>('archive', 'inspect', GOLDEN, ...lists);
    expect(value.events.map((event) => Object.keys(event))).toContainEqual([
      'id',
      'kind',
      'serial',
      'actor',
      'createdAt',
    ]);
  });

  test('shows no secret of a state', async () => {
    await haveSample();
    const { stdout } = await call(
      'archive',
      'inspect',
      'n.klstate',
      '--versions',
      '--tags',
      '--events',
      '--resources',
      '--format',
      'json',
    );
    const last = JSON.parse(await readFile(join(DOCUMENTS, '010.tfstate'), 'utf8'));
    const ids = last.resources.flatMap(({ instances }: { instances: { attributes: { id: string } }[] }) =>
      instances.map(({ attributes }) => attributes.id),
    );
    for (const id of ids) expect(stdout).not.toContain(id);
  });
});

describe('kl archive verify', () => {
  test('says complete and valid apart, and ends with 0', async () => {
    await haveSample();
    const { exitCode, stdout } = await call('archive', 'verify', 'n.klstate', GOLDEN);
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Complete +yes.*\nValid +yes/m)]);
  });

  test('names the member, the serial, how many versions stand before the damage, and what to do', async () => {
    await haveSample();
    const tar = await asTar();
    const place = tar.indexOf('versions/4.tfstate.json') + 512 + 100;
    tar.writeUInt8(tar.readUInt8(place) ^ 1, place);
    await writeFile(at('damaged.klstate'), tar);
    const { exitCode, stdout } = await call('archive', 'verify', 'damaged.klstate', '--format', 'json');
    expect(exitCode).toBe(5);
    // Only the sums at the end tell a changed byte.
    expect(JSON.parse(stdout)).toEqual([
      {
        file: 'damaged.klstate',
        complete: false,
        valid: false,
        findings: [
          {
            severity: 'FATAL',
            code: 'ARCHIVE_CORRUPT',
            member: 'versions/4.tfstate.json',
            serial: '4',
            versionsBefore: 3,
            message: expect.stringContaining('SHA-256'),
            advice: expect.stringContaining('again'),
          },
        ],
      },
    ]);
    await writeFile(at('cut.klstate'), tar.subarray(0, tar.indexOf('versions/4.tfstate.json') + 1000));
    const cut = await json<never>('archive', 'verify', 'cut.klstate').catch((error: Error) => error.message);
    expect(cut).toContain('ended with 5');
    expect((await call('archive', 'verify', 'cut.klstate')).stdout).toMatch(
      /^FATAL {2}ARCHIVE_TRUNCATED at serial 4: [\s\S]*3 versions stood before it, unproven/m,
    );
  });

  test('tells a whole archive with a document that no import takes from a damaged one', async () => {
    await haveSample();
    await promisify(execFile)(
      'sh',
      [
        '-c',
        `
      set -e; mkdir x; zstd -dc n.klstate | tar -x -C x; cd x
      echo '{"version": 3}' > versions/2.tfstate.json
      names=$(sed 's/.*  //' SHA256SUMS); sha256sum $names > SHA256SUMS
      tar --format=ustar --mode=0600 --owner=0 --group=0 --numeric-owner --mtime=@0 -c $names SHA256SUMS > ../odd.klstate
    `,
      ],
      { cwd: directory },
    );
    const { exitCode, stdout } = await call('archive', 'verify', 'odd.klstate');
    expect(exitCode).toBe(5);
    expect(stdout).toMatch(/^Complete +yes[^\n]*\nValid +NO/m);
    expect(stdout).toMatch(/^ERROR {2}UNSUPPORTED_STATE_DOCUMENT at serial 2/m);
    expect((await call('archive', 'extract', 'odd.klstate', '--version', '2')).stdout).toBe(
      '{"version": 3}\n',
    );
  });

  test('ends with 2 where there is no such file, and verifies the others', async () => {
    const { exitCode, stdout } = await call('archive', 'verify', 'no-such-file', GOLDEN);
    expect([exitCode, stdout]).toEqual([2, expect.stringMatching(/There is no file[\s\S]*Complete +yes/)]);
  });
});

describe('kl archive extract', () => {
  test('gives one raw state byte for byte, named by serial, @N, tag, id or current', async () => {
    await haveSample();
    const { versions } = await json<{ versions: { id: string }[] }>(
      'archive',
      'inspect',
      'n.klstate',
      '--versions',
    );
    const references = { '7': 7, '@0': 10, '@1': 9, release: 7, current: 10, [versions[2]?.id ?? '']: 3 };
    for (const [reference, serial] of Object.entries(references)) {
      const { stdout } = await call('archive', 'extract', 'n.klstate', '--version', reference);
      expect(stdout).toBe(
        await readFile(join(DOCUMENTS, `${String(serial).padStart(3, '0')}.tfstate`), 'utf8'),
      );
    }
    const missing = await call('archive', 'extract', 'n.klstate', '--version', 'no-such-tag');
    expect([missing.exitCode, missing.stdout]).toEqual([3, '']);
  });

  test('writes a file for its owner alone, and replaces none unless forced to', async () => {
    await haveSample();
    expect((await call('archive', 'extract', 'n.klstate', '-o', 's.tfstate')).exitCode).toBe(0);
    expect((await stat(at('s.tfstate'))).mode & 0o777).toBe(0o600);
    expect((await call('archive', 'extract', 'n.klstate', '-o', 's.tfstate')).exitCode).toBe(3);
    expect((await call('archive', 'extract', 'n.klstate', '-o', 's.tfstate', '--force')).exitCode).toBe(0);
    expect((await readdir(directory)).sort()).toEqual(['n.klstate', 's.tfstate']);
  });

  test('gives nothing of a damaged archive out, and what it still holds only as unproven', async () => {
    await haveSample();
    const tar = await asTar();
    await writeFile(at('cut.klstate'), tar.subarray(0, tar.indexOf('versions/4.tfstate.json') + 1000));
    const plain = await call('archive', 'extract', 'cut.klstate', '--version', '3');
    expect([plain.exitCode, plain.stdout]).toEqual([5, '']);
    const salvaged = await call('archive', 'extract', 'cut.klstate', '--version', '3', '--salvage');
    expect([salvaged.exitCode, salvaged.stderr]).toEqual([5, expect.stringContaining('unproven')]);
    expect(salvaged.stdout).toBe(await readFile(join(DOCUMENTS, '003.tfstate'), 'utf8'));
    const beyond = await call('archive', 'extract', 'cut.klstate', '--salvage');
    expect([beyond.stdout, beyond.stderr]).toEqual([
      '',
      expect.stringContaining('3 versions, serial 1 to 3'),
    ]);
    const whole = await call('archive', 'extract', 'n.klstate', '--salvage');
    expect([whole.exitCode, whole.stderr]).toEqual([0, expect.not.stringContaining('unproven')]);
  });
});

describe('kl archive diff', () => {
  test('names resources and attributes that differ, and ends with 1; with 0 where nothing does', async () => {
    await haveSample();
    const { exitCode, stdout } = await call('archive', 'diff', 'n.klstate@3', 'n.klstate@4');
    expect(exitCode).toBe(1);
    expect(stdout).toContain('- terraform_data.web[1]\n');
    const same = await call('archive', 'diff', 'n.klstate@4', 'n.klstate@4');
    expect([same.exitCode, same.stdout]).toEqual([
      0,
      expect.stringContaining('No resource and no output differs'),
    ]);
    expect((await call('archive', 'diff', 'n.klstate', 'n.klstate')).exitCode).toBe(0);
    // Trouble is never taken for a difference.
    expect((await call('archive', 'diff', 'n.klstate', at('no-such-file'))).exitCode).not.toBe(1);
  });

  test('says where two histories part, and when one is the beginning of the other', async () => {
    await haveSample();
    await mkdir(at('older'));
    for (const serial of [1, 2, 3]) {
      const name = `00${serial}.tfstate`;
      await copyFile(join(DOCUMENTS, name), at(`older/${name}`));
      const { atimeNs, mtimeNs } = await stat(join(DOCUMENTS, name), { bigint: true });
      await utimes(at(`older/${name}`), Number(atimeNs) / 1e9, Number(mtimeNs / 1_000_000_000n));
    }
    const csv = ['file,created_at', ...[1, 2, 3].map((n) => `00${n}.tfstate,2026-01-0${n}T00:00:00Z`)].join(
      '\n',
    );
    await writeFile(at('times.csv'), csv);
    await json(
      'archive',
      'build',
      'older',
      '--name',
      'demo/network',
      '-o',
      'a.klstate',
      '--manifest',
      'times.csv',
    );
    await copyFile(join(DOCUMENTS, '004.tfstate'), at('older/004.tfstate'));
    await writeFile(at('times.csv'), `${csv}\n004.tfstate,2026-01-04T00:00:00Z\n`);
    await json(
      'archive',
      'build',
      'older',
      '--name',
      'demo/network',
      '-o',
      'b.klstate',
      '--manifest',
      'times.csv',
    );
    expect((await call('archive', 'diff', 'a.klstate', 'b.klstate')).stdout).toContain(
      'a.klstate is the beginning of b.klstate, which has 1 more version, serial 4 to 4',
    );
    expect((await call('archive', 'diff', 'b.klstate', 'a.klstate')).stdout).toContain(
      'a.klstate is the beginning of b',
    );
    expect((await call('archive', 'diff', 'a.klstate', 'n.klstate')).stdout).toContain('part at serial 1');
  });

  test('shows no value that Terraform marked as sensitive, or that is one by its name, and no number rounded', async () => {
    const document = (serial: number, attributes: object, sensitive: string, secret: string) =>
      JSON.stringify({
        version: 4,
        terraform_version: '1.11.4',
        serial,
        lineage: '1ca0929b-642b-022f-3ebf-40af08ad2b92',
        outputs: { shown: { value: `o${serial}`, type: 'string', sensitive: true } },
        resources: [
          {
            mode: 'managed',
            type: 'aws_db_instance',
            name: 'main',
            provider: 'provider["registry.terraform.io/hashicorp/aws"]',
            instances: [
              {
                schema_version: 0,
                attributes: {
                  ...attributes,
                  marked: sensitive,
                  nested: { api_token: secret, size: 'NUMBER' },
                },
                sensitive_attributes: [[{ type: 'get_attr', value: 'marked' }]],
              },
            ],
          },
        ],
      }).replace('"NUMBER"', serial === 1 ? '9007199254740993' : '9007199254740995');
    await writeFile(at('1.tfstate'), document(1, { engine: 'pg16', gone: true }, 'hush-one', 'key-one'));
    await writeFile(at('2.tfstate'), document(2, { engine: 'pg17' }, 'hush-two', 'key-two'));
    await json('archive', 'build', '1.tfstate', '2.tfstate', '-o', 's.klstate');
    for (const format of ['table', 'json']) {
      const { stdout } = await call('archive', 'diff', 's.klstate@1', 's.klstate@2', '--format', format);
      for (const secret of ['hush', 'key-', '"o1"', '"o2"']) expect(stdout).not.toContain(secret);
      for (const shown of ['pg16', 'pg17', '9007199254740993', '9007199254740995'])
        expect(stdout).toContain(shown);
    }
    expect((await call('archive', 'diff', 's.klstate@1', 's.klstate@2')).stdout).toMatch(
      /marked: \(sensitive\) -> \(sensitive\)/,
    );
  });
});

describe('kl archive build', () => {
  test('orders by serial, with times of the files, and makes the same history of the same files', async () => {
    await mkdir(at('old'));
    for (const [name, source] of [
      ['z', '001'],
      ['a', '003'],
      ['m', '002'],
    ] as const) {
      await copyFile(join(DOCUMENTS, `${source}.tfstate`), at(`old/${name}.tfstate`));
      await utimes(at(`old/${name}.tfstate`), 1_770_000_000, 1_770_000_000 + Number(source));
    }
    await copyFile(at('old/z.tfstate'), at('old/z2.tfstate'));
    await utimes(at('old/z2.tfstate'), 1_790_000_000, 1_790_000_000);
    await writeFile(at('old/notes.txt'), 'no state');
    const first = await call('archive', 'build', 'old', '--name', 'from/elsewhere', '-o', 'x.klstate');
    expect(first.exitCode).toBe(0);
    expect(first.stderr).toContain('old/z2.tfstate is the same as old/z.tfstate');
    expect(first.stderr).toContain('old/notes.txt is not named like a state file');
    const { manifest, historyDigest } = await verifyArchive(at('x.klstate'));
    expect(manifest.versions.map(({ serial, createdAt }) => [serial, createdAt])).toEqual([
      [1n, '2026-02-02T02:40:01.000000Z'],
      [2n, '2026-02-02T02:40:02.000000Z'],
      [3n, '2026-02-02T02:40:03.000000Z'],
    ]);
    expect(manifest.state).toMatchObject({ label: 'from/elsewhere', currentSerial: 3n });
    await json('archive', 'build', 'old', '--name', 'from/elsewhere', '-o', 'y.klstate');
    expect((await verifyArchive(at('y.klstate'))).historyDigest).toBe(historyDigest);
  });

  test('takes times and writers from a CSV, and tags', async () => {
    await writeFile(
      at('when.csv'),
      'file,created_at,created_by,source\n001.tfstate,2026-03-02T11:00:00.000118+01:00,"Doe, Jane",apply\n',
    );
    await json(
      'archive',
      'build',
      join(DOCUMENTS, '001.tfstate'),
      '-o',
      'one.klstate',
      '--manifest',
      'when.csv',
      '--tag',
      'v=1=1',
    );
    const { manifest, tags } = await verifyArchive(at('one.klstate'));
    expect(manifest.versions[0]).toMatchObject({
      createdAt: '2026-03-02T10:00:00.000118Z',
      createdBy: 'Doe, Jane',
      source: 'apply',
    });
    expect(tags).toEqual([expect.objectContaining({ tag: 'v=1', serial: 1n })]);
  });

  test.each([
    ['shorter', (bytes: Buffer) => bytes.subarray(0, -1)],
    ['longer', (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('\n')])],
    ['other', (bytes: Buffer) => Buffer.from(bytes.toString().replace('1.', '2.'))],
  ])(
    'of a file that is %s when it is written than when it was read is refused, and leaves nothing',
    async (_what, change) => {
      const path = at('1.tfstate');
      await copyFile(join(DOCUMENTS, '001.tfstate'), path);
      const { signal } = new AbortController();
      const request = { label: 'x', files: [path], facts: new Map(), tags: [] };
      const { contents } = await buildHistory(request, signal, () => {});
      await writeFile(path, change(await readFile(path)));
      await expect(writeArchive(contents, at('x.klstate'), { signal })).rejects.toMatchObject({
        code: 'FILE_UNUSABLE',
      });
      expect(await readdir(directory)).toEqual(['1.tfstate']);
    },
  );

  test('says which file cannot be written, and why', async () => {
    const { exitCode, stderr } = await call('archive', 'build', DOCUMENTS, '-o', 'none/x.klstate');
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining('none/x.klstate cannot be written (no such file or directory). (WRITE_FAILED)'),
    ]);
  });

  test('takes a lineage in every spelling that PostgreSQL takes for one', async () => {
    const document = await readFile(join(DOCUMENTS, '001.tfstate'), 'utf8');
    const lineage = '1ca0929b-642b-022f-3ebf-40af08ad2b92';
    const spellings = [lineage, lineage.toUpperCase(), `{${lineage}}`, lineage.replaceAll('-', '')];
    for (const [i, spelling] of spellings.entries()) {
      const text = document.replace(lineage, spelling).replace('"serial": 1', `"serial": ${i + 1}`);
      await writeFile(at(`${i}.tfstate`), text);
    }
    expect(await json('archive', 'build', '.', '-o', 'x.klstate')).toMatchObject({
      lineage,
      versionCount: 4,
    });
  });

  test('refuses files that are not of one history, naming them, and leaves nothing behind', async () => {
    const document = await readFile(join(DOCUMENTS, '001.tfstate'), 'utf8');
    await writeFile(at('a.tfstate'), document);
    await writeFile(
      at('b.tfstate'),
      document.replace('"serial": 1', '"serial": 2').replace('1ca0929b', '2ca0929b'),
    );
    const lineages = await call('archive', 'build', 'a.tfstate', 'b.tfstate', '-o', 'x.klstate');
    expect([lineages.exitCode, lineages.stderr]).toEqual([3, expect.stringContaining('two lineages')]);
    await writeFile(at('b.tfstate'), `${document}\n`);
    const serials = await call('archive', 'build', 'a.tfstate', 'b.tfstate', '-o', 'x.klstate');
    expect([serials.exitCode, serials.stderr]).toEqual([3, expect.stringContaining('both have serial 1')]);
    await writeFile(at('b.tfstate'), '{"version": 4, "serial": ');
    const broken = await call('archive', 'build', 'a.tfstate', 'b.tfstate', '-o', 'x.klstate');
    expect([broken.exitCode, broken.stderr]).toEqual([5, expect.stringContaining('b.tfstate')]);
    expect((await call('archive', 'build', '.', '-o', 'x.klstate', '--tag', 'current=1')).exitCode).toBe(2);
    expect((await readdir(directory)).sort()).toEqual(['a.tfstate', 'b.tfstate']);
  });
});

describe('kl archive redact', () => {
  /** Two versions of a state with a secret in each kind of place. */
  async function buildSecret(): Promise<void> {
    const lineage = '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10';
    for (const serial of [1, 2]) {
      const document = {
        ...{ version: 4, terraform_version: '1.9.8', serial, lineage },
        outputs: { url: { value: 'hunter2-output', type: 'string', sensitive: true } },
        resources: [
          {
            ...{ mode: 'managed', type: 'aws_db_instance', name: 'main' },
            provider: 'provider["registry.terraform.io/hashicorp/aws"]',
            instances: [
              {
                schema_version: 1,
                attributes: { id: 'db-1', size: 'SIZE', endpoint: 'hunter2-attribute' },
                sensitive_attributes: [[{ type: 'get_attr', value: 'endpoint' }]],
                private: Buffer.from('hunter2-private').toString('base64'),
              },
            ],
          },
        ],
      };
      const text = JSON.stringify(document).replace('"SIZE"', '18446744073709551615.10');
      await writeFile(at(`${serial}.tfstate`), text);
    }
    await json(
      'archive',
      'build',
      '1.tfstate',
      '2.tfstate',
      '--name',
      'demo/db',
      '-o',
      'db.klstate',
      '--tag',
      'a=1',
    );
  }

  test('leaves nothing sensitive in any member, everything else as it was, and a mark that no import takes', async () => {
    await buildSecret();
    const made = await json('archive', 'redact', 'db.klstate', '-o', 'given.klstate');
    expect(made).toMatchObject({ redactedValues: 6, versionCount: 2, name: 'demo/db' });
    const tar = await promisify(execFile)('zstd', ['-dqc', at('given.klstate')], { encoding: 'latin1' });
    expect(tar.stdout).not.toContain('hunter2');
    expect(tar.stdout).not.toContain(Buffer.from('hunter2').toString('base64').slice(0, 8));
    const [verified] = await json<object[]>('archive', 'verify', 'given.klstate');
    expect(verified).toMatchObject({ complete: true, valid: true, redacted: true, resourceSpanCount: 0 });
    const { stdout } = await call('archive', 'extract', 'given.klstate', '--version', 'a');
    const original = await readFile(at('1.tfstate'), 'utf8');
    expect(stdout).toBe(
      original
        .replace(/"hunter2-(output|attribute)"/g, '"(redacted)"')
        .replace(/"private":"[^"]*"/, '"private":""'),
    );
    const env = { KL_ENDPOINT: 'http://127.0.0.1:1/graphql', KL_TOKEN: 'x' };
    const refused = await kl(['import', 'archive', 'given.klstate', '--yes'], { cwd: directory, env });
    expect([refused.exitCode, refused.stderr]).toEqual([5, expect.stringContaining('ARCHIVE_REDACTED')]);
    await expect(verifyArchive(at('given.klstate'))).rejects.toMatchObject({ code: 'ARCHIVE_REDACTED' });
    expect((await call('archive', 'inspect', 'given.klstate')).stdout).toMatch(/^Redacted +yes/m);
  });

  test('writes nothing of an archive that is damaged, and replaces no file unless forced to', async () => {
    await buildSecret();
    const bytes = await readFile(at('db.klstate'));
    await writeFile(at('cut.klstate'), bytes.subarray(0, bytes.length - 10));
    const cut = await call('archive', 'redact', 'cut.klstate', '-o', 'given.klstate');
    expect([cut.exitCode, cut.stderr]).toEqual([5, expect.stringContaining('ARCHIVE_TRUNCATED')]);
    const taken = await call('archive', 'redact', 'db.klstate', '-o', 'db.klstate');
    expect([taken.exitCode, taken.stderr]).toEqual([3, expect.stringContaining('FILE_EXISTS')]);
    expect((await readdir(directory)).sort()).toEqual([
      '1.tfstate',
      '2.tfstate',
      'cut.klstate',
      'db.klstate',
    ]);
  });
});
