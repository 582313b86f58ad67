import type { Choices } from '../../support/choices.ts';

/** JSON texts of values that somebody may stumble over: as texts, since not all of them survive being parsed. */
const ODD_VALUES = [
  'null',
  '{}',
  '[]',
  '""',
  '0',
  '-0',
  '-1',
  '1.10',
  '1e400',
  '1E-400',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '18446744073709551616',
  `1${'0'.repeat(1200)}`,
  '1e131000',
  'true',
  '"\\u0000"',
  '"\\ud800"',
  '"\\ud83d\\ude80"',
  '"é"',
  '"\u202e"',
  '"__proto__"',
  '"2026-02-30T25:61:61.000000Z"',
  '"0000-01-01T00:00:00.000000Z"',
  '"00000000-0000-4000-8000-000000000000"',
  '[null]',
  '[[[[]]]]',
  '{"": {"__proto__": null, "a": 1, "a": 2}}',
  `${'['.repeat(600)}${']'.repeat(600)}`,
  `"${'x'.repeat(3000)}"`,
];

/** The text of one odd value. */
export function oddJson(choice: Choices): string {
  return choice.of(ODD_VALUES);
}

/** Where the values of a JSON text stand, from the first to behind the last byte; found by their shape alone. */
function valuesIn(json: string): { readonly start: number; readonly end: number }[] {
  const found: { start: number; end: number }[] = [];
  for (const match of json.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[[{]/g)) {
    const start = match.index;
    const opens = match[0] === '[' || match[0] === '{';
    found.push({ start, end: opens ? endOfContainer(json, start) : start + match[0].length });
  }
  return found;
}

function endOfContainer(json: string, start: number): number {
  let depth = 0;
  for (const match of json.slice(start).matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if ('[{'.includes(match[0])) depth += 1;
    if (']}'.includes(match[0])) depth -= 1;
    if (depth === 0 && !match[0].startsWith('"')) return start + match.index + 1;
  }
  return json.length;
}

/** A JSON text in which one value or key is another, is gone, or stands there twice. */
export function damagedJson(json: string, choice: Choices): string {
  const values = valuesIn(json);
  if (values.length === 0) return oddJson(choice);
  const { start, end } = choice.of(values);
  const old = json.slice(start, end);
  switch (choice.below(6)) {
    case 1:
      return json.slice(0, start) + json.slice(end);
    case 2:
      return `${json.slice(0, end)}, ${old}${json.slice(end)}`;
    case 3: {
      const other = choice.of(values);
      return json.slice(0, start) + json.slice(other.start, other.end) + json.slice(end);
    }
    case 4:
      return `${json.slice(0, start)}{"unknown": ${old}}${json.slice(end)}`;
    case 5:
      return json.slice(0, start) + old.toUpperCase() + json.slice(end);
    default:
      return json.slice(0, start) + oddJson(choice) + json.slice(end);
  }
}

/** Bytes of which a few are others, gone, or more. */
export function damagedBytes(bytes: Buffer, choice: Choices): Buffer {
  const at = choice.below(bytes.length + 1);
  const length = choice.of([0, 1, 2, 16, 512, 4096]);
  switch (choice.below(5)) {
    case 1:
      return bytes.subarray(0, at);
    case 2:
      return Buffer.concat([bytes, bytes.subarray(at)]);
    case 3:
      return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(length), bytes.subarray(at + length)]);
    case 4:
      return Buffer.concat([
        bytes.subarray(0, at),
        Buffer.alloc(length, choice.below(256)),
        bytes.subarray(at),
      ]);
    default: {
      const copy = Buffer.from(bytes);
      if (at < copy.length) copy[at] = (copy[at] ?? 0) ^ (1 << choice.below(8));
      return copy;
    }
  }
}
