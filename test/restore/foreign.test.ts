import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { verifyArchive } from '../../src/archive/reader.ts';
import type { Caller } from '../../src/history/states.ts';
import { buildArchive } from '../archive/support/build-archive.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  runExport,
  runImport,
  stateIdOf,
} from '../operations/support/backend.ts';
import { postTerraformHistory } from '../operations/support/histories.ts';
import { readStateRows } from '../support/state-rows.ts';

const FIXTURES = fileURLToPath(new URL('../fixtures/terraform-history', import.meta.url));
const PAGE = new URL('../../docs/archive-format.md', import.meta.url);

/** What the page packs a tar with. */
const PACKING = /zstd -3 --long="[^"]*"/;

let backend: Backend;
let caller: Caller;
let directory: string;

beforeAll(async () => {
  backend = await openBackend();
  caller = await createCaller(backend);
  directory = await mkdtemp(join(tmpdir(), 'foreign-'));
});

afterAll(async () => {
  await backend.close();
  await rm(directory, { recursive: true, force: true });
});

/** Makes an archive of the ten documents as Terraform wrote them, by the commands of the page, packed as told. */
async function packByHand(name: string, compression: string): Promise<string> {
  const scripts = [...readFileSync(PAGE, 'utf8').matchAll(/^```sh\n(.*?)^```$/gms)].map(
    ([, script = '']) => script,
  );
  const [writing = ''] = scripts.filter((script) => PACKING.test(script));
  const [fromFiles = ''] = scripts.filter((script) => script.includes('"$STATES"'));
  const workplace = join(directory, name);
  await mkdir(workplace);
  const path = join(directory, `${name}.klstate`);
  const pack = writing.replace(PACKING, compression);
  execFileSync('bash', ['-euo', 'pipefail', '-c', fromFiles + pack], {
    cwd: workplace,
    env: { ...process.env, STATES: FIXTURES, LABEL: name, OUT: path },
  });
  return path;
}

describe('an archive written by hand from files that Terraform wrote', () => {
  test.each([
    ['zstd', 'zstd -3 --long=27'],
    ['gzip', 'gzip -9'],
    ['no compression', 'cat'],
  ])('is imported, packed with %s, and what jsonb spells otherwise is counted', async (name, compression) => {
    const label = `by-hand-${name.replaceAll(' ', '-')}`;
    const path = await packByHand(label, compression);
    const foreign = await verifyArchive(path);
    const operation = await runImport(backend, caller, path, { allowSharedLineage: true });
    expect(operation).toMatchObject({
      status: 'SUCCEEDED',
      archive: { historyDigest: foreign.historyDigest },
      report: { versions: 10, normalisedVersions: 10, resourceSpans: 25, resourceSpansDerived: true },
    });
    expect(operation.report?.historyDigest).not.toBe(foreign.historyDigest);
    expect(operation.report?.warnings.map(({ code }) => code).sort()).toEqual([
      'RAW_STATES_NORMALISED',
      'RESOURCE_SPANS_DERIVED',
    ]);

    const exported = await runExport(backend, caller, label);
    expect(exported.archive?.historyDigest).toBe(operation.report?.historyDigest);
    const own = await runImport(backend, caller, archivePath(backend, exported), {
      label: `${label}-again`,
      allowSharedLineage: true,
    });
    expect(own.report).toMatchObject({
      normalisedVersions: 0,
      historyDigest: exported.archive?.historyDigest,
    });
  });

  test('gives the raw states, resource rows and outputs that posting the same files gives', async () => {
    const path = await packByHand('as-posted', 'zstd -3');
    const operation = await runImport(backend, caller, path, { allowSharedLineage: true });
    const imported = await readStateRows(backend.database, stateIdOf(operation));
    const stateId = await postTerraformHistory(backend.database, caller, 'posted');
    const posted = await readStateRows(backend.database, stateId);
    const withoutTimes = (rows: readonly Record<string, unknown>[] | undefined) =>
      rows?.map(({ created_at: _, ...row }) => row);
    expect(withoutTimes(imported.resources)).toEqual(withoutTimes(posted.resources));
    expect(withoutTimes(imported.outputs)).toEqual(withoutTimes(posted.outputs));
    expect(imported.state_versions?.map(({ serial, raw_state }) => [serial, raw_state])).toEqual(
      posted.state_versions?.map(({ serial, raw_state }) => [serial, raw_state]),
    );
  });
});

test('a single raw state in another spelling is told by the count, and the dry run foresees it', async () => {
  const document = (serial: bigint, spelling: string) =>
    `{"serial": ${serial}, "lineage": "", "outputs": {}, "version": 4,${spelling}"resources": [], "terraform_version": "1.9.8"}`;
  const path = join(directory, 'one.klstate');
  await buildArchive(
    {
      versions: [
        { serial: 1n, rawState: document(1n, ' ') },
        { serial: 2n, rawState: document(2n, '   ') },
        { serial: 3n, rawState: document(3n, ' ') },
      ],
    },
    path,
  );
  const input = { label: 'one', allowSharedLineage: true };
  const foreseen = await runImport(backend, caller, path, { ...input, dryRun: true });
  const done = await runImport(backend, caller, path, input);
  expect(done.report).toMatchObject({ normalisedVersions: 3 - 2, dryRun: false });
  expect({ ...foreseen.report, dryRun: false }).toEqual(done.report);
});
