import Table from 'cli-table3';
import { visible } from './texts.ts';

/** A cell: a text, which is made visible, or nothing. */
export type Cell = string | number | bigint | boolean | null | undefined;

const NO_BORDERS = Object.fromEntries(
  [
    'top',
    'top-mid',
    'top-left',
    'top-right',
    'bottom',
    'bottom-mid',
    'bottom-left',
    'bottom-right',
    'left',
    'left-mid',
    'mid',
    'mid-mid',
    'right',
    'right-mid',
  ].map((place) => [place, '']),
);

/** Rows under their heads, parted by two spaces. */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return laidOut([head, ...rows]);
}

/** Names and what they stand for, a line each; what is undefined is left out. */
export function pairs(entries: readonly (readonly [name: string, value: Cell])[]): string {
  return laidOut(entries.filter(([, value]) => value !== undefined));
}

function laidOut(rows: readonly (readonly Cell[])[]): string {
  const layout = new Table({
    chars: { ...NO_BORDERS, middle: '  ' },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  });
  layout.push(...rows.map((row) => row.map(cellText)));
  return layout
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

function cellText(cell: Cell): string {
  if (cell === null || cell === undefined) return '-';
  return typeof cell === 'string' ? visible(cell) : String(cell);
}
