import { ContainerIndex } from './container-index.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  endOfScalar,
  hasToken,
  LETTER_U,
  MINUS,
  NINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  opensContainer,
  POINT,
  QUOTE,
  SOLIDUS,
  SPACE,
  skipWhitespace,
  startOfMemberValue,
  ZERO,
} from './json-bytes.ts';
import { endOfEscape, escapedCodePoint, followingUtf8Bytes, utf8Byte } from './json-escape.ts';
import { compareJsonbKeys } from './jsonb-key-order.ts';
import { writeJsonbNumber } from './jsonb-number.ts';
import { OffsetTable } from './offset-table.ts';
import { PieceWriter } from './piece-writer.ts';
import { sortOffsets } from './sort-offsets.ts';

/** The escapes of jsonb's text, by the character: JavaScript spells these as PostgreSQL does. */
const ESCAPES: ReadonlyArray<Buffer | undefined> = Array.from({ length: BACKSLASH + 1 }, (_, codePoint) => {
  const spelled = JSON.stringify(String.fromCharCode(codePoint)).slice(1, -1);
  return spelled.startsWith('\\') ? Buffer.from(spelled) : undefined;
});

/** In place of the position of a key: an object without one so far. */
const NO_KEY = -1;
/** In place of the position of a key: an array. */
const IN_ARRAY = -2;

/**
 * Whether a JSON text is already exactly what PostgreSQL gives out for it as `jsonb::text` (data model,
 * trap 1), so that storing it changes no byte of it. One pass, which ends where the answer is no.
 *
 * @param json - a document that `readStateDocument` accepted, or a value inside one.
 */
export function isJsonbText(json: Buffer): boolean {
  /** Where the last key of each container around the innermost one stands. */
  const keys: number[] = [];
  let key = IN_ARRAY;
  let p = 0;
  for (;;) {
    // Here p is at what must be the first byte of a value.
    const c = json[p] ?? SPACE;
    if (opensContainer(c)) {
      const isObject = c === OPEN_BRACE;
      keys.push(key);
      key = isObject ? NO_KEY : IN_ARRAY;
      p++;
      if (json[p] !== (isObject ? CLOSE_BRACE : CLOSE_BRACKET)) {
        if (isObject) {
          key = p;
          p = afterKey(json, key);
          if (p === -1) return false;
        }
        continue;
      }
    } else {
      p = c === QUOTE ? endOfJsonbString(json, p) : endOfJsonbScalar(json, p);
      if (p === -1) return false;
    }
    // Here p is after a value, or at the end of an empty container.
    for (;;) {
      if (keys.length === 0) return p === json.length;
      const d = json[p];
      if (d === COMMA) {
        if (json[p + 1] !== SPACE) return false;
        p += 2;
        if (key === IN_ARRAY) break;
        const before = key;
        key = p;
        p = afterKey(json, key);
        if (p === -1 || compareJsonbKeys(json, before, key) >= 0) return false;
        break;
      }
      if (d !== CLOSE_BRACE && d !== CLOSE_BRACKET) return false;
      key = keys.pop() ?? IN_ARRAY;
      p++;
    }
  }
}

/** Where the value of the member with the key at `at` begins in jsonb's spelling, or -1. */
function afterKey(json: Buffer, at: number): number {
  if (json[at] !== QUOTE) return -1;
  const end = endOfJsonbString(json, at);
  return end !== -1 && json[end] === COLON && json[end + 1] === SPACE ? end + 2 : -1;
}

/** The position after the string at `at` if jsonb spells it so, else -1. */
function endOfJsonbString(json: Buffer, at: number): number {
  let p = at + 1;
  for (;;) {
    const c = json[p] ?? QUOTE;
    if (c === QUOTE) return p + 1;
    if (c !== BACKSLASH) p++;
    else {
      const letter = json[p + 1];
      if (letter === SOLIDUS || (letter === LETTER_U && !isJsonbEscape(json, p))) return -1;
      p += letter === LETTER_U ? 6 : 2;
    }
  }
}

