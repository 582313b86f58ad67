import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { verifyArchive } from '../../src/archive/reader.ts';
import type { WrittenArchive } from '../../src/archive/writer.ts';
import { buildArchive } from './support/build-archive.ts';
import { sampleHistory } from './support/sample-history.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const path = temporaryDirectory();
let written: WrittenArchive;
let opening: string;
let digesting: string;
let writing: string;

beforeAll(async () => {
  written = await buildArchive(sampleHistory, path('sample.klstate'));
  const page = await readFile(new URL('../../docs/archive-format.md', import.meta.url), 'utf8');
  const scripts = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, script]) => script ?? '');
  expect(scripts).toHaveLength(4);
  [opening = '', digesting = '', writing = ''] = scripts;
  mkdirSync(path('unpacked'));
  run(opening);
});

/** Runs commands of the page in the directory of the unpacked archive. */
function run(script: string): string {
  return execFileSync('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: path('unpacked'),
    env: { ...process.env, F: path('sample.klstate'), OUT: path('by-hand.klstate') },
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

  it('find one frame of 128 MiB with a checksum in it', () => {
    const printed = run('zstd -lv "$F"');
    expect(printed).toMatch(/# Zstandard Frames: 1\n/);
    expect(printed).toMatch(/Window Size: 128 MiB/);
    expect(printed).toMatch(/Check: XXH64/);
  });
});
