import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { OffsetTable } from '../../src/terraform/offset-table.ts';

describe('a table of offsets', () => {
  it('holds what was set, and 0 elsewhere, while it grows, is cut and copied', () => {
    const step = fc.oneof(
      fc.record({ add: fc.integer({ min: 1, max: 100 }) }),
      fc.record({ set: fc.tuple(fc.nat(500), fc.nat(2), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })) }),
      fc.record({ copy: fc.tuple(fc.nat(500), fc.nat(500)) }),
      fc.record({ truncate: fc.nat(500) }),
    );
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const table = new OffsetTable(3);
        let rows: number[][] = [];
        for (const step of steps) {
          if ('add' in step) {
            for (let i = 0; i < step.add; i++) expect(table.add()).toBe(rows.push([0, 0, 0]) - 1);
          } else if ('truncate' in step) {
            const length = Math.min(step.truncate, rows.length);
            table.truncate(length);
            rows = rows.slice(0, length);
          } else if (rows.length > 0 && 'set' in step) {
            const [at, column, value] = step.set;
            table.set(at % rows.length, column, value);
            (rows[at % rows.length] ?? [])[column] = value;
          } else if (rows.length > 0 && 'copy' in step) {
            const [to, from] = step.copy.map((at) => at % rows.length) as [number, number];
            table.copy(to, table, from);
            rows[to] = [...(rows[from] ?? [])];
          }
        }
        expect(table.length).toBe(rows.length);
        expect(rows.map((_, row) => [0, 1, 2].map((column) => table.get(row, column)))).toEqual(rows);
      }),
    );
  });

  it('has 0 in every row of a column that it lacks, whatever is set there', () => {
    const table = new OffsetTable(2);
    const rows = [table.add(), table.add()];
    for (const column of [0, 1, 2, 3]) table.set(0, column, 7);
    expect(rows.map((row) => [0, 1, 2, 3].map((column) => table.get(row, column)))).toEqual([
      [7, 7, 0, 0],
      [0, 0, 0, 0],
    ]);
  });
});