/** Whether jsonb spells the character of the `\u` escape at `at` so. */
function isJsonbEscape(json: Buffer, at: number): boolean {
  const escaped = ESCAPES[escapedCodePoint(json, at)];
  return escaped !== undefined && hasToken(json, at, escaped);
}

/** The position after the number or literal at `at` if jsonb spells it so, else -1. */
function endOfJsonbScalar(json: Buffer, at: number): number {
  const c = json[at] ?? SPACE;
  if (c > NINE) return endOfScalar(json, at);
  if (c !== MINUS && c < ZERO) return -1;
  let isZero = c === MINUS || c === ZERO;
  let p = at + 1;
  for (;;) {
    const d = json[p] ?? COMMA;
    if (d >= ZERO && d <= NINE) {
      if (d !== ZERO) isZero = false;
    } else if (d !== POINT) {
      const hasExponent = (d | 0x20) === 0x65;
      return hasExponent || (isZero && c === MINUS) ? -1 : p;
    }
    p++;
  }
}

/**
 * Writes the text that PostgreSQL gives out for `json::jsonb` (data model, trap 1): one space after each
 * comma and colon, keys by length and then by their bytes, of equal ones the last, strings with the fewest
 * escapes, numbers written out with their scale.
 *
 * Takes eight bytes for each object and array inside `json`, and four for each member of those that are open.
 *
 * @param json - a document that `readStateDocument` accepted, or a value inside one.
 * @param write - takes the result in pieces, each valid during the call only.
 */
export function writeJsonbText(json: Buffer, write: (piece: Buffer) => void): void {
  new JsonbTextWriter(json).render(write);
}

/** The text that PostgreSQL gives out for `json::jsonb`, whole; see {@link writeJsonbText}. */
export function jsonbText(json: Buffer): Buffer {
  const pieces: Buffer[] = [];
  writeJsonbText(json, (piece) => pieces.push(Buffer.from(piece)));
  return Buffer.concat(pieces);
}

/**
 * Columns for a container that is being written: of an object, the rows of its keys from `first` to `end`, the one to
 * be written next, and the position after the object. An array has {@link ARRAY} for its `end`.
 */
const FRAME = { first: 0, row: 1, end: 2, after: 3, width: 4 } as const;
const ARRAY = -1;

class JsonbTextWriter {
  readonly #json: Buffer;
  readonly #containers = new ContainerIndex();
  readonly #out = new PieceWriter();
  /** Where the keys of the objects that are being written stand, those of the innermost last. */
  readonly #keys = new OffsetTable(1);
  /** The containers that are open, the innermost last. */
  readonly #frames = new OffsetTable(FRAME.width);
  readonly #compareKeys = (a: number, b: number) => compareJsonbKeys(this.#json, a, b);

  constructor(json: Buffer) {
    this.#json = json;
  }

  render(write: (piece: Buffer) => void): void {
    this.#containers.read(this.#json);
    this.#out.begin(write);
    this.#document();
    this.#out.end();
  }

  /** Not recursive: a document may be nested deeper than the runtime's stack. */
  #document(): void {
    let p = skipWhitespace(this.#json, 0);
    while (p !== -1) {
      const c = this.#json[p];
      if (c === OPEN_BRACE) p = this.#openObject(p);
      else if (c === OPEN_BRACKET) p = this.#openArray(p);
      else p = this.#scalar(p);
      p = this.#next(p);
    }
  }

