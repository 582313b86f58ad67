import { ContainerIndex } from './container-index.ts';
import { endIfConforming, readCtyType } from './cty-type.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  endOfEscape,
  endOfScalar,
  escapedCodePoint,
  hasToken,
  LINE_FEED,
  OPEN_BRACE,
  OPEN_BRACKET,
  opensContainer,
  QUOTE,
  SPACE,
  skipWhitespace,
  startOfMemberValue,
} from './json-bytes.ts';
import { OffsetTable } from './offset-table.ts';
import type { PieceWriter } from './piece-writer.ts';

const KEY_TYPE = Buffer.from('"type"');
const KEY_VALUE = Buffer.from('"value"');
/** Containers around `attributes` in a state file: document, resources, resource, instances, instance. */
const DEPTH = 5;
const NOTHING = Buffer.alloc(0);
/**
 * Deeper values are left as they are spelled: no provider's schema is nested like that, and the indentation alone would
 * be thousands of times the text.
 */
const MAX_LAID_OUT_DEPTH = 500;
/**
 * A value whose indentation would be so many times its text is left as it is spelled, too: it would need lists of single
 * digits inside forty others.
 */
const MAX_INDENTATION = 32;
/** U+2028 and U+2029 are E2 80 A8 and E2 80 A9. */
const LEAD_OF_U2028 = 0xe2;
const LAST_OF_U2028 = 0xa8;

/** How Go spells each character of ASCII inside a string. */
const ASCII = Array.from({ length: 0x80 }, (_, code) => spelled(String.fromCharCode(code)));
const SEPARATORS = [spelled('\u2028'), spelled('\u2029')] as const;

/** 1 for the bytes of a string that Go may spell in another way; all others are copied. */
const SPECIAL = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte === LEAD_OF_U2028 || '"\\<>&'.includes(String.fromCharCode(byte)) ? 1 : 0,
);

/**
 * Writes the `attributes` or `sensitive_attributes` of an instance as Terraform itself writes them into a
 * state file, from any other spelling of the same JSON, such as jsonb's text (data model 3.9):
 *
 * - two spaces of indentation at the depth an instance has, keys in the order of their bytes;
 * - strings as Go's `encoding/json` escapes them (1.22 and later, where `\b` and `\f` are short), numbers as
 *   spelled, `{}` and `[]` on one line;
 * - a value of dynamic type as `value` before `type`. It is recognised by having these two keys, a type
 *   expression under `type`, and a `value` that conforms to it. Inside it every type is known, so that no
 *   such wrapper occurs again.
 *
 * A value nested more than {@link MAX_LAID_OUT_DEPTH} deep, or with more than {@link MAX_INDENTATION} bytes of indentation a
 * byte, is written as it is spelled.
 *
 * One object serves any number of values, one after the other; a value of any size costs one buffer.
 */
export class TerraformLayout {
  readonly #containers = new ContainerIndex();
  readonly #out: PieceWriter;
  /** The keys of the objects that are open. */
  readonly #keys = new OffsetTable(1);
  #json: Buffer = NOTHING;
  /** How much of the value may still be read as type expressions and values of their types. */
  #wrapperBytes = 0;

  /** @param out takes what is written. */
  constructor(out: PieceWriter) {
    this.#out = out;
  }

  /** @param json one value, known to be JSON in UTF-8. */
  render(json: Buffer): void {
    this.#json = json;
    this.#containers.read(json);
    const { depth, totalDepth } = this.#containers;
    if (depth > MAX_LAID_OUT_DEPTH || 2 * totalDepth > MAX_INDENTATION * json.length) this.#out.copy(json);
    else {
      // Once, if each wrapper is one. What only looks like wrappers inside one another would be read again for each.
      this.#wrapperBytes = 2 * json.length;
      this.#keys.truncate(0);
      this.#value(skipWhitespace(json, 0), DEPTH, true);
    }
    // A view keeps its whole document alive.
    this.#json = NOTHING;
  }

