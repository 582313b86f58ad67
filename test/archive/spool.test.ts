import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { spoolLines } from '../../src/archive/spool.ts';

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spool-'));
});

afterAll(async () => {
  await rm(directory, { recursive: true });
});

async function spooled(name: string, lines: readonly string[]) {
  async function* source() {
    yield* lines;
  }
  const spool = await spoolLines(source(), (line) => line, join(directory, name));
  const pieces: Buffer[] = [];
  for await (const piece of spool.read()) pieces.push(Buffer.from(piece));
  return { ...spool, bytes: Buffer.concat(pieces) };
}

it('lines that were put aside come back byte for byte, wherever the pieces of the file end', async () => {
  for (let shift = 0; shift < 8; shift++) {
    const lines = ['x'.repeat(shift), '€', '😀'.repeat(40_000), 'é'.repeat(200_000), '', 'end'].map(
      (line) => `${line}\n`,
    );
    const { bytes, byteLength, lines: count } = await spooled(`shift-${shift}`, lines);
    expect(count).toBe(lines.length);
    expect(byteLength).toBe(bytes.length);
    expect(bytes.equals(Buffer.from(lines.join('')))).toBe(true);
  }
});

it('no lines make an empty file', async () => {
  expect(await spooled('none', [])).toMatchObject({ lines: 0, byteLength: 0, bytes: Buffer.alloc(0) });
});
