import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { ArchiveError } from '../../src/archive/errors.ts';
import { buildArchive } from './support/build-archive.ts';
import { verdict } from './support/handmade.ts';
import { sampleHistory } from './support/sample-history.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const path = temporaryDirectory();

/** Where the window stands in the header of a frame that does not declare its size (RFC 8878, 3.1.1.1). */
const WINDOW_AT = 5;
const exponent = (windowLog: number) => (windowLog - 10) << 3;

/** What a reader makes of an archive that declares this window: `read`, or the code of its refusal. */
async function reads(archive: Buffer, windowByte: number): Promise<string> {
  const changed = Buffer.from(archive);
  changed[WINDOW_AT] = windowByte;
  try {
    await verdict(changed, {}, 1 << 16);
    return 'read';
  } catch (error) {
    if (error instanceof ArchiveError) return error.code;
    throw error;
  }
}

function isOneBit(bits: number): boolean {
  return bits !== 0 && (bits & (bits - 1)) === 0;
}

describe('a manifest that tells the window', () => {
  let archive: Buffer;
  beforeAll(async () => {
    await buildArchive(sampleHistory, path('told.klstate'));
    archive = await readFile(path('told.klstate'));
  });

  it('has every other window up to 2^27 read, but for those that one bit makes of its own', async () => {
    const own = archive[WINDOW_AT] ?? 0;
    expect(own).toBe(exponent(21));
    for (let byte = 0; byte <= exponent(27); byte++) {
      const expected = isOneBit(own ^ byte) ? 'ARCHIVE_CORRUPT' : 'read';
      // What does not reach back as far as the content does is damage too, found by the decoder.
      const allowed = byte < own ? [expected, 'ARCHIVE_CORRUPT'] : [expected];
      expect([byte, await reads(archive, byte)]).toEqual([byte, expect.stringMatching(allowed.join('|'))]);
    }
  });

  it('has a larger window refused before anything of that size is set aside', async () => {
    for (let byte = exponent(27) + 1; byte < 256; byte++) {
      expect([byte, await reads(archive, byte)]).toEqual([byte, 'ARCHIVE_TOO_LARGE']);
    }
  });

  it('has a damaged window told with what to do about it', async () => {
    const changed = Buffer.from(archive);
    changed[WINDOW_AT] = exponent(25);
    await expect(verdict(changed)).rejects.toMatchObject({
      code: 'ARCHIVE_CORRUPT',
      message: expect.stringMatching(/33554432 bytes, one bit beside the 2097152 .*fetch .* zstd --long=21/),
    });
  });
});

describe('a manifest that does not tell the window', () => {
  it('has those windows read that such archives have, none of which is one bit beside 2^27', async () => {
    const archive = await readFile(new URL('golden/v1.klstate', import.meta.url));
    const readable: number[] = [];
    for (let byte = 0; byte <= exponent(27); byte++) {
      const name = await reads(archive, byte);
      if (name === 'read') readable.push(byte);
      else expect(name).toMatch(/^ARCHIVE_(UNSUPPORTED_FORMAT|CORRUPT)$/);
    }
    expect(readable).toEqual([19, 20, 21, 22, 23, 27].map(exponent));
    expect(readable.filter((byte) => isOneBit(byte ^ exponent(27)))).toEqual([]);
  });
});