  #openArray(at: number): number {
    this.#out.byte(OPEN_BRACKET);
    this.#frames.set(this.#frames.add(), FRAME.end, ARRAY);
    return at + 1;
  }

  #openObject(at: number): number {
    const json = this.#json;
    const keys = this.#keys;
    const first = keys.length;
    let p = skipWhitespace(json, at + 1);
    while (json[p] !== CLOSE_BRACE) {
      keys.set(keys.add(), 0, p);
      p = skipWhitespace(json, this.#containers.endOf(json, startOfMemberValue(json, p)));
      if (json[p] === COMMA) p = skipWhitespace(json, p + 1);
    }
    sortOffsets(keys, first, this.#compareKeys);
    this.#out.byte(OPEN_BRACE);
    const frame = this.#frames.add();
    this.#frames.set(frame, FRAME.first, first);
    this.#frames.set(frame, FRAME.row, first);
    this.#frames.set(frame, FRAME.end, keys.length);
    this.#frames.set(frame, FRAME.after, p + 1);
    return p;
  }

  /** Goes on after the value, or the opening, that ends at `at`: the position of the next value; -1 at the end. */
  #next(at: number): number {
    const json = this.#json;
    const frames = this.#frames;
    let p = at;
    while (frames.length > 0) {
      const frame = frames.length - 1;
      if (frames.get(frame, FRAME.end) !== ARRAY) {
        const value = this.#nextMember(frame);
        if (value !== -1) return value;
        this.#out.byte(CLOSE_BRACE);
        p = frames.get(frame, FRAME.after);
        this.#keys.truncate(frames.get(frame, FRAME.first));
      } else {
        p = skipWhitespace(json, p);
        if (json[p] === COMMA) {
          this.#separator(COMMA);
          return skipWhitespace(json, p + 1);
        }
        if (json[p] !== CLOSE_BRACKET) return p;
        this.#out.byte(CLOSE_BRACKET);
        p += 1;
      }
      frames.truncate(frame);
    }
    return -1;
  }

  /** Writes the next key of an object, the last of equal ones; the position of its value, or -1 when all are written. */
  #nextMember(frame: number): number {
    const frames = this.#frames;
    const keys = this.#keys;
    const first = frames.get(frame, FRAME.row);
    const end = frames.get(frame, FRAME.end);
    if (first === end) return -1;
    let row = first;
    let key = keys.get(row, 0);
    while (row + 1 < end && this.#compareKeys(key, keys.get(row + 1, 0)) === 0) key = keys.get(++row, 0);
    if (first > frames.get(frame, FRAME.first)) this.#separator(COMMA);
    frames.set(frame, FRAME.row, row + 1);
    this.#string(key);
    this.#separator(COLON);
    return startOfMemberValue(this.#json, key);
  }

  /** Writes the value at `at`, which is no container, and returns the position after it. */
  #scalar(at: number): number {
    const c = this.#json[at] ?? SPACE;
    if (c === QUOTE) return this.#string(at);
    if (c <= NINE) return this.#number(at);
    const end = endOfScalar(this.#json, at);
    this.#out.copy(this.#json, at, end);
    return end;
  }

  #separator(byte: number): void {
    this.#out.byte(byte);
    this.#out.byte(SPACE);
  }

  #string(at: number): number {
    const json = this.#json;
    this.#out.byte(QUOTE);
    let p = at + 1;
    for (;;) {
      const start = p;
      let c = json[p] ?? QUOTE;
      while (c !== QUOTE && c !== BACKSLASH) c = json[++p] ?? QUOTE;
      this.#out.copy(json, start, p);
      if (c === QUOTE) {
        this.#out.byte(QUOTE);
        return p + 1;
      }
      this.#character(escapedCodePoint(json, p));
      p = endOfEscape(json, p);
    }
  }

  #character(codePoint: number): void {
    const escaped = ESCAPES[codePoint];
    if (escaped !== undefined) this.#out.copy(escaped, 0, escaped.length);
    else {
      for (let left = followingUtf8Bytes(codePoint); left >= 0; left--) {
        this.#out.byte(utf8Byte(codePoint, left));
      }
    }
  }

  #number(at: number): number {
    const json = this.#json;
    const end = endOfScalar(json, at);
    if (endOfJsonbScalar(json, at) === end) this.#out.copy(json, at, end);
    else writeJsonbNumber(json, at, end, this.#out);
    return end;
  }
}
