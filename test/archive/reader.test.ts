import { createReadStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { readArchiveFile } from '../../src/archive/archive-file.ts';
import { type ArchiveMember, readArchive, verified, verifyArchive } from '../../src/archive/reader.ts';
import { until } from '../support/until.ts';
import { buildArchive, collect, each } from './support/build-archive.ts';
import { summed, takeApart, tarOf, tarred, verdict, withJson, zstd } from './support/handmade.ts';
import { readMembers } from './support/read-members.ts';
import { sampleHistory } from './support/sample-history.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const path = temporaryDirectory();
let file: string;

beforeAll(async () => {
  file = path('sample.klstate');
  await buildArchive(sampleHistory, file);
});

/** The file in pieces, telling when its reader has let go of it. */
function watched(bytes: Uint8Array) {
  const watch = { ended: false };
  async function* source() {
    try {
      for (let at = 0; at < bytes.length; at += 100) yield bytes.subarray(at, at + 100);
    } finally {
      watch.ended = true;
    }
  }
  return { watch, source: source() };
}

describe('reading an archive', () => {
  it('yields its members in their order', async () => {
    const kinds = (await collect(readArchive(createReadStream(file)))).map(({ kind }) => kind);
    expect(kinds).toEqual([
      ...['manifest', 'tags', 'event', 'event', 'event', 'resource', 'resource', 'export'],
      ...['version', 'version', 'version', 'version'],
    ]);
  });

  it('skips what is not read of a version, and verifies it all the same', async () => {
    const firstBytes: number[] = [];
    const archive = await readMembers(file, async (member) => {
      if (member.kind !== 'version' || member.version.serial === 2n) return;
      for await (const chunk of member.content) {
        firstBytes.push(chunk[0] ?? 0);
        break;
      }
    });
    expect(firstBytes).toEqual([0x7b, 0x7b, 0x7b]);
    expect(archive).toEqual(await verifyArchive(file));
  });

  it('refuses to pass off a content that is read too late as an empty one', async () => {
    const members = readArchive(createReadStream(file));
    const versions: Extract<ArchiveMember, { kind: 'version' }>[] = [];
    for await (const member of members) {
      if (member.kind === 'version') versions.push(member);
    }
    for (const { content } of versions) {
      await expect(collect(content)).rejects.toThrow(/after the next was asked for/);
    }
    expect(versions).toHaveLength(4);
  });

  it.each([
    [
      'null when the manifest says nothing',
      { raw_state_text: undefined, zstd_window_log: undefined },
      { rawStateText: null, zstdWindowLog: null },
    ],
    [
      'as the manifest says it',
      { raw_state_text: 'jsonb', zstd_window_log: 10 },
      { rawStateText: 'jsonb', zstdWindowLog: 10 },
    ],
    ['up to the largest window', { zstd_window_log: 27 }, { zstdWindowLog: 27 }],
  ])('gives how it was written: %s', async (_, fields, expected) => {
    const members = await takeApart(await readFile(file));
    const { manifest, warnings } = await verdict(
      zstd(await tarred(summed(withJson(members, 'manifest.json', fields)))),
    );
    expect(manifest).toMatchObject(expected);
    expect(warnings).toEqual([]);
  });

  it('closes the source when the loop is left', async () => {
    const { watch, source } = watched(await readFile(file));
    for await (const member of readArchive(source)) {
      if (member.kind === 'version') break;
    }
    expect(watch.ended).toBe(true);
  });

  it('closes the source when a member cannot be looked at', async () => {
    const { watch, source } = watched(await readFile(file));
    const full = new Error('no space left');
    const look = (member: ArchiveMember) => {
      if (member.kind === 'resource') throw full;
    };
    await expect(verified(readArchive(source), look)).rejects.toBe(full);
    await until(() => watch.ended);
  });

  it('closes the source when the archive is refused', async () => {
    const bytes = await readFile(file);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    const { watch, source } = watched(bytes);
    await expect(collect(readArchive(source))).rejects.toMatchObject({ code: 'ARCHIVE_CORRUPT' });
    expect(watch.ended).toBe(true);
  });

  it('hands on an error of the source unchanged', async () => {
    const lost = new Error('connection lost');
    const bytes = await readFile(file);
    async function* source() {
      yield bytes.subarray(0, 700);
      throw lost;
    }
    await expect(collect(readArchive(source()))).rejects.toBe(lost);
  });

  it('asks no more of the source than its reader needs', async () => {
    const rawState = Buffer.from(
      Uint8Array.from({ length: 4 << 20 }, (_, i) => 32 + ((i * 7919 + (i >> 7)) % 90)),
    );
    const versions = [{ serial: 1n, rawState: rawState.toString() }];
    await buildArchive({ versions }, path('large.klstate'));
    const tar = tarOf(await readFile(path('large.klstate')));
    let asked = 0;
    async function* source() {
      for (let at = 0; at < tar.length; at += 65_536) {
        asked = at;
        yield tar.subarray(at, at + 65_536);
      }
    }
    for await (const member of readArchive(source())) {
      if (member.kind !== 'version') continue;
      for await (const _ of member.content) {
        expect(asked).toBeLessThan(1 << 20);
        break;
      }
      break;
    }
  });
});

describe('verifying a file', () => {
  it('rejects with the reason of the signal', async () => {
    const reason = new Error('shutting down');
    await expect(verifyArchive(file, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  it('says when there is no such file', async () => {
    await expect(verifyArchive(path('nowhere'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('a file that is still being written', () => {
  it('is read as far as it has grown, and to its very end at last', async () => {
    await writeFile(path('growing'), 'abcdefgh');
    const read: string[] = [];
    async function* grown() {
      for (const length of [2, 5]) {
        yield length;
        expect(read.join('')).toHaveLength(length);
      }
    }
    for await (const chunk of readArchiveFile(path('growing'), { grown: grown() })) read.push(String(chunk));
    expect(read).toEqual(['ab', 'cde', 'fgh']);
  });

  it('is truncated when it is shorter than was told', async () => {
    await writeFile(path('short'), (await readFile(file)).subarray(0, 900));
    const verifying = verifyArchive(path('short'), { grown: each([901]) });
    await expect(verifying).rejects.toMatchObject({ code: 'ARCHIVE_TRUNCATED' });
  });

  it('is given up with the error of whoever writes it, or the reason of the signal', async () => {
    const failure = new Error('disk full');
    async function* failing() {
      yield 700;
      throw failure;
    }
    await expect(verifyArchive(file, { grown: failing() })).rejects.toBe(failure);
    const abort = new AbortController();
    async function* waiting() {
      yield 700;
      abort.abort(failure);
      await new Promise(() => {});
    }
    const verifying = verifyArchive(file, { grown: waiting(), signal: abort.signal });
    await expect(verifying).rejects.toBe(failure);
  });
});
