import { statSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { endField, type RowFields, RowFileWriter, readRows } from '../../src/inspection/row-file.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';

const inDirectory = temporaryDirectory();
let files = 0;
const newPath = () => inDirectory(`rows-${++files}`);

async function read(path: string): Promise<RowFields[]> {
  const rows: RowFields[] = [];
  for await (const row of readRows(path)) rows.push(row);
  return rows;
}

test('rows come back as they were put aside, null and empty apart, wherever a piece of the file ends', async () => {
  // Longer than what is gathered before it is written, now and then; or about as long as a piece that is read.
  const length = fc.oneof(
    fc.nat(40),
    fc.integer({ min: 65_510, max: 65_540 }),
    fc.integer({ min: 250_000, max: 600_000 }),
  );
  const field = fc.option(fc.tuple(length, fc.nat(255)).map(([bytes, fill]) => Buffer.alloc(bytes, fill)));
  const rows = fc.array(fc.array(field, { minLength: 1, maxLength: 4 }), { maxLength: 12 });
  const spelled = (given: readonly RowFields[]) =>
    given.map((row) => row.map((each) => each && `${each.length} of ${each[0]}, ${each.at(-1)}`));
  await fc.assert(
    fc.asyncProperty(rows, async (given) => {
      const path = newPath();
      const writer = new RowFileWriter(path);
      for (const row of given) writer.append(row);
      writer.close();
      expect(spelled(await read(path))).toEqual(spelled(given));
    }),
    { numRuns: 60 },
  );
});

test('a first field can be overwritten, whether its row is on disk already or not', async () => {
  const path = newPath();
  const writer = new RowFileWriter(path);
  const filler = Buffer.alloc(200_000);
  const positions = [1n, 2n, 3n, 4n].map((value) => writer.append([endField(value), filler]));
  for (const [i, position] of positions.entries()) writer.overwrite(position, endField(BigInt(10 + i)));
  writer.close();
  const rows = await read(path);
  expect(rows.map(([first]) => first?.readBigInt64BE())).toEqual([10n, 11n, 12n, 13n]);
});

test('the file is for its owner alone, and never one that was there before', () => {
  const path = newPath();
  new RowFileWriter(path).close();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(() => new RowFileWriter(path)).toThrow('EEXIST');
});
