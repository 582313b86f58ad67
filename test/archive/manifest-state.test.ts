import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { DEFAULT_ARCHIVE_LIMITS, MEMBER } from '../../src/archive/format.ts';
import { readManifestState } from '../../src/archive/manifest-state.ts';
import type { ArchivedState } from '../../src/archive/model.ts';
import { buildArchive, each } from './support/build-archive.ts';
import { type HandmadeMember, takeApart, tarred, verdict, withMember, zstd } from './support/handmade.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const inDirectory = temporaryDirectory();
let members: HandmadeMember[];
let state: ArchivedState;

beforeAll(async () => {
  const path = inDirectory('long');
  const versions = Array.from({ length: 2000 }, (_, i) => ({
    serial: BigInt(i + 1),
    rawState: '{"version": 4}',
  }));
  await buildArchive(
    { versions, state: { label: 'a "b" {c}, [d]: é', name: 'ws/env/n' }, resources: null },
    path,
  );
  const archive = await readFile(path);
  members = await takeApart(archive);
  state = (await verdict(archive)).manifest.state;
});

async function stateOf(change: (manifest: Record<string, unknown>) => string, chunkBytes = 1000) {
  const changed = withMember(members, MEMBER.manifest, (json) => change(JSON.parse(json.toString())));
  const archive = zstd(await tarred(changed));
  const chunks = Array.from({ length: Math.ceil(archive.length / chunkBytes) }, (_, i) =>
    archive.subarray(i * chunkBytes, (i + 1) * chunkBytes),
  );
  return readManifestState(each(chunks), DEFAULT_ARCHIVE_LIMITS);
}

describe('the state of a manifest too long to be read beside everything else', () => {
  test.each([
    ['as it is written', (manifest: object) => JSON.stringify(manifest, null, 2)],
    ['without white space', (manifest: object) => JSON.stringify(manifest)],
    [
      'behind the versions',
      (manifest: object) => JSON.stringify(Object.fromEntries(Object.entries(manifest).toReversed())),
    ],
    [
      'beside what only looks like it',
      (manifest: object) =>
        JSON.stringify({
          other: { state: { id: 1 }, x: '"state": {}, "\\"' },
          'state"': [{ state: '}' }],
          ...manifest,
        }),
    ],
  ])('is found %s', async (_how, spelled) => {
    expect(await stateOf(spelled)).toEqual(state);
    expect(await stateOf(spelled, 7)).toEqual(state);
  });

  test.each([
    ['of another format', { archive_format: 'other/9' }, 'ARCHIVE_UNSUPPORTED_FORMAT'],
    ['that requires what nobody knows', { required_features: ['time-travel'] }, 'ARCHIVE_UNSUPPORTED_FORMAT'],
    ['without a state', { state: undefined }, 'ARCHIVE_INCONSISTENT'],
    ['that says much of its state', { state: { label: 'x'.repeat(2_000_000) } }, 'ARCHIVE_TOO_LARGE'],
  ])('is refused in an archive %s', async (_what, changes, code) => {
    await expect(stateOf((manifest) => JSON.stringify({ ...manifest, ...changes }))).rejects.toMatchObject({
      code,
    });
  });

  test('is not found in what is no JSON', async () => {
    const cut = (manifest: object) => JSON.stringify(manifest).slice(0, -10);
    await expect(stateOf((manifest) => `[${cut(manifest)}`)).rejects.toMatchObject({ name: 'ArchiveError' });
    await expect(stateOf((manifest) => cut(manifest).replace('"state":', '"state":,'))).rejects.toMatchObject(
      {
        code: 'ARCHIVE_CORRUPT',
      },
    );
  });
});
