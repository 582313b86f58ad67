import Table from 'cli-table3';
import { visible } from './texts.ts';

/** A cell: a text, which is made visible, or nothing. */
export type Cell = string | number | bigint | boolean | null | undefined;

/** What a column shows of an item: one of its fields, or what is made of it. */
type Column<Item> =
  | { [Field in keyof Item]: Item[Field] extends Cell ? Field : never }[keyof Item]
  | ((item: Item) => Cell);

/** A line for each item below the heads of the columns, which are parted by two spaces. */
export function table<Item>(items: readonly Item[], columns: Readonly<Record<string, Column<Item>>>): string {
  const row = (item: Item) =>
    Object.values(columns).map((column) =>
      typeof column === 'function' ? column(item) : (item[column] as Cell),
    );
  return laidOut([Object.keys(columns), ...items.map(row)]);
}

/** Names and what they stand for, a line each; what is undefined is left out. */
export function pairs(entries: Readonly<Record<string, Cell>>): string {
  return laidOut(Object.entries(entries).filter(([, value]) => value !== undefined));
}

function laidOut(rows: readonly (readonly Cell[])[]): string {
  const noBorders = Object.keys(new Table().options.chars).map((place) => [place, ''] as const);
  const layout = new Table({
    chars: { ...Object.fromEntries(noBorders), middle: '  ' },
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
