import type { OffsetTable } from './offset-table.ts';

/** Runs of up to this many are sorted by insertion, which is nearly all there is: objects are small. */
const SHORT_RUN = 16;

/**
 * Sorts the positions in the first column of `table`, from row `from` to its end, so that equal ones keep
 * their order. Unlike the runtime's own sort it needs no more than four bytes per position beside the table,
 * and none on the JavaScript heap: a hostile document can have fifty million keys in one object.
 */
export function sortOffsets(
  table: OffsetTable,
  from: number,
  compare: (a: number, b: number) => number,
): void {
  const end = table.length;
  for (let start = from; start < end; start += SHORT_RUN) {
    insertionSort(table, start, Math.min(start + SHORT_RUN, end), compare);
  }
  if (end - from <= SHORT_RUN) return;
  const scratch = new Int32Array(end - from);
  for (let width = SHORT_RUN; width < end - from; width *= 2) {
    for (let start = from; start + width < end; start += 2 * width) {
      merge(table, start, start + width, Math.min(start + 2 * width, end), scratch, compare);
    }
  }
}

/** Merges the sorted runs before and after `middle`. */
function merge(
  table: OffsetTable,
  start: number,
  middle: number,
  end: number,
  scratch: Int32Array,
  compare: (a: number, b: number) => number,
): void {
  // Much of what is sorted comes in order.
  if (compare(table.get(middle - 1, 0), table.get(middle, 0)) <= 0) return;
  for (let i = start; i < middle; i++) scratch[i - start] = table.get(i, 0);
  let to = start;
  let left = 0;
  let right = middle;
  while (left < middle - start && right < end) {
    const leftOffset = scratch[left] ?? 0;
    const rightOffset = table.get(right, 0);
    const takesLeft = compare(leftOffset, rightOffset) <= 0;
    table.set(to++, 0, takesLeft ? leftOffset : rightOffset);
    if (takesLeft) left++;
    else right++;
  }
  // What is left of the right run stands where it belongs.
  while (left < middle - start) table.set(to++, 0, scratch[left++] ?? 0);
}

function insertionSort(
  table: OffsetTable,
  start: number,
  end: number,
  compare: (a: number, b: number) => number,
): void {
  for (let i = start + 1; i < end; i++) {
    const offset = table.get(i, 0);
    let j = i;
    for (; j > start && compare(table.get(j - 1, 0), offset) > 0; j--) table.set(j, 0, table.get(j - 1, 0));
    table.set(j, 0, offset);
  }
}
