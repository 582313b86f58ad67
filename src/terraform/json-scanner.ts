import { UnsupportedStateDocumentError } from './errors.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  hasToken,
  hexDigit,
  isDigit,
  LETTER_U,
  MINUS,
  OPEN_BRACE,
  OPEN_BRACKET,
  PLUS,
  POINT,
  QUOTE,
  SPACE,
  skipWhitespace,
  ZERO,
} from './json-bytes.ts';
import { jsonPathAt } from './json-path.ts';
import { MAX_DEPTH, NUMERIC, type StateDocumentLimits } from './limits.ts';

const SIMPLE_ESCAPES = new Set([...'"\\/bfnrt'].map((letter) => letter.charCodeAt(0)));
const LITERALS = ['true', 'false', 'null'].map((word) => Buffer.from(word));

/**
 * By how much jsonb's binary form of a token can be longer than its text and the comma or colon behind it: every token has an
 * entry of 4 bytes, a container a header of 4, a number one of 6 and two bytes for each four digits, and both up to three bytes
 * of padding. The last element of a container has no comma, but one of its brackets.
 */
const GROWTH_OF_STRING = 1;
const GROWTH_OF_NUMBER = 13;
const GROWTH_OF_CONTAINER = 9;

/**
 * A validating scanner over the bytes of one JSON document: the strict grammar of RFC 8259, and of what it
 * allows only what jsonb can store (data model, trap 3). It builds nothing; every method takes the position
 * of a token and returns the position after it, or throws {@link UnsupportedStateDocumentError}.
 *
 * UTF-8 itself is not its concern: bytes from 0x80 up are taken inside strings and refused outside.
 */
export class JsonScanner {
  readonly #bytes: Buffer;
  readonly #limits: StateDocumentLimits;
  /** Which containers are open in {@link value}: 1 for an object, 0 for an array, by depth. */
  readonly #kinds = new Uint8Array(MAX_DEPTH + 1);
  /** How many members each of them has so far. */
  readonly #widths = new Int32Array(MAX_DEPTH + 1);
  /**
   * What was counted so far, which whoever knows a part of the document already moves on without a scan: the bytes the
   * document would gain by being spelled as others have to, see {@link expand}; how many containers were open at most;
   * how many members one of them had at most; and by how many bytes jsonb's binary form can be longer than the text.
   */
  expansion = 0;
  deepest = 0;
  widest = 0;
  jsonbGrowth = 0;

  constructor(bytes: Buffer, limits: StateDocumentLimits) {
    this.#bytes = bytes;
    this.#limits = limits;
  }

