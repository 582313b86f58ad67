import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { ArchiveError } from '../../src/archive/errors.ts';
import { buildArchive } from './support/build-archive.ts';
import { gzip, tarOf, verdict } from './support/handmade.ts';
import { sampleHistory } from './support/sample-history.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const path = temporaryDirectory();
let archive: Buffer;

beforeAll(async () => {
  await buildArchive(sampleHistory, path('sample.klstate'));
  archive = await readFile(path('sample.klstate'));
});

/** What a damaged archive is called; `accepted` when nobody noticed. */
async function calls(file: Uint8Array): Promise<string> {
  try {
    await verdict(file, {}, 1 << 16);
    return 'accepted';
  } catch (error) {
    if (error instanceof ArchiveError) return error.code;
    throw error;
  }
}

/** Every so manieth offset below a length, the last one included. */
function offsets(length: number, step: number): number[] {
  const chosen = Array.from({ length: Math.floor(length / step) }, (_, index) => 1 + index * step);
  return [...new Set([...chosen, length - 1])];
}

describe('an archive that was cut', () => {
  it('is ARCHIVE_TRUNCATED wherever it was', async () => {
    for (const length of offsets(archive.length, 11)) {
      expect([length, await calls(archive.subarray(0, length))]).toEqual([length, 'ARCHIVE_TRUNCATED']);
    }
  });

  it('is ARCHIVE_TRUNCATED when it is a bare tar, wherever it was', async () => {
    const tar = tarOf(archive);
    for (const length of [1, 13, 261, 400, 511, 512, 513, ...offsets(tar.length, 509).slice(2)]) {
      expect([length, await calls(tar.subarray(0, length))]).toEqual([length, 'ARCHIVE_TRUNCATED']);
    }
  });

  it('is ARCHIVE_TRUNCATED when it is gzip, wherever it was', async () => {
    const file = gzip(tarOf(archive));
    for (const length of offsets(file.length, 13)) {
      expect([length, await calls(file.subarray(0, length))]).toEqual([length, 'ARCHIVE_TRUNCATED']);
    }
  });
});

describe('an archive with a flipped bit', () => {
  const flipped = (file: Buffer, bit: number) => {
    const copy = Buffer.from(file);
    copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    return copy;
  };

  it('is refused, unless not one byte of its content is another', async () => {
    // Compressed data has a few bits that mean nothing, such as the padding of a table.
    const tar = tarOf(archive);
    let refused = 0;
    const bits = offsets(archive.length * 8, 29);
    for (const bit of bits) {
      const file = flipped(archive, bit);
      const name = await calls(file);
      if (name === 'accepted') expect([bit, tarOf(file).equals(tar)]).toEqual([bit, true]);
      else refused += 1;
    }
    expect(refused).toBeGreaterThan(bits.length * 0.97);
  });

  it('is told as damage, also where the damage first shows as nonsense in a member', async () => {
    for (const bit of offsets(archive.length * 8, 31).filter((bit) => bit >= 8 * 8)) {
      const name = await calls(flipped(archive, bit));
      expect([bit, name]).toEqual([
        bit,
        expect.stringMatching(/^(accepted|ARCHIVE_CORRUPT|ARCHIVE_TRUNCATED)$/),
      ]);
    }
  });

  it('is never accepted when it is one of the frame header', async () => {
    for (let bit = 0; bit < 8 * 6; bit++) {
      const name = await calls(flipped(archive, bit));
      expect([bit, name]).toEqual([bit, expect.stringMatching(/^ARCHIVE_/)]);
      if (bit < 8 * 4) expect([bit, name]).toEqual([bit, 'ARCHIVE_UNSUPPORTED_FORMAT']);
    }
  });

  it('is never accepted when it is a bare tar', async () => {
    const tar = tarOf(archive);
    for (const bit of offsets(tar.length * 8, 173)) {
      expect([bit, await calls(flipped(tar, bit))]).toEqual([bit, expect.stringMatching(/^ARCHIVE_/)]);
    }
  });
});