  /** Writes a list of strings as Go's `encoding/json` writes it by itself: without white space. */
  compactStrings(json: Buffer): void {
    this.#json = json;
    this.#out.byte(OPEN_BRACKET);
    for (
      let p = skipWhitespace(json, 1);
      json[p] === QUOTE || json[p] === COMMA;
      p = skipWhitespace(json, p)
    ) {
      if (json[p] === QUOTE) p = this.#string(p);
      else {
        this.#out.byte(COMMA);
        p += 1;
      }
    }
    this.#out.byte(CLOSE_BRACKET);
    this.#json = NOTHING;
  }

  /** Writes the value at `at` and returns the position after it. */
  #value(at: number, depth: number, wrappers: boolean): number {
    switch (this.#json[at]) {
      case OPEN_BRACE:
        return this.#object(at, depth, wrappers);
      case OPEN_BRACKET:
        return this.#array(at, depth, wrappers);
      case QUOTE:
        return this.#string(at);
      default: {
        const end = endOfScalar(this.#json, at);
        this.#out.copy(this.#json, at, end);
        return end;
      }
    }
  }

  #array(at: number, depth: number, wrappers: boolean): number {
    const json = this.#json;
    this.#out.byte(OPEN_BRACKET);
    let p = skipWhitespace(json, at + 1);
    const isEmpty = json[p] === CLOSE_BRACKET;
    while (json[p] !== CLOSE_BRACKET) {
      this.#newLine(depth + 1);
      p = skipWhitespace(json, this.#value(p, depth + 1, wrappers));
      if (json[p] === COMMA) {
        this.#out.byte(COMMA);
        p = skipWhitespace(json, p + 1);
      }
    }
    if (!isEmpty) this.#newLine(depth);
    this.#out.byte(CLOSE_BRACKET);
    return p + 1;
  }

  #object(at: number, depth: number, wrappers: boolean): number {
    const json = this.#json;
    const keys = this.#keys;
    const first = keys.length;
    let p = skipWhitespace(json, at + 1);
    while (json[p] !== CLOSE_BRACE) {
      keys.set(keys.add(), 0, p);
      p = skipWhitespace(json, this.#containers.endOf(json, startOfMemberValue(json, p)));
      if (json[p] === COMMA) p = skipWhitespace(json, p + 1);
    }
    const end = keys.length;
    const isWrapper = wrappers && this.#arrangeWrapper(first);
    const hasDuplicates = !isWrapper && this.#sort(first);
    this.#out.byte(OPEN_BRACE);
    for (let i = first; i < end; i++) {
      const key = keys.get(i, 0);
      // Of equal keys the last counts.
      if (hasDuplicates && i + 1 < end && compareKeys(json, key, keys.get(i + 1, 0)) === 0) continue;
      this.#newLine(depth + 1);
      this.#string(key);
      this.#out.byte(COLON);
      this.#out.byte(SPACE);
      this.#value(startOfMemberValue(json, key), depth + 1, wrappers && !isWrapper);
      if (i + 1 < end) this.#out.byte(COMMA);
    }
    if (end > first) this.#newLine(depth);
    this.#out.byte(CLOSE_BRACE);
    keys.truncate(first);
    return p + 1;
  }

  /** Whether the keys from `first` on are those of a dynamically typed value; puts them in the order it has them. */
  #arrangeWrapper(first: number): boolean {
    const json = this.#json;
    const keys = this.#keys;
    if (keys.length - first !== 2) return false;
    const isTypeFirst = hasToken(json, keys.get(first, 0), KEY_TYPE);
    const type = keys.get(isTypeFirst ? first : first + 1, 0);
    const value = keys.get(isTypeFirst ? first + 1 : first, 0);
    if (!hasToken(json, type, KEY_TYPE) || !hasToken(json, value, KEY_VALUE)) return false;
    const typeStart = startOfMemberValue(json, type);
    const typeEnd = this.#containers.endOf(json, typeStart);
    this.#wrapperBytes -= typeEnd - typeStart;
    const expression = this.#wrapperBytes < 0 ? null : readCtyType(json, typeStart, typeEnd);
    if (expression === null) return false;
    const valueStart = startOfMemberValue(json, value);
    if (opensContainer(json[valueStart])) {
      this.#wrapperBytes -= this.#containers.endOf(json, valueStart) - valueStart;
      if (this.#wrapperBytes < 0) return false;
    }
    if (endIfConforming(json, valueStart, expression) === -1) return false;
    keys.set(first, 0, value);
    keys.set(first + 1, 0, type);
    return true;
  }