  /** Reports what is wrong with the value, key or token at `offset`. */
  fail(offset: number, reason: string): never {
    throw new UnsupportedStateDocumentError(jsonPathAt(this.#bytes, offset), reason);
  }

  /** Counts `bytes` that the document gains once `how`, by what stands at `at`: they are held to its limit, too. */
  expand(at: number, bytes: number, how: string): void {
    if (!this.hasRoomFor(bytes)) {
      this.fail(at, `the document exceeds ${this.#limits.maxBytes} bytes once ${how}`);
    }
    this.expansion += bytes;
  }

  /** Whether the document may gain so many `bytes` more. */
  hasRoomFor(bytes: number): boolean {
    return this.expansion + bytes <= this.#limits.maxBytes - this.#bytes.length;
  }

  /**
   * Scans the object at `at`, which is `depth` containers deep (the document is 1), handing every member to
   * `onMember`, which scans the value and returns the position after it. It may end the object there and then by
   * returning the complement (`~`) of the position after it, when it knows the rest.
   */
  object(
    at: number,
    depth: number,
    onMember: (keyStart: number, keyEnd: number, valueStart: number) => number,
  ): number {
    const bytes = this.#bytes;
    this.#open(at, depth);
    let p = this.#skip(at + 1);
    if (bytes[p] === CLOSE_BRACE) return p + 1;
    for (let width = 1; ; width++) {
      const keyEnd = this.#key(p);
      const valueStart = this.#colon(keyEnd);
      const after = onMember(p, keyEnd, valueStart);
      if (after < 0) return ~after;
      p = this.#skip(after);
      if (bytes[p] === CLOSE_BRACE) return this.#close(p, width);
      if (bytes[p] !== COMMA) this.#unexpected(p, 'a comma or the end of the object');
      p = this.#skip(p + 1);
    }
  }

  /** Scans the array at `at`, handing the start of every element to `onElement`, as {@link object} does. */
  array(at: number, depth: number, onElement: (start: number) => number): number {
    const bytes = this.#bytes;
    this.#open(at, depth);
    let p = this.#skip(at + 1);
    if (bytes[p] === CLOSE_BRACKET) return p + 1;
    for (let width = 1; ; width++) {
      p = this.#skip(onElement(p));
      if (bytes[p] === CLOSE_BRACKET) return this.#close(p, width);
      if (bytes[p] !== COMMA) this.#unexpected(p, 'a comma or the end of the array');
      p = this.#skip(p + 1);
    }
  }

  /** Scans the value at `at`, which has `depth` containers around it. */
  value(at: number, depth: number): number {
    const bytes = this.#bytes;
    const kinds = this.#kinds;
    const widths = this.#widths;
    let level = depth;
    let p = at;
    for (;;) {
      // Here p is at the first byte of a value.
      const c = bytes[p];
      if (c === QUOTE) {
        p = this.string(p);
      } else if (c === OPEN_BRACE || c === OPEN_BRACKET) {
        this.#open(p, ++level);
        const isObject = c === OPEN_BRACE;
        kinds[level] = isObject ? 1 : 0;
        widths[level] = 1;
        p = this.#skip(p + 1);
        if (bytes[p] === (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
          level--;
          p++;
        } else {
          if (isObject) p = this.#colon(this.#key(p));
          continue;
        }
      } else {
        p = this.#scalar(p);
      }
      // Here p is after a value: close what ends with it, then move to the next.
      for (;;) {
        if (level === depth) return p;
        p = this.#skip(p);
        const isObject = kinds[level] === 1;
        const d = bytes[p];
        if (d === COMMA) {
          widths[level] = (widths[level] ?? 0) + 1;
          p = this.#skip(p + 1);
          if (isObject) p = this.#colon(this.#key(p));
          break;
        }
        if (d !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
          this.#unexpected(
            p,
            isObject ? 'a comma or the end of the object' : 'a comma or the end of the array',
          );
        }
        p = this.#close(p, widths[level--] ?? 0);
      }
    }
  }

  /** Scans the string whose opening quote is at `at`. */
  string(at: number): number {
    this.jsonbGrowth += GROWTH_OF_STRING;
    const bytes = this.#bytes;
    let p = at + 1;
    for (;;) {
      const c = bytes[p] ?? -1;
      if (c > BACKSLASH) p++;
      else if (c === QUOTE) return p + 1;
      else if (c === BACKSLASH) p = this.#escape(at, p);
      else if (c >= SPACE) p++;
      else if (c === -1) this.fail(at, 'a string is not closed');
      else this.fail(at, 'a string holds a control character that is not escaped');
    }
  }

  /** The first position at or after `at` that holds no white space, of which jsonb keeps none. */
  #skip(at: number): number {
    const p = skipWhitespace(this.#bytes, at);
    this.jsonbGrowth -= p - at;
    return p;
  }

  #key(at: number): number {
    if (this.#bytes[at] !== QUOTE) this.#unexpected(at, 'a key');
    return this.string(at);
  }

  #colon(at: number): number {
    const p = this.#skip(at);
    if (this.#bytes[p] !== COLON) this.#unexpected(p, 'a colon');
    return this.#skip(p + 1);
  }

  #escape(stringStart: number, at: number): number {
    const letter = this.#bytes[at + 1] ?? -1;
    if (SIMPLE_ESCAPES.has(letter)) return at + 2;
    if (letter !== LETTER_U) this.fail(stringStart, 'a string holds an escape that is not JSON');
    const unit = this.#codeUnit(stringStart, at + 2);
    if (unit === 0) this.fail(stringStart, 'a string holds \\u0000, which PostgreSQL cannot store');
    if (unit < 0xd800 || unit > 0xdfff) return at + 6;
    const paired = unit < 0xdc00 && this.#bytes[at + 6] === BACKSLASH && this.#bytes[at + 7] === LETTER_U;
    const low = paired ? this.#codeUnit(stringStart, at + 8) : 0;
    if (low < 0xdc00 || low > 0xdfff) {
      this.fail(stringStart, 'a string holds half of a surrogate pair, which PostgreSQL cannot store');
    }
    return at + 12;
  }

  #codeUnit(stringStart: number, at: number): number {
    let unit = 0;
    for (let p = at; p < at + 4; p++) {
      const digit = hexDigit(this.#bytes[p] ?? -1);
      if (digit === -1) this.fail(stringStart, 'a string holds a \\u escape without four hex digits');
      unit = unit * 16 + digit;
    }
    return unit;
  }

  #scalar(at: number): number {
    const c = this.#bytes[at] ?? -1;
    if (c === MINUS || isDigit(c)) return this.#number(at);
    for (const literal of LITERALS) if (hasToken(this.#bytes, at, literal)) return at + literal.length;
    return this.#unexpected(at, 'a value');
  }

  #number(at: number): number {
    this.jsonbGrowth += GROWTH_OF_NUMBER;
    const bytes = this.#bytes;
    const integerStart = bytes[at] === MINUS ? at + 1 : at;
    let p = this.#digits(at, integerStart);
    const integerDigits = p - integerStart;
    if (integerDigits > 1 && bytes[integerStart] === ZERO) this.fail(at, 'a number begins with 0');
    let fractionDigits = 0;
    if (bytes[p] === POINT) {
      const fractionStart = p + 1;
      p = this.#digits(at, fractionStart);
      fractionDigits = p - fractionStart;
    }
    const hasExponent = ((bytes[p] ?? 0) | 0x20) === 0x65;
    let exponent = 0;
    if (hasExponent) {
      const sign = bytes[p + 1];
      const exponentStart = sign === PLUS || sign === MINUS ? p + 2 : p + 1;
      p = this.#digits(at, exponentStart);
      for (let q = exponentStart; q < p && exponent <= NUMERIC.maxExponent; q++) {
        exponent = exponent * 10 + (bytes[q] ?? ZERO) - ZERO;
      }
      if (exponent > NUMERIC.maxExponent)
        this.fail(at, 'a number has an exponent that PostgreSQL cannot read');
      if (sign === MINUS) exponent = -exponent;
    } else if (integerDigits <= NUMERIC.maxIntegerDigits && fractionDigits <= NUMERIC.maxDecimals) return p;
    const zeros = this.#leadingZeros(integerStart, integerDigits + fractionDigits);
    const isZero = zeros === integerDigits + fractionDigits;
    const writtenInteger = isZero ? 1 : Math.max(1, integerDigits + exponent - zeros);
    const writtenDecimals = Math.max(0, fractionDigits - exponent);
    if (writtenInteger > NUMERIC.maxIntegerDigits || writtenDecimals > NUMERIC.maxDecimals) {
      const { maxIntegerDigits, maxDecimals } = NUMERIC;
      this.fail(
        at,
        `a number has more than ${maxIntegerDigits} digits or ${maxDecimals} decimals once written out, which PostgreSQL cannot store`,
      );
    }
    if (hasExponent && writtenInteger + writtenDecimals > this.#limits.maxExpandedDigits) {
      this.fail(
        at,
        `a number has more than ${this.#limits.maxExpandedDigits} digits once its exponent is written out`,
      );
    }
    this.expand(at, Math.max(0, writtenInteger + writtenDecimals - (p - at)), 'its numbers are written out');
    return p;
  }

  /** How many of the `digits` digits from `start` on, with at most one point among them, are zeros at the beginning. */
  #leadingZeros(start: number, digits: number): number {
    let zeros = 0;
    for (let p = start; zeros < digits; p++) {
      if (this.#bytes[p] === ZERO) zeros++;
      else if (this.#bytes[p] !== POINT) return zeros;
    }
    return zeros;
  }

  /** The position after the digits at `start`, of which there must be one or more. */
  #digits(numberStart: number, start: number): number {
    const bytes = this.#bytes;
    let p = start;
    while (isDigit(bytes[p] ?? -1)) p++;
    if (p === start) this.fail(numberStart, 'a number lacks digits');
    return p;
  }

  /** Counts a container that closes at `at`, and returns the position after it. */
  #close(at: number, width: number): number {
    if (width > this.widest) this.widest = width;
    return at + 1;
  }

  /** Counts a container that opens at `at`. */
  #open(at: number, depth: number): void {
    this.jsonbGrowth += GROWTH_OF_CONTAINER;
    if (depth > this.deepest) this.deepest = depth;
    if (depth > MAX_DEPTH) this.fail(at, `objects and arrays are nested more than ${MAX_DEPTH} deep`);
  }

  #unexpected(at: number, wanted: string): never {
    if (at >= this.#bytes.length) this.fail(at, `the document ends where ${wanted} should be`);
    return this.fail(at, `not JSON: ${wanted} should be at byte ${at}`);
  }
}
