import { ContainerIndex } from './container-index.ts';
import { endIfConforming, readCtyType } from './cty-type.ts';
import { goJson } from './go-json.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  decodeString,
  endOfEscape,
  endOfScalar,
  endOfString,
  hasToken,
  LETTER_U,
  LINE_FEED,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  SOLIDUS,
  SPACE,
  skipWhitespace,
  startOfMemberValue,
} from './json-bytes.ts';
import { PieceWriter } from './piece-writer.ts';

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
/** U+2028 and U+2029 are E2 80 A8 and E2 80 A9. */
const LEAD_OF_U2028 = 0xe2;

/** What Go escapes although JSON does not ask for it, by the last byte of the character. */
const ESCAPED: ReadonlyMap<number | undefined, Buffer> = new Map(
  ['<', '>', '&', '\u2028', '\u2029'].map((character) => [Buffer.from(character).at(-1), spelled(character)]),
);

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
 * A value nested more than {@link MAX_LAID_OUT_DEPTH} deep is written as it is spelled.
 *
 * One object serves any number of values, one after the other; a value of any size costs one buffer.
 */
export class TerraformLayout {
  readonly #containers = new ContainerIndex();
  readonly #out = new PieceWriter();
  #json: Buffer = NOTHING;
  /** How much of the value may still be read as type expressions. */
  #typeBytes = 0;

  /**
   * @param json - one value, known to be JSON in UTF-8.
   * @param write - takes the result in pieces, each valid during the call only.
   */
  render(json: Buffer, write: (piece: Buffer) => void): void {
    this.#json = json;
    this.#containers.read(json);
    if (this.#containers.depth > MAX_LAID_OUT_DEPTH) {
      write(json);
      return;
    }
    // Once, if each wrapper is one. What only looks like wrappers inside one another would be read again for each.
    this.#typeBytes = 2 * json.length;
    this.#out.begin(write);
    this.#value(skipWhitespace(json, 0), DEPTH, true);
    this.#out.end();
    // A view keeps its whole document alive.
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
    const keys: number[] = [];
    let p = skipWhitespace(json, at + 1);
    while (json[p] !== CLOSE_BRACE) {
      keys.push(p);
      p = skipWhitespace(json, this.#containers.endOf(json, startOfMemberValue(json, p)));
      if (json[p] === COMMA) p = skipWhitespace(json, p + 1);
    }
    const wrapper = wrappers ? this.#dynamicWrapper(keys) : null;
    const members = wrapper ?? this.#sorted(keys);
    this.#out.byte(OPEN_BRACE);
    let isFirst = true;
    for (const key of members) {
      if (!isFirst) this.#out.byte(COMMA);
      isFirst = false;
      this.#newLine(depth + 1);
      this.#string(key);
      this.#out.byte(COLON);
      this.#out.byte(SPACE);
      this.#value(startOfMemberValue(this.#json, key), depth + 1, wrappers && wrapper === null);
    }
    if (!isFirst) this.#newLine(depth);
    this.#out.byte(CLOSE_BRACE);
    return p + 1;
  }

  /** The two keys in the order a dynamically typed value has them, or null if this is none. */
  #dynamicWrapper(keys: readonly number[]): number[] | null {
    const [first, second] = keys;
    if (keys.length !== 2 || first === undefined || second === undefined) return null;
    const [type, value] = hasToken(this.#json, first, KEY_TYPE) ? [first, second] : [second, first];
    if (!hasToken(this.#json, type, KEY_TYPE) || !hasToken(this.#json, value, KEY_VALUE)) return null;
    const typeStart = startOfMemberValue(this.#json, type);
    const typeEnd = this.#containers.endOf(this.#json, typeStart);
    this.#typeBytes -= typeEnd - typeStart;
    const expression = this.#typeBytes < 0 ? null : readCtyType(this.#json, typeStart, typeEnd);
    if (
      expression === null ||
      endIfConforming(this.#json, startOfMemberValue(this.#json, value), expression) === -1
    ) {
      return null;
    }
    return [value, type];
  }

  /** The keys in the order of their bytes; of equal ones, the last. */
  #sorted(keys: number[]): number[] {
    let hasDuplicates = false;
    keys.sort((a, b) => {
      const order = compareKeys(this.#json, a, b);
      if (order !== 0) return order;
      hasDuplicates = true;
      return a - b;
    });
    if (!hasDuplicates) return keys;
    return keys.filter((key, i) => {
      const next = keys[i + 1];
      return next === undefined || compareKeys(this.#json, key, next) !== 0;
    });
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
    if (c === BACKSLASH) return this.#escape(at);
    const end = c === LEAD_OF_U2028 ? endOfSeparator(this.#json, at) : at + 1;
    const escaped = ESCAPED.get(this.#json[end - 1]);
    if (escaped === undefined) {
      // The lead of some other character, whose rest is copied as it comes.
      this.#out.byte(c);
      return at + 1;
    }
    this.#out.copy(escaped, 0, escaped.length);
    return end;
  }

  #escape(at: number): number {
    const json = this.#json;
    const letter = json[at + 1];
    if (letter !== LETTER_U) {
      this.#out.copy(json, letter === SOLIDUS ? at + 1 : at, at + 2);
      return at + 2;
    }
    const end = endOfEscape(json, at);
    const character: unknown = JSON.parse(`"${json.toString('latin1', at, end)}"`);
    const escaped = spelled(String(character));
    this.#out.copy(escaped, 0, escaped.length);
    return end;
  }

  #newLine(depth: number): void {
    this.#out.byte(LINE_FEED);
    this.#out.repeat(SPACE, 2 * depth);
  }
}

/** The position after U+2028 or U+2029 at `at`, or after its first byte if another character stands there. */
function endOfSeparator(json: Buffer, at: number): number {
  const last = json[at + 2];
  return json[at + 1] === 0x80 && (last === 0xa8 || last === 0xa9) ? at + 3 : at + 1;
}

/** Compares the keys at two positions by the bytes of their decoded UTF-8. */
function compareKeys(json: Buffer, a: number, b: number): number {
  for (let i = 1; ; i++) {
    const x = json[a + i];
    const y = json[b + i];
    if (x === BACKSLASH || y === BACKSLASH) {
      return Buffer.compare(decodedKey(json, a), decodedKey(json, b));
    }
    if (x === QUOTE || y === QUOTE) return Number(x !== QUOTE) - Number(y !== QUOTE);
    if (x !== y) return (x ?? 0) - (y ?? 0);
  }
}

function decodedKey(json: Buffer, at: number): Buffer {
  return Buffer.from(decodeString(json, at, endOfString(json, at)));
}

/** A character as Go writes it inside a string. */
function spelled(character: string): Buffer {
  return Buffer.from(goJson(character).slice(1, -1));
}
