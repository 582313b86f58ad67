import { parseInt64 } from '../base/int64.ts';
import { goQuote } from './go-quote.ts';

/** How an instance is told from the others of its resource: `count` gives `int`, `for_each` `string`. */
export type IndexKind = 'none' | 'int' | 'string';

/** An index as Kilolock stores it: `value` is null for kind `none` only. */
export interface ResourceIndex {
  readonly kind: IndexKind;
  readonly value: string | null;
}

export const NO_INDEX: ResourceIndex = { kind: 'none', value: null };

/**
 * The index that Kilolock makes of a `for_each` key. A key that is an integer literal in the range of
 * int64 counts as an integer, so `"0"` and `0` are one address; `"007"` and `"1e3"` stay strings (data
 * model 3.4).
 */
export function stringIndex(key: string): ResourceIndex {
  const integer = parseInt64(key);
  return integer === null ? { kind: 'string', value: key } : { kind: 'int', value: integer.toString() };
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
  return `${module}${mode === 'data' ? 'data.' : ''}${type}.${name}${indexSuffix(index)}`;
}

function indexSuffix({ kind, value }: ResourceIndex): string {
  if (value === null) return '';
  return kind === 'int' ? `[${value}]` : `[${goQuote(value)}]`;
}
