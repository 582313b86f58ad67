import { BACKSLASH, QUOTE } from './json-bytes.ts';
import { endOfEscape, escapedCodePoint, followingUtf8Bytes, utf8Byte } from './json-escape.ts';

/**
 * Compares the keys whose opening quotes are at two positions as jsonb orders them: the shorter first, and
 * those of one length by their bytes, both in UTF-8 without escapes (data model, trap 1). Zero means that it
 * is the same key, however spelled.
 */
export function compareJsonbKeys(json: Buffer, a: number, b: number): number {
  let difference = 0;
  for (let i = 1; ; i++) {
    const x = json[a + i] ?? QUOTE;
    const y = json[b + i] ?? QUOTE;
    if (x === BACKSLASH || y === BACKSLASH) return compareDecoded(json, a, b);
    if (x === QUOTE || y === QUOTE) return x === y ? difference : Number(x !== QUOTE) - Number(y !== QUOTE);
    if (difference === 0) difference = x - y;
  }
}

function compareDecoded(json: Buffer, a: number, b: number): number {
  const keyA = new StringBytes(json, a);
  const keyB = new StringBytes(json, b);
  let difference = 0;
  for (;;) {
    const x = keyA.next();
    const y = keyB.next();
    if (x === END || y === END) return x === y ? difference : Number(x !== END) - Number(y !== END);
    if (difference === 0) difference = x - y;
  }
}

const END = -1;

/** The bytes of a string without its escapes, one at a time, so that a key of any length is never copied. */
class StringBytes {
  readonly #json: Buffer;
  #at: number;
  /** The character of the escape that is being read, and how many of its bytes are still to come. */
  #codePoint = 0;
  #left = 0;

  /** @param at - the position of the opening quote. */
  constructor(json: Buffer, at: number) {
    this.#json = json;
    this.#at = at + 1;
  }

  /** The next byte, or {@link END}. */
  next(): number {
    if (this.#left > 0) return utf8Byte(this.#codePoint, --this.#left);
    const byte = this.#json[this.#at] ?? QUOTE;
    if (byte === QUOTE) return END;
    if (byte !== BACKSLASH) {
      this.#at++;
      return byte;
    }
    this.#codePoint = escapedCodePoint(this.#json, this.#at);
    this.#left = followingUtf8Bytes(this.#codePoint);
    this.#at = endOfEscape(this.#json, this.#at);
    return utf8Byte(this.#codePoint, this.#left);
  }
}
