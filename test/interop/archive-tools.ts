import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { succeeded } from './processes.ts';
import type { Stage } from './stage.ts';

/** @file Archives opened and made by zstd, tar and sha256sum alone, as docs/archive-format.md promises. */

/** Unpacks an archive into a new directory, in which its sums agree. @returns the directory and its members in order. */
export async function unpack(
  stage: Stage,
  name: string,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<{ readonly directory: string; readonly members: readonly string[] }> {
  const directory = await stage.scratch(name);
  await writeFile(join(directory, 'archive.tar.zst'), bytes);
  await stage.scratch(`${name}/members`);
  const run = async (program: 'zstd' | 'tar' | 'sha256sum', args: readonly string[], where = directory) =>
    succeeded(await stage.processes.run(stage.program(program), args, { directory: where }), program);
  await run('zstd', ['-dq', 'archive.tar.zst', '-o', 'archive.tar']);
  await run('tar', ['-xf', 'archive.tar', '-C', 'members']);
  const { stdout } = await run('tar', ['-tf', 'archive.tar']);
  const members = join(directory, 'members');
  await run('sha256sum', ['-c', '--quiet', 'SHA256SUMS'], members);
  return { directory: members, members: stdout.split('\n').filter((line) => line !== '') };
}

/** The same archive without its resource spans, packed by other hands. */
export async function repackWithoutSpans(
  stage: Stage,
  name: string,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const { directory, members } = await unpack(stage, name, bytes);
  const left = members.filter((member) => member !== 'resources.ndjson');
  const path = (member: string) => join(directory, member);
  const manifest = (await readFile(path('manifest.json'), 'utf8')).replace(/("resources": ?)\d+/, '$10');
  await writeFile(path('manifest.json'), manifest);
  const sum = createHash('sha256').update(manifest).digest('hex');
  const sums = (await readFile(path('SHA256SUMS'), 'utf8'))
    .replace(/^.* {2}resources\.ndjson\n/m, '')
    .replace(/^.* {2}manifest\.json$/m, `${sum}  manifest.json`);
  await writeFile(path('SHA256SUMS'), sums);

  const packed = join(directory, '..', 'repacked.tar');
  const format = ['--format=ustar', '--owner=0', '--group=0', '--numeric-owner', '--mode=0600', '--mtime=@0'];
  const { processes } = stage;
  succeeded(
    await processes.run(stage.program('tar'), ['-cf', packed, ...format, ...left], { directory }),
    'tar',
  );
  succeeded(
    await processes.run(stage.program('zstd'), ['-q', '-3', '--long=27', '--check', packed], { directory }),
    'zstd',
  );
  return new Uint8Array(await readFile(`${packed}.zst`));
}
