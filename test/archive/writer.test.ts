import { createCipheriv } from 'node:crypto';
import { open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { readArchiveFile } from '../../src/archive/archive-file.ts';
import type { ArchivedEvent, RawState } from '../../src/archive/model.ts';
import { readArchive, verifyArchive } from '../../src/archive/reader.ts';
import { type ArchiveContents, writeArchive } from '../../src/archive/writer.ts';
import { archiveContents, buildArchive, collect, each, type SampleHistory } from './support/build-archive.ts';
import { takeApart, tarOf } from './support/handmade.ts';
import { readMembers } from './support/read-members.ts';
import { sampleHistory } from './support/sample-history.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const path = temporaryDirectory();

/** Two versions that hardly compress, so that the first is in the file before the second is complete. */
const large = { versions: [1n, 2n].map((serial) => ({ serial, rawState: `"${noise(serial, 3 << 20)}"` })) };

/** Everything an archive gives back, raw states as text. */
async function contentsOf(file: string) {
  const found = { events: [] as unknown[], resources: [] as unknown[], raw: [] as [bigint, string][] };
  const verified = await readMembers(file, async (member) => {
    if (member.kind === 'event') found.events.push(member.event);
    if (member.kind === 'resource') found.resources.push(member.resource);
    if (member.kind === 'version') {
      const bytes = Buffer.concat(await collect(member.content));
      expect(bytes).toHaveLength(member.byteLength);
      found.raw.push([member.version.serial, bytes.toString()]);
    }
  });
  return { ...found, verified };
}

describe('an archive that was written', () => {
  it('gives back every version, tag, event, span and raw state as it was put in', async () => {
    const contents = archiveContents(sampleHistory);
    await buildArchive(sampleHistory, path('round-trip.klstate'));
    const { verified, events, resources, raw } = await contentsOf(path('round-trip.klstate'));

    expect(raw).toEqual(sampleHistory.versions.map(({ serial, rawState }) => [serial, rawState]));
    expect(verified.manifest.state).toEqual(contents.state);
    expect(verified.manifest.versions).toEqual(contents.versions);
    expect(verified.exportRecord).toEqual(contents.exportRecord);
    expect(events).toEqual(await collect(contents.events));
    expect(resources).toEqual(await collect(contents.resources ?? each([])));
    expect(verified.counts).toEqual({ versions: 4, tags: 4, events: 3, resources: 2 });
    expect(verified.hasResources).toBe(true);
    expect(verified.warnings).toEqual([]);
  });

  it('holds its tags in the order of Unicode code points', async () => {
    await buildArchive(sampleHistory, path('tags.klstate'));
    const { tags } = await verifyArchive(path('tags.klstate'));
    expect(tags.map(({ tag }) => tag)).toEqual(['Release', 'release 1\nwith a newline', '\uffee', '🚀']);
    expect(new Set(tags)).toEqual(new Set(archiveContents(sampleHistory).tags));
  });

  it('is what the writer says it is', async () => {
    const written = await buildArchive(sampleHistory, path('said.klstate'));
    const verified = await verifyArchive(path('said.klstate'));
    const { size } = await stat(path('said.klstate'));
    expect(written.sizeBytes).toBe(BigInt(size));
    expect(verified).toMatchObject({ ...written });
    expect(written.rawBytes).toBe(
      BigInt(sampleHistory.versions.reduce((sum, { rawState }) => sum + Buffer.byteLength(rawState), 0)),
    );
  });

  it.each([
    ['one version, however long', [3_000_000], 21],
    ['short versions', [1000, 1000, 1000], 21],
    ['few versions, over all of which it reaches', [10, 900_000, 1_400_000], 23],
    ['many versions, over 8 of which it reaches', Array.from({ length: 17 }, (_, i) => i * 33_000), 23],
  ])('is one zstd frame with a checksum and a window that fits: %s', async (what, lengths, windowLog) => {
    const versions = lengths.map((length, i) => ({ serial: BigInt(i), rawState: `"${'z'.repeat(length)}"` }));
    await buildArchive({ versions }, path(`${what}.klstate`));
    const file = await readFile(path(`${what}.klstate`));
    // RFC 8878: magic; a descriptor with nothing but the checksum flag; the exponent of the window above 10.
    expect([...file.subarray(0, 6)]).toEqual([0x28, 0xb5, 0x2f, 0xfd, 0b100, (windowLog - 10) << 3]);
    expect((await verifyArchive(path(`${what}.klstate`))).manifest.zstdWindowLog).toBe(windowLog);
  });

  it.each([
    ['never above 128 MiB', 2 ** 27 - 1, 27],
    ['small again where that does not reach back to the version before', 2 ** 27, 21],
  ])('has a window %s', async (what, longestRawState, windowLog) => {
    await writeArchive({ ...archiveContents(sampleHistory), longestRawState }, path(`${what}.klstate`));
    expect((await readFile(path(`${what}.klstate`)))[5]).toBe((windowLog - 10) << 3);
  });

  it('is readable by its owner alone', async () => {
    await buildArchive(sampleHistory, path('mode.klstate'));
    expect((await stat(path('mode.klstate'))).mode & 0o777).toBe(0o600);
  });

  it('has the same bytes again for the same contents, however they come in pieces', async () => {
    const inPieces = (size: number): ArchiveContents => ({
      ...archiveContents(large),
      rawStates: each(
        large.versions.map(({ serial, rawState }) => {
          const bytes = Buffer.from(rawState);
          const count = Math.ceil(bytes.length / size);
          const pieces = Array.from({ length: count }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
          return { serial, byteLength: bytes.length, content: each(pieces) };
        }),
      ),
    });
    const digests = new Set<string>();
    for (const size of [4 << 20, 1 << 20, 65_536, 999]) {
      digests.add((await writeArchive(inPieces(size), path(`in-${size}.klstate`))).sha256);
    }
    expect(digests.size).toBe(1);
  });

  it('has the same bytes again when its last piece is compressed just as it ends', async () => {
    // Ended a moment earlier, the compressor would close the frame in one block less.
    await buildArchive({ versions: [{ serial: 1n, rawState: '' }] }, path('probe.klstate'));
    const empty = await tarLength(path('probe.klstate'));
    const rawState = 'y'.repeat((1 << 20) - empty);
    const digests = new Set<string>();
    for (const name of ['a', 'b', 'c']) {
      const written = await buildArchive({ versions: [{ serial: 1n, rawState }] }, path(`${name}.klstate`));
      expect((await tarLength(path(`${name}.klstate`))) % (1 << 20)).toBe(0);
      digests.add(written.sha256);
    }
    expect(digests.size).toBe(1);
  });

  it('differs from a second export in nothing but export.json and the sums', async () => {
    const first = await buildArchive(sampleHistory, path('today.klstate'));
    const later = { ...sampleHistory, exportRecord: { exportedAt: '2027-01-01T00:00:00.000000Z' } };
    const second = await buildArchive(later, path('tomorrow.klstate'));
    expect(second.sha256).not.toBe(first.sha256);
    expect(second.historyDigest).toBe(first.historyDigest);
    const [a, b] = await Promise.all(
      ['today.klstate', 'tomorrow.klstate'].map((name) => membersOf(path(name))),
    );
    const differing = [...(a ?? [])]
      .filter(([name, data]) => !b?.get(name)?.equals(data))
      .map(([name]) => name);
    expect(differing).toEqual(['export.json', 'SHA256SUMS']);
  });

  it('may leave the resource spans out', async () => {
    await buildArchive({ ...sampleHistory, resources: null }, path('no-spans.klstate'));
    const verified = await verifyArchive(path('no-spans.klstate'));
    expect(verified.hasResources).toBe(false);
    expect(verified.counts.resources).toBe(0);
  });

  it('takes the place of what stood at the path', async () => {
    await writeFile(path('taken.klstate'), 'something else');
    const written = await buildArchive(sampleHistory, path('taken.klstate'));
    expect((await verifyArchive(path('taken.klstate'))).sha256).toBe(written.sha256);
  });
});

describe('progress', () => {
  it('counts whole versions and their bytes', async () => {
    const seen: unknown[] = [];
    const history = { versions: [1n, 2n].map((serial) => ({ serial, rawState: `{"serial": ${serial}}` })) };
    await buildArchive(history, path('progress.klstate'), { onProgress: (progress) => seen.push(progress) });
    expect(seen).toEqual([
      { versions: 1, bytes: 13n },
      { versions: 2, bytes: 26n },
    ]);
  });
});

describe('an attempt that fails', () => {
  const failing: [string, (contents: ArchiveContents) => Partial<ArchiveContents>, object][] = [
    [
      'raw states in another order',
      () => ({ rawStates: rawStatesOf([2n, 0n, 10n, 9223372036854775806n]) }),
      { code: 'ARCHIVE_INCONSISTENT', member: 'versions/2.tfstate.json' },
    ],
    [
      'a raw state missing at the end',
      () => ({ rawStates: rawStatesOf([0n, 2n, 10n]) }),
      { code: 'ARCHIVE_INCONSISTENT', message: 'the raw state of serial 9223372036854775806 is missing' },
    ],
    [
      'a raw state too many',
      () => ({ rawStates: rawStatesOf([0n, 2n, 10n, 9223372036854775806n, 5n]) }),
      { code: 'ARCHIVE_INCONSISTENT', member: 'versions/5.tfstate.json' },
    ],
    [
      'a raw state shorter than announced',
      () => ({ rawStates: each([{ serial: 0n, byteLength: 7, content: each([Buffer.from('{}')]) }]) }),
      { code: 'ARCHIVE_INCONSISTENT', member: 'versions/0.tfstate.json' },
    ],
    [
      'a raw state longer than announced',
      () => ({ rawStates: each([{ serial: 0n, byteLength: 1, content: each([Buffer.from('{}')]) }]) }),
      { code: 'ARCHIVE_INCONSISTENT', member: 'versions/0.tfstate.json' },
    ],
    [
      'versions that do not ascend',
      ({ versions }) => ({ versions: [...versions].reverse() }),
      { code: 'ARCHIVE_INCONSISTENT', member: 'manifest.json' },
    ],
    [
      'a tag on a serial that is not there',
      ({ tags }) => ({ tags: tags.map((tag) => ({ ...tag, serial: 77n })) }),
      { code: 'ARCHIVE_INCONSISTENT', message: expect.stringMatching(/tag "Release" names serial 77/) },
    ],
    [
      'an event with text PostgreSQL cannot hold',
      () => ({ events: each([event({ actor: 'half a pair \ud83d' })]) }),
      { code: 'ARCHIVE_INCONSISTENT', member: 'events.ndjson' },
    ],
    ['a source that throws', () => ({ rawStates: broken() }), { message: 'the database went away' }],
  ];

  it.each(failing)('says so and leaves nothing behind: %s', async (what, change, error) => {
    const contents = archiveContents(sampleHistory);
    const file = path(`${what}.klstate`);
    await expect(writeArchive({ ...contents, ...change(contents) }, file)).rejects.toMatchObject(error);
    expect(await leftovers(what)).toEqual([]);
  });

  it('leaves the archive that was there before', async () => {
    const before = await buildArchive(sampleHistory, path('kept.klstate'));
    const contents = { ...archiveContents(sampleHistory), rawStates: broken() };
    await expect(writeArchive(contents, path('kept.klstate'))).rejects.toThrow('the database went away');
    expect((await verifyArchive(path('kept.klstate'))).sha256).toBe(before.sha256);
    expect(await leftovers('kept')).toEqual(['kept.klstate']);
  });

  it('ends with the reason of the signal, even while a source keeps it waiting, and leaves nothing behind', async () => {
    const abort = new AbortController();
    const reason = new Error('the caller left');
    async function* stuck(): AsyncGenerator<RawState, void, void> {
      abort.abort(reason);
      await new Promise(() => {});
      yield* [];
    }
    const contents = { ...archiveContents(sampleHistory), rawStates: stuck() };
    const writing = writeArchive(contents, path('aborted.klstate'), { signal: abort.signal });
    await expect(writing).rejects.toBe(reason);
    expect(await leftovers('aborted')).toEqual([]);
  });

  it('takes nothing more from a raw state once the signal was given while it kept the writing waiting', async () => {
    const abort = new AbortController();
    const reason = new Error('the caller left');
    const goesOn = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<string>();
    async function* content() {
      let taken = 'the first piece';
      try {
        yield Buffer.from('{');
        abort.abort(reason);
        await goesOn.promise;
        yield Buffer.from(' ');
        taken = 'both pieces';
        yield Buffer.from('}');
      } finally {
        ended.resolve(taken);
      }
    }
    const rawStates = each([{ serial: 0n, byteLength: 3, content: content() }]);
    const contents = { ...archiveContents(sampleHistory), rawStates };
    const writing = writeArchive(contents, path('late.klstate'), { signal: abort.signal });
    await expect(writing).rejects.toBe(reason);
    expect(await leftovers('late')).toEqual([]);
    goesOn.resolve();
    expect(await ended.promise).toBe('the first piece');
  });

  it('ends the sources', async () => {
    let ended = false;
    async function* watched(): AsyncGenerator<RawState, void, void> {
      try {
        yield { serial: 5n, byteLength: 2, content: each([Buffer.from('{}')]) };
      } finally {
        ended = true;
      }
    }
    const contents = { ...archiveContents(sampleHistory), rawStates: watched() };
    await expect(writeArchive(contents, path('ended.klstate'))).rejects.toMatchObject({
      code: 'ARCHIVE_INCONSISTENT',
    });
    expect(ended).toBe(true);
  });

  it('says when there is no such directory', async () => {
    await expect(buildArchive(sampleHistory, path('nowhere/a.klstate'))).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });
});

describe('the verification of an archive', () => {
  it('goes on while the contents are still coming', async () => {
    const firstIsRead = Promise.withResolvers<void>();
    const contents = archiveContents(large);
    async function* rawStates() {
      for await (const rawState of contents.rawStates) {
        const waiting = rawState.serial === 1n ? Promise.resolve() : firstIsRead.promise;
        yield { ...rawState, content: withPause(rawState.content, 2 << 20, waiting) };
      }
    }
    const read: bigint[] = [];
    await writeArchive({ ...contents, rawStates: rawStates() }, path('behind.klstate'), {
      check: async (file, grown) => {
        await using members = readArchive(readArchiveFile(file, { grown }));
        for (;;) {
          const next = await members.next();
          if (next.done) return next.value;
          if (next.value.kind !== 'version') continue;
          await collect(next.value.content);
          read.push(next.value.version.serial);
          firstIsRead.resolve();
        }
      },
    });
    expect(read).toEqual([1n, 2n]);
    expect(await leftovers('behind')).toEqual(['behind.klstate']);
  });

  it('is told ascending lengths that the file has, its own at last', async () => {
    const lengths: number[] = [];
    const written = await buildArchive(large, path('lengths.klstate'), {
      check: async (file, grown) => {
        for await (const length of grown) {
          expect((await stat(file)).size).toBeGreaterThanOrEqual(length);
          lengths.push(length);
        }
        return verifyArchive(file);
      },
    });
    expect(lengths).toEqual([...new Set(lengths)].sort((a, b) => a - b));
    expect(lengths.length).toBeGreaterThan(1);
    expect(BigInt(lengths.at(-1) ?? 0)).toBe(written.sizeBytes);
  });

  it.each([
    ['while a source keeps the writing waiting', true],
    ['when the file is complete', false],
  ])('ends the writing with its error: %s', async (_, isStuck) => {
    const refusal = new Error('no such document');
    const contents = archiveContents(sampleHistory);
    const rawStates = isStuck ? stuckBehindFirst(sampleHistory) : contents.rawStates;
    const writing = writeArchive({ ...contents, rawStates }, path('refused.klstate'), {
      check: async (_, grown) => {
        if (!isStuck) await collect(grown);
        throw refusal;
      },
    });
    await expect(writing).rejects.toBe(refusal);
    expect(await leftovers('refused')).toEqual([]);
  });

  it('learns why the writing failed', async () => {
    const learnt = Promise.withResolvers<unknown>();
    const contents = { ...archiveContents(sampleHistory), rawStates: broken() };
    const writing = writeArchive(contents, path('learnt.klstate'), {
      check: async (file, grown) => {
        const verified = verifyArchive(file, { grown });
        verified.catch(learnt.resolve);
        return verified;
      },
    });
    const failure = await writing.catch((error) => error);
    expect(failure).toMatchObject({ message: 'the database went away' });
    expect(await learnt.promise).toBe(failure);
  });

  it.each([
    ['while the contents are coming', true],
    ['when the file is complete', false],
  ])('is not waited for once the signal is given: %s', async (_, isStuck) => {
    const reason = new Error('the caller left');
    const abort = new AbortController();
    const contents = archiveContents(large);
    const rawStates = isStuck ? stuckBehindFirst(large) : contents.rawStates;
    const writing = writeArchive({ ...contents, rawStates }, path('endless.klstate'), {
      signal: abort.signal,
      check: async (_, grown) => {
        for await (const length of grown) if (isStuck && length > 0) break;
        abort.abort(reason);
        return new Promise(() => {});
      },
    });
    await expect(writing).rejects.toBe(reason);
    expect(await leftovers('endless')).toEqual([]);
  });

  it('does not vouch for another file', async () => {
    await buildArchive(large, path('other.klstate'));
    const check = () => verifyArchive(path('other.klstate'));
    await expect(buildArchive(sampleHistory, path('mistaken.klstate'), { check })).rejects.toMatchObject({
      code: 'ARCHIVE_CORRUPT',
    });
    expect(await leftovers('mistaken')).toEqual([]);
  });
});

describe('a disk that fails', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each(['read', 'writeFile', 'sync'])(
    'is told as it is, and leaves nothing behind: %s',
    async (operation) => {
      const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      const probe = await open(path('probe'), 'w');
      jest.spyOn(Object.getPrototypeOf(probe), operation).mockRejectedValue(full as never);
      await expect(buildArchive(large, path(`${operation}.klstate`))).rejects.toBe(full);
      expect(await leftovers(operation)).toEqual([]);
      await probe.close();
    },
  );

  it('is found out when it keeps another byte than it was given', async () => {
    const probe = await open(path('probe'), 'w');
    const handles = Object.getPrototypeOf(probe);
    const write = Reflect.get(handles, 'writeFile');
    jest.spyOn(handles, 'writeFile').mockImplementation(function (this: unknown, ...call: unknown[]) {
      const [bytes, ...rest] = call as [Uint8Array];
      const changed = Buffer.from(bytes);
      changed[changed.length >> 1] = (changed[changed.length >> 1] ?? 0) ^ 1;
      return Reflect.apply(write, this, [changed, ...rest]);
    } as never);
    await expect(buildArchive(large, path('changed.klstate'))).rejects.toMatchObject({
      code: 'ARCHIVE_CORRUPT',
    });
    expect(await leftovers('changed')).toEqual([]);
    await probe.close();
  });
});

it('sweeps up what a killed attempt left at the same path', async () => {
  for (const part of ['partial', 'events.partial', 'resources.partial']) {
    await writeFile(path(`swept.klstate.${part}`), 'left over');
  }
  await buildArchive(sampleHistory, path('swept.klstate'));
  expect(await leftovers('swept')).toEqual(['swept.klstate']);
});

async function leftovers(prefix: string): Promise<string[]> {
  return (await readdir(path())).filter((name) => name.startsWith(`${prefix}.`));
}

function rawStatesOf(serials: bigint[]): AsyncIterable<RawState> {
  return each(serials.map((serial) => ({ serial, byteLength: 2, content: each([Buffer.from('{}')]) })));
}

async function* stuckBehindFirst(history: SampleHistory): AsyncGenerator<RawState, void, void> {
  for await (const rawState of archiveContents(history).rawStates) {
    yield rawState;
    await new Promise(() => {});
  }
}

/** The same bytes, and a pause behind so many of them. */
async function* withPause(
  source: AsyncIterable<Uint8Array>,
  length: number,
  pause: Promise<void>,
): AsyncGenerator<Uint8Array, void, void> {
  const bytes = Buffer.concat(await collect(source));
  yield bytes.subarray(0, length);
  await pause;
  yield bytes.subarray(length);
}

/** Hexadecimal digits without a pattern, the same for the same seed. */
function noise(seed: bigint, length: number): string {
  const cipher = createCipheriv('aes-256-ctr', Buffer.alloc(32, String(seed)), Buffer.alloc(16));
  return cipher.update(Buffer.alloc(length / 2)).toString('hex');
}

async function* broken(): AsyncGenerator<RawState, void, void> {
  yield { serial: 0n, byteLength: 2, content: each([Buffer.from('{}')]) };
  throw new Error('the database went away');
}

function event(fields: Partial<ArchivedEvent>): ArchivedEvent {
  return {
    id: '00000002-0000-4000-8000-000000000000',
    kind: 'state_write',
    serial: null,
    actor: null,
    payload: '{}',
    createdAt: '2026-03-02T10:00:00.000118Z',
    ...fields,
  };
}

async function tarLength(file: string): Promise<number> {
  return tarOf(await readFile(file)).length;
}

async function membersOf(file: string): Promise<Map<string, Buffer>> {
  return new Map((await takeApart(await readFile(file))).map(({ name, data }) => [name, data]));
}