  /** Sorts the keys from `first` on by their bytes; returns whether some are equal, which keep their order. */
  #sort(first: number): boolean {
    const json = this.#json;
    let hasDuplicates = false;
    this.#keys.sortFrom(first, (a, b) => {
      const order = compareKeys(json, a, b);
      if (order === 0) hasDuplicates = true;
      return order;
    });
    return hasDuplicates;
  }

  #string(at: number): number {
    const json = this.#json;
    this.#out.byte(QUOTE);
    let p = at + 1;
    for (;;) {
      const start = p;
      let c = json[p] ?? QUOTE;
      while (SPECIAL[c] === 0) c = json[++p] ?? QUOTE;
      this.#out.copy(json, start, p);
      if (c === QUOTE) {
        this.#out.byte(QUOTE);
        return p + 1;
      }
      p = this.#special(p, c);
    }
  }

  /** Writes the character at `at`, which Go may spell in another way, and returns the position after it. */
  #special(at: number, c: number): number {
    const json = this.#json;
    if (c === LEAD_OF_U2028) {
      const last = (json[at + 2] ?? 0) - LAST_OF_U2028;
      if (json[at + 1] === 0x80 && (last === 0 || last === 1)) {
        this.#out.copy(SEPARATORS[last], 0, SEPARATORS[last].length);
        return at + 3;
      }
      // The lead of some other character, whose rest is copied as it comes.
      this.#out.byte(c);
      return at + 1;
    }
    if (c !== BACKSLASH) {
      this.#character(c);
      return at + 1;
    }
    this.#character(escapedCodePoint(json, at));
    return endOfEscape(json, at);
  }

  #character(codePoint: number): void {
    const separator = codePoint - 0x2028;
    const escaped = separator === 0 || separator === 1 ? SEPARATORS[separator] : ASCII[codePoint];
    const character = escaped ?? Buffer.from(String.fromCodePoint(codePoint));
    this.#out.copy(character, 0, character.length);
  }

  #newLine(depth: number): void {
    this.#out.byte(LINE_FEED);
    this.#out.repeat(SPACE, 2 * depth);
  }
}

/** Compares the keys at two positions by the bytes of their UTF-8, which is how their characters are ordered, too. */
function compareKeys(json: Buffer, a: number, b: number): number {
  let p = a + 1;
  let q = b + 1;
  for (;;) {
    const x = json[p] ?? QUOTE;
    const y = json[q] ?? QUOTE;
    if (x === QUOTE || y === QUOTE) return Number(x !== QUOTE) - Number(y !== QUOTE);
    if (x !== BACKSLASH && y !== BACKSLASH) {
      if (x !== y) return x - y;
      p += 1;
      q += 1;
      continue;
    }
    const order = codePointAt(json, p) - codePointAt(json, q);
    if (order !== 0) return order;
    p = endOfCharacter(json, p);
    q = endOfCharacter(json, q);
  }
}

function codePointAt(json: Buffer, at: number): number {
  const c = json[at] ?? 0;
  if (c === BACKSLASH) return escapedCodePoint(json, at);
  if (c < 0x80) return c;
  let codePoint = c < 0xe0 ? c & 0x1f : c < 0xf0 ? c & 0x0f : c & 0x07;
  for (let p = at + 1; p < endOfCharacter(json, at); p++)
    codePoint = (codePoint << 6) | ((json[p] ?? 0) & 0x3f);
  return codePoint;
}

function endOfCharacter(json: Buffer, at: number): number {
  const c = json[at] ?? 0;
  if (c === BACKSLASH) return endOfEscape(json, at);
  return at + (c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4);
}

/** A character as Go's `encoding/json` writes it inside a string. */
function spelled(character: string): Buffer {
  const code = character.charCodeAt(0);
  // JSON.stringify spells everything else as Go does since 1.22.
  const isEscaped = '<>&\u2028\u2029'.includes(character);
  return Buffer.from(
    isEscaped ? `\\u${code.toString(16).padStart(4, '0')}` : JSON.stringify(character).slice(1, -1),
  );
}
