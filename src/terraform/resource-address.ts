import { parseInt64 } from '../base/int64.ts';
import { goQuote } from './go-quote.ts';
import { COMMA, endOfScalar, MINUS, ZERO } from './json-bytes.ts';

/** How an instance is told from the others of its resource: `count` gives `int`, `for_each` `string`. */
export type IndexKind = 'none' | 'int' | 'string';

/** An index as Kilolock stores it: `value` is null for kind `none` only. */
export interface ResourceIndex {
  readonly kind: IndexKind;
  readonly value: string | null;
}

export const NO_INDEX: ResourceIndex = { kind: 'none', value: null };

/** Enough for every int64 with its sign. */
const MAX_INT64_LENGTH = 20;

/** The value of the JSON token at `at` if it is an integer literal in the range of int64, else null. */
export function integerAt(json: Buffer, at: number): bigint | null {
  const negative = json[at] === MINUS;
  const first = negative ? at + 1 : at;
  let end = first;
  let value = 0;
  for (; end < first + MAX_INT64_LENGTH; end++) {
    const digit = (json[end] ?? COMMA) - ZERO;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  if (end === first || endOfScalar(json, end) !== end) return null;
  if (value <= Number.MAX_SAFE_INTEGER) {
    const isSpelledShort = end === first + 1 || json[first] !== ZERO;
    return isSpelledShort ? BigInt(negative ? -value : value) : null;
  }
  return parseInt64(json.toString('latin1', at, end));
}

/**
 * The index that Kilolock makes of a `for_each` key. A key that is an integer literal in the range of
 * int64 counts as an integer, so `"0"` and `0` are one address and `"-0"` is another; `"007"` and `"1e3"` stay
 * strings (data model 3.4).
 */
export function stringIndex(key: string): ResourceIndex {
  return { kind: parseInt64(key) === null ? 'string' : 'int', value: key };
}

/** The address of an instance as Kilolock writes it (data model 3.3). */
export function resourceAddress(
  modulePath: string,
  mode: 'managed' | 'data',
  type: string,
  name: string,
  index: ResourceIndex,
): string {
  const module = modulePath === '' ? '' : `${modulePath}.`;
  // Joined, because the runtime keeps the parts of a text that was added up, and an address is kept for long.
  return [module, mode === 'data' ? 'data.' : '', type, '.', name, indexSuffix(index)].join('');
}

function indexSuffix({ kind, value }: ResourceIndex): string {
  if (value === null) return '';
  return kind === 'int' ? `[${value}]` : `[${goQuote(value)}]`;
}
